/// @file
/// The client: one Redis server, many locks.
#pragma once

#include "redislock/config.hpp"
#include "redislock/count_down_latch.hpp"
#include "redislock/export.hpp"
#include "redislock/fair_lock.hpp"
#include "redislock/fenced_lock.hpp"
#include "redislock/fwd.hpp"
#include "redislock/non_reentrant_lock.hpp"
#include "redislock/permit_expirable_semaphore.hpp"
#include "redislock/read_write_lock.hpp"
#include "redislock/redis_lock.hpp"
#include "redislock/retry_policy.hpp"
#include "redislock/segmented_lock.hpp"
#include "redislock/semaphore.hpp"
#include "redislock/spin_lock.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

namespace redislock {

/// Makes locks on one Redis server and owns what they share: at most three connections (commands, renewals,
/// notifications) and one background thread, however many locks and threads use it.
///
/// **Guarantees**: construction checks its arguments, does no I/O and starts no thread; connections are made when first
/// needed and made again (50 ms → 1 s, with jitter) for as long as someone needs them.
/// **Thread safety**: distinct objects: safe. Shared objects: safe, except moving, assigning and destroying.
/// **Blocking**: connect() and shutdown() block; nothing else here does.
/// **Lifetime**: locks and guards share the client's state and may outlive it; see shutdown(). After `fork()` the child
/// holds nothing, sends nothing, and its calls give `Errc::forked`.
/// **Cost**: a few kilobytes; one is enough for a process, since its threads share one connection better than several.
///
/// @code
/// redislock::Client client("redis://127.0.0.1:6379");
/// redislock::RedisLock lock = client.getLock("stock:42");
/// @endcode
class REDISLOCK_EXPORT Client {
public:
    /// @param url see Config::fromUrl(). @throws LockError `badConfig`, `unsupported`. No I/O.
    explicit Client(std::string_view url);
    /// @param config checked whole. @throws LockError `badConfig`. No I/O.
    explicit Client(Config config);

    /// A moved-from client has no state: only destroying and assigning it is allowed.
    Client(Client&&) noexcept = default;
    /// Shuts the own state down as the destructor does, then takes over the other's.
    Client& operator=(Client&& other) noexcept;
    /// `shutdown(1s)`. Never joins its own thread: safe in an Observer function too.
    ~Client();

    /// The lock of this name. Does no I/O.
    /// @param name 1 … 1024 bytes, any: it is binary-safe, and names that differ in any byte are different locks. In a
    /// later
    ///   cluster mode, names with an unbalanced `{` or `}` are refused.
    /// @throws LockError `invalidArgument` for an empty or longer name.
    [[nodiscard]] RedisLock getLock(std::string name) const;

    /// The lock of this name that its holder cannot take twice. Names, errors and cost as getLock(), with which it
    /// excludes.
    [[nodiscard]] NonReentrantLock getNonReentrantLock(std::string name) const;

    /// The lock of this name whose waiters ask instead of being told. Names, errors and cost as getLock(), with which
    /// it excludes. @param retry when they ask.
    [[nodiscard]] SpinLock
    getSpinLock(std::string name, RetryPolicy retry = RetryPolicy::exponential(std::chrono::milliseconds(1),
                                                                               std::chrono::milliseconds(128))) const;

    /// The lock of this name that is granted in the order of asking. Names, errors and cost as getLock(), with which it
    /// excludes.
    [[nodiscard]] FairLock getFairLock(std::string name) const;

    /// The lock of this name whose holds have growing tokens. Names, errors and cost as getLock(), with which it
    /// excludes.
    [[nodiscard]] FencedLock getFencedLock(std::string name) const;

    /// The lock of this name that many may hold to read, or one to write. Names, errors and cost as getLock(). A name
    /// that is in use as a lock of another kind is `wrongType` when it is met.
    [[nodiscard]] ReadWriteLock getReadWriteLock(std::string name) const;
    /// The semaphore of this name, whose permits belong to nobody. Names, errors and cost as getLock().
    [[nodiscard]] Semaphore getSemaphore(std::string name) const;

    /// The semaphore of this name whose permits are leased. Names, errors and cost as getLock().
    [[nodiscard]] PermitExpirableSemaphore getPermitExpirableSemaphore(std::string name) const;

    /// The latch of this name. Names, errors and cost as getLock().
    [[nodiscard]] CountDownLatch getCountDownLatch(std::string name) const;
    /// The lock of this name in pieces, among which keys are spread. Does no I/O.
    /// @param name as of getLock(), and so short that the names of the segments (`<name>:<i>`) are valid.
    /// @param segments 1 … 1024; the same in all programs. @throws LockError `invalidArgument`.
    [[nodiscard]] SegmentedLock getSegmentedLock(std::string name, std::size_t segments = 16) const;

    /// A function that makes locks as getLock() does and may outlive this object; the locks share the same client.
    [[nodiscard]] std::function<RedisLock(std::string)> locks() const;

    /// Connects now instead of at the first use, to see a wrong address or password early. Blocks for one attempt, at
    /// most about `Config::connectTimeout`.
    /// @throws LockError `unreachable`, `authFailed`, `permissionDenied`, `noSuchDatabase`, `notRedis`,
    /// `serverRefused`,
    ///   `wouldDeadlock`, `shutdown`, `forked`.
    void connect() const;
    /// As connect(), without exceptions.
    void connect(std::error_code& ec) const;

    /// Ends the client: waiters and later calls get `Errc::shutdown`, renewals stop, locks still held count as lost
    /// (their stop tokens stop) and end in Redis with their lease. Later destructors of guards do nothing. What is
    /// under way is given @p timeout to be answered: releases, and requests of waiters, whose grants are given back.
    /// Blocks until then, which is a matter of milliseconds if the server answers; on the client's own thread not at
    /// all. A second call does nothing.
    /// @return whether everything was answered: then nothing is left in Redis but the locks that were still held.
    bool shutdown(std::chrono::milliseconds timeout = std::chrono::seconds(1)) noexcept;

    /// The client's random UUID, the first part of its holders in Redis.
    [[nodiscard]] const std::string& id() const noexcept;
    /// The settings it was made with.
    [[nodiscard]] const Config& config() const noexcept;

private:
    std::shared_ptr<detail::Engine> engine_;
};

} // namespace redislock
