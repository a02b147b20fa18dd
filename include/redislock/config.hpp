/// @file
/// The settings of a client.
#pragma once

#include "redislock/credentials.hpp"
#include "redislock/durability.hpp"
#include "redislock/endpoint.hpp"
#include "redislock/export.hpp"
#include "redislock/observer.hpp"
#include "redislock/sentinels.hpp"
#include "redislock/tls.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redislock {

/// How a client names its connections.
enum class Naming : std::uint8_t {
    /// `<clientName>:<client id>:<host>:<process id>`, with `redislock` for an empty clientName; at most 128 bytes, for
    /// which the host is shortened. It shows LockMonitor, and anyone who reads `CLIENT LIST`, where a holder runs.
    identified,
    /// `Config::clientName` alone; if that is empty, connections have no name. For users who do not want the server to
    /// know host names.
    asGiven,
};

/// How waiters in a cluster are notified that a name is free. All clients that use a name must agree on it: a release
/// notifies only the waiters that listen in the same way; others find out by polling.
enum class Notifications : std::uint8_t {
    automatic, ///< sharded if the nodes support it (Redis 7, Valkey), else classic: like Redisson from 3.22 on
    sharded,   ///< `SPUBLISH` and `SSUBSCRIBE`: a release concerns only the nodes of its own shard
    classic,   ///< `PUBLISH` and `SUBSCRIBE`: each release goes to all nodes; like Redisson before 3.22
    both,      ///< each release is published both ways, and waiters listen both ways: for fleets with both
};

/// All settings of a Client. Plain data: copy, change, hand to the Client, which checks all of it before any I/O and
/// throws LockError(`Errc::badConfig`) with the first bad field, its value and the rule; secrets are shown as `***`.
///
/// **Thread safety**: distinct objects: safe. Shared objects: unsafe while one is changed.
///
/// @code
/// redislock::Config config = redislock::Config::fromUrl("redis://orders:secret@redis.internal:6379/2");
/// config.watchdogTimeout = 10s;
/// redislock::Client client(config);
/// @endcode
struct REDISLOCK_EXPORT Config {
    /// The server. Default: 127.0.0.1:6379. Ignored with `sentinels` or `cluster`.
    Endpoint endpoint;
    /// The Sentinels that know which server is the master. Empty (default): `endpoint` is the server.
    std::optional<Sentinels> sentinels;
    /// Nodes of a Redis Cluster, of which at least one must be reachable: the client learns the others from it. Empty
    /// (default): `endpoint` is the server. With a cluster, `database` must be 0.
    std::vector<Endpoint> cluster;
    /// How waiters in a cluster hear of releases. Default: automatic. Without a cluster: only automatic.
    Notifications notifications = Notifications::automatic;
    /// Translates the addresses that Sentinels and nodes of a cluster announce; empty (default): they are used as they
    /// are.
    AddressMap addressMap;

    /// ACL user; empty: the server's default user. Needs a password.
    std::string username;
    /// Password; empty: none is sent. Never shown in a message.
    std::string password;
    /// Supplies user name and password in place of the two above, once for each connection: for passwords that change,
    /// and tokens that expire. May be empty (default).
    CredentialsProvider credentials;
    /// How long a call of `credentials` may take before the attempt to connect fails with `Errc::authFailed`; 10 ms …
    /// 1 min. Default 5 s.
    std::chrono::milliseconds credentialsTimeout{5000};
    /// TLS, and what is checked with it; empty (default): none. Not for unix sockets.
    std::optional<Tls> tls;
    /// Database number, 0 … 65535. Default 0, for which nothing is sent. Every connection selects it before anything
    /// else.
    std::uint32_t database = 0;
    /// The program's name, a part of the names of its connections (`CLIENT LIST`); printable ASCII without spaces, at
    /// most 64 bytes. Default: empty.
    std::string clientName;
    /// How connections are named. By default, the names lead from a holder in Redis to its process: see Naming.
    Naming naming = Naming::identified;

    /// How long one attempt to connect (look-up, connect and handshake together) may take; 10 ms … 1 min. Default 3 s.
    /// All addresses of a name are tried in this time: a silent one delays the next by 250 ms at most, and the first
    /// that answers like Redis is used. Raise it for slow networks; lower it to try again sooner.
    std::chrono::milliseconds connectTimeout{3000};
    /// How long a server may be silent on a connection while an answer is due; 10 ms … 1 min. Default 3 s. After that,
    /// the connection is closed, and its requests are sent again on a new one. Low: a slow server causes reconnects;
    /// high: a dead server is noticed late. The connection for renewals uses at most a sixth of `watchdogTimeout`, so
    /// that a renewal can be tried several times.
    std::chrono::milliseconds commandTimeout{3000};
    /// How long a call that may wait longer continues without any answer from a server before it fails with
    /// `Errc::unreachable`; 10 ms … 1 h. Default 10 s. High: calls survive a fail-over; low: they fail sooner.
    std::chrono::milliseconds unreachableAfter{10000};

    /// The lease of locks taken with `keepRenewing`, renewed every third of it; 100 ms … 30 days. Default 30 s. High:
    /// the lock of a crashed process stays taken longer; low: more renewals, and a shorter outage of the server loses
    /// the lock.
    std::chrono::milliseconds watchdogTimeout{30000};
    /// How long a lock is renewed at most, counted from its first grant, or from when it was passed on. After that, a
    /// lock that nobody unlocked ends one lease later, and `Observer::heldTooLong` is called. Zero (default): no limit.
    /// Otherwise at least `watchdogTimeout`.
    std::chrono::milliseconds maxHold{0};
    /// How often a waiter asks Redis when no notification comes; 10 ms … 1 min. Default 1 s. Low: a lost notification
    /// delays a waiter less, but waiters send more requests.
    std::chrono::milliseconds pollInterval{1000};

    /// How long this client keeps a lock for its own threads while other clients want it too: its turn; 0 … 100 ms.
    /// Default 0.7 ms. During a turn its threads hand the lock to each other, and lock again, ahead of other clients;
    /// then the client yields, for about as long for each client that listens. A turn is at least one hold, and at
    /// least two round trips to the server; zero means just that. High: less traffic and more locks per second overall,
    /// but longer waits in other clients; low: the reverse. Has no effect if no other client wants the lock, and none
    /// on FairLock, ReadLock and SpinLock.
    std::chrono::microseconds turn{700};

    /// The Durability of locks that are made without one; its time is at most `watchdogTimeout`. Default: none.
    Durability durability;

    /// Is notified of everything that happens; may be empty (default).
    std::shared_ptr<Observer> observer;

    /// Reads `redis://[[user]:password@]host[:port][/database][?option=value&…]`, the same with `rediss://` for TLS,
    /// and `unix://[[user]:password@]/path/to/socket[?database=n&…]`. User, password and path may be percent-encoded.
    /// For a master that Sentinels watch: `redis-sentinel://[[user]:password@]host[:port],…/name[/database][?…]`, or
    /// `rediss-sentinel://` for TLS with the servers and the Sentinels; user and password are those of the servers, the
    /// port is 26379 unless it is given. Its own options, for Sentinels that differ from the servers:
    /// `sentinel_username`, `sentinel_password`, and `sentinel_tls` (`yes` or `no`).
    ///
    /// For a cluster: `redis-cluster://[[user]:password@]host[:port],…[?…]`, or `rediss-cluster://` for TLS. Its own
    /// option: `notifications` (`auto`, `sharded`, `classic` or `both`). In every scheme `valkey` may stand for
    /// `redis`.
    ///
    /// Options: `database`, `client_name`, `naming` (`identified` or `as_given`), and in milliseconds
    /// `connect_timeout`, `command_timeout`, `unreachable_after`, `watchdog_timeout`, `max_hold`, `poll_interval`;
    /// `turn_us` in microseconds; `durability` (`none`, `replicas:N` or `disk:N`), and `durability_within` in
    /// milliseconds. With `rediss://` also the fields of Tls: `ca_file`, `ca_path`, `cert_file`,
    /// `key_file`, `key_password`, `server_name`, `verify` (`full`, `chain` or `none`), `min_tls` (`1.2` or `1.3`).
    ///
    /// @throws LockError `badConfig` for anything else: unknown scheme or option, empty host, bad number, bad escape.
    /// The message never shows the URL itself, which may hold a password. No I/O, no look-up.
    static Config fromUrl(std::string_view url);

    /// @throws LockError `badConfig`: the first field that breaks its rule, its value and the rule. The Client calls
    /// it.
    void validate() const;
};

} // namespace redislock
