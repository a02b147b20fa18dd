/// @file
/// Looking at the locks of a server.
#pragma once

#include "redislock/asio_options.hpp"
#include "redislock/config.hpp"
#include "redislock/export.hpp"
#include "redislock/lock_report.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace redislock {

/// How far a LockMonitor has come.
struct REDISLOCK_EXPORT MonitorProgress {
    std::uint64_t locks = 0;    ///< locks found so far
    std::uint64_t examined = 0; ///< roughly how many keys of the database were examined
    std::uint64_t keys = 0;     ///< how many keys the database had when the round began; 0: not known (`+dbsize`)
    /// Keys whose names match but that the user may not read (`~name`): they may be locks.
    std::uint64_t unreadable = 0;
    /// Hashes whose names match but that are not locks: nobody can take a lock of such a name.
    std::uint64_t others = 0;
};

/// What LockMonitor::check() raises an alarm for. Empty functions are not called. The others are called on the thread
/// of the check, and may throw: the exception ends the check.
struct REDISLOCK_EXPORT MonitorAlarms {
    /// Holds that this LockMonitor has seen for longer than this. Redis does not know since when a lock has been held,
    /// so the time counts from the first check that saw the hold. Not negative.
    std::chrono::milliseconds heldFor{0};
    /// Called in each check for each such hold. @param seen how long it has been seen
    std::function<void(const LockReport&, const LockHolder&, std::chrono::milliseconds seen)> heldTooLong;

    /// Called in each check for each lock whose key has no time to live: only its owner or an operator can free it.
    std::function<void(const LockReport&)> withoutTimeToLive;

    /// Client::id() of the client whose holds are watched for their deadline.
    std::string clientId;
    /// A hold is near its deadline when it has at most this much time left. A client that renews lets its locks come
    /// down to two thirds of its `Config::watchdogTimeout`: choose less than that.
    std::chrono::milliseconds deadlineWithin{0};
    /// Called in each check for each hold of that client that is near its deadline.
    std::function<void(const LockReport&, const LockHolder&)> nearDeadline;
};

/// A replica, as its master sees it.
struct REDISLOCK_EXPORT ReplicaReport {
    std::string address;            ///< `host:port`
    std::string state;              ///< `online` once it follows
    std::uint64_t bytesBehind = 0;  ///< how much of the master's data it has not acknowledged
    std::chrono::seconds silent{0}; ///< time since it last acknowledged anything
};

/// The Sentinels of a master.
struct REDISLOCK_EXPORT SentinelsReport {
    std::size_t seen = 0;                ///< the configured ones, and those that these know
    std::optional<std::uint64_t> quorum; ///< empty: not known (`+sentinel|master`)
};

/// A master of a cluster.
struct REDISLOCK_EXPORT ShardReport {
    std::string address;                 ///< `host:port`
    std::size_t slots = 0;               ///< how many it serves, of 16384
    std::vector<ReplicaReport> replicas; ///< those that follow it
    std::string evictionPolicy;          ///< empty: not known (`+info`)
};

/// The cluster to which a server belongs.
struct REDISLOCK_EXPORT ClusterReport {
    std::vector<ShardReport> shards;                        ///< its masters
    bool isWhole = false;                                   ///< every slot has a node
    bool hasShardedChannels = false;                        ///< Redis 7 and later, Valkey
    std::optional<bool> needsFullCoverage;                  ///< empty: not known (`+config|get`)
    std::optional<std::chrono::milliseconds> nodeTimeout{}; ///< empty: not known (`+config|get`)
};

/// What a server says about itself. A field is empty if the server did not tell it, or if the user may not ask
/// (`+info`).
struct REDISLOCK_EXPORT ServerReport {
    std::string version; ///< `7.0.15`
    std::string
        role; ///< `master`; `slave` only for a server before 6.2, or behind a proxy: other replicas are not used
    std::optional<std::uint64_t> replicas;           ///< how many are connected
    std::vector<ReplicaReport> followers;            ///< of a master
    std::optional<std::uint64_t> minReplicasToWrite; ///< empty: not known (`+config|get`)
    std::optional<SentinelsReport> sentinels;        ///< empty without Config::sentinels
    std::optional<ClusterReport> cluster;            ///< empty without Config::cluster
    std::string masterLink;                          ///< of a replica: `up` or `down`
    std::string evictionPolicy; ///< `noeviction`; with any other policy Redis may evict locks when memory runs out
    std::optional<std::uint64_t> maxMemory;  ///< bytes; 0: no limit
    std::optional<std::uint64_t> usedMemory; ///< bytes
    std::optional<bool> isLoading;           ///< it reads its data from disk and answers nothing else
    std::optional<bool> appendsToFile;       ///< append-only file
    std::optional<bool> savesSnapshots;      ///< `save` is set; empty: not known (`+config|get`)
    std::optional<std::string> appendSync;   ///< `appendfsync`; empty: not known (`+config|get`)
    std::optional<TlsReport> tls;            ///< empty without TLS
    /// Rights that locks need and the user lacks, as rules of `ACL SETUSER`. Without `+multi +discard` the rights to
    /// write are not checked. Empty optional: not known.
    std::optional<std::vector<std::string>> lackingRights;
};

/// Looks at the locks of one server, or of all masters of a cluster, from outside: who holds them, on which host and in
/// which process, for how long, and who waits. It sees the locks of Redisson as well. It only reads; for operators,
/// dashboards and alarms.
///
/// **Guarantees**: its requests are bounded: keys are listed in pages (SCAN, 500 at a time), and so are queues (LRANGE,
/// 500), with CLIENT LIST once a round; a reply may have 64 MB. It shares nothing with a Client: it has its own
/// connection.
/// **Does not guarantee** a snapshot: locks that come and go during a round may be missed, and each report shows a
/// different moment. A hash whose fields look like holders' counts as a lock.
///
/// **Rights**: see *Rights of a user* in doc/keys.md. All are optional except `+scan`, `+hscan`, `+hget` and `+pttl`;
/// missingRights() names those that were missing. Keys that the user may not read are left out of lists, but counted.
///
/// **Thread safety**: distinct objects: safe. Shared objects: unsafe. **Blocking**: every function except the
/// constructors blocks, for up to `Config::commandTimeout` in each step; use a thread of your own. Nothing is repeated:
/// after an error the next call connects again. If a look-up of the server's name hangs, the destructor waits for it.
/// **Errors**, as LockError or as codes: `unreachable`, `serverRefused`, `authFailed`, `permissionDenied`,
/// `noSuchDatabase`, `notRedis`, `badReply`; find() also `wrongType`. **Cost**: one connection, no thread; memory for
/// the largest reply, the identities of the clients and the names of the locks of a round.
///
/// @code
/// redislock::LockMonitor monitor("redis://127.0.0.1:6379");
/// for (const redislock::LockReport& lock : monitor.list("stock:*")) {
///     std::cout << lock.name << ' ' << lock.holders.front().host << ' ' << lock.holders.front().process << '\n';
/// }
/// @endcode
class REDISLOCK_EXPORT LockMonitor {
public:
    /// Called with each page of locks. @return whether to go on.
    using Page = std::function<bool(const std::vector<LockReport>&, const MonitorProgress&)>;

    /// @param url see Config::fromUrl(). @throws LockError `badConfig`, `unsupported`. No I/O.
    explicit LockMonitor(std::string_view url);
    /// @param config as for a Client; only what concerns the connection is used.
    /// @throws LockError `badConfig`, `unsupported`. No I/O.
    explicit LockMonitor(const Config& config);
    /// Both objects are then the same monitor, for one thread.
    LockMonitor(LockMonitor&& other) noexcept : impl_(other.impl_) {}
    LockMonitor& operator=(LockMonitor&& other) noexcept ///< as above
    {
        impl_ = other.impl_;
        return *this;
    }

    /// A round: all locks whose names match, in no order, each once. @param pattern as for Redis' KEYS: `*`, `?`,
    /// `[ab]`, with `\` before a literal character; `*` matches all. @param page called after each page of keys, even
    /// one without locks, on this thread. If it throws, the round ends. @return how far it came. @throws LockError
    MonitorProgress forEachPage(std::string_view pattern, const Page& page);
    /// As forEachPage(), without exceptions of its own.
    MonitorProgress forEachPage(std::string_view pattern, const Page& page, std::error_code& ec);

    /// The locks of a whole round. @throws LockError
    [[nodiscard]] std::vector<LockReport> list(std::string_view pattern = "*");
    /// As list(), without exceptions: returns what was found before an error.
    [[nodiscard]] std::vector<LockReport> list(std::string_view pattern, std::error_code& ec);

    /// One lock, with all of its holders and its queue, in order. Empty when nobody holds it. @throws LockError
    /// `wrongType` for a key that is not a lock, `permissionDenied` for one that the user may not read; the message
    /// names the key's type, or the right that is missing.
    [[nodiscard]] std::optional<LockReport> find(std::string_view name);
    /// As find(), without exceptions.
    [[nodiscard]] std::optional<LockReport> find(std::string_view name, std::error_code& ec);

    /// A round that raises alarms; call it periodically. @param page also called with each page, if it is not empty.
    /// @throws LockError
    MonitorProgress check(std::string_view pattern, const MonitorAlarms& alarms, const Page& page = {});
    /// As check(), without exceptions of its own.
    MonitorProgress check(std::string_view pattern, const MonitorAlarms& alarms, const Page& page, std::error_code& ec);

    /// What the server (in a cluster: the node that has the name) says about itself, and whether the user may use
    /// locks.
    /// @param name the lock for whose keys and channels the rights are checked; it is not touched. @throws LockError
    [[nodiscard]] ServerReport server(std::string_view name);
    /// As server(), without exceptions.
    [[nodiscard]] ServerReport server(std::string_view name, std::error_code& ec);

    /// Rights that were missing in the calls of this object, as rules of `ACL SETUSER`: `+client|list` for instance.
    /// Each of them makes the reports less complete.
    [[nodiscard]] const std::vector<std::string>& missingRights() const noexcept;

private:
    struct Impl;
    std::shared_ptr<Impl> impl_;
};

} // namespace redislock
