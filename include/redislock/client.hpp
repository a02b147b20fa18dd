/// @file
/// The client: one Redis server, many locks.
#pragma once

#include "redislock/config.hpp"
#include "redislock/count_down_latch.hpp"
#include "redislock/durability.hpp"
#include "redislock/export.hpp"
#include "redislock/fair_lock.hpp"
#include "redislock/fenced_lock.hpp"
#include "redislock/fwd.hpp"
#include "redislock/handler.hpp"
#include "redislock/non_reentrant_lock.hpp"
#include "redislock/permit_expirable_semaphore.hpp"
#include "redislock/read_write_lock.hpp"
#include "redislock/redis_lock.hpp"
#include "redislock/retry_policy.hpp"
#include "redislock/segmented_lock.hpp"
#include "redislock/semaphore.hpp"
#include "redislock/spin_lock.hpp"

#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/system/error_code.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace redislock {

/// Makes locks on one Redis server and owns what they share: at most three connections (commands, renewals,
/// notifications; a fourth if a Durability is asked for) and one background thread, however many locks and threads use
/// it.
///
/// **Guarantees**: construction checks its arguments, does no I/O and starts no thread; connections are made when first
/// needed, and made again (after 50 ms → 1 s, with jitter) as long as they are needed.
/// **Thread safety**: distinct objects: safe. Shared objects: safe, except moving, assigning and destroying.
/// **Blocking**: connect(), shutdown() and the destructor block. asyncConnect(), asyncShutdown() and a destructor after
/// asyncShutdown() do not; nor does anything else here.
/// **Lifetime**: locks and guards share the client's state and may outlive it; see shutdown(). After `fork()` the child
/// holds nothing, sends nothing, and its calls give `Errc::forked`.
/// **Cost**: a few kilobytes; one is enough for a process: its threads work faster on one shared connection than on
/// several.
///
/// @code
/// redislock::Client client("redis://127.0.0.1:6379");
/// redislock::RedisLock lock = client.getLock("stock:42");
/// @endcode
class REDISLOCK_EXPORT Client {
public:
    /// @param url see Config::fromUrl(). @throws LockError `badConfig`, `unsupported`. No I/O.
    explicit Client(std::string_view url);
    /// @param config checked whole. @throws LockError `badConfig`, `unsupported`. No I/O.
    explicit Client(Config config);

    /// Takes over the other's state, which this object shuts down when it is destroyed; until then, @p other may still
    /// be used with that state.
    Client(Client&& other) noexcept;
    /// Shuts its own state down as the destructor does, then takes over the other's.
    Client& operator=(Client&& other) noexcept;
    /// `shutdown(1s)`: blocks for up to 1 s if the server does not answer what is under way (releases, and requests of
    /// waiters), or for up to 1.1 s if a look-up of its name hangs. Where a thread must not block for that, await
    /// asyncShutdown() first: the destructor then sends nothing and waits for nothing. Never joins its own thread, so
    /// it is safe in an Observer function too.
    ~Client();

    /// The lock of this name. Does no I/O.
    /// @param name 1 … 1024 bytes of any value: names are binary-safe, and names that differ in any byte are different
    /// locks. In a cluster a name has no braces, or exactly one pair with something between them; the name of a latch
    /// has none.
    /// @param durability which other servers must have a grant; empty: `Config::durability`.
    /// @throws LockError `invalidArgument` for an empty or longer name, in a cluster for a name whose keys would be in
    /// several slots, or for a durability outside its range.
    [[nodiscard]] RedisLock getLock(std::string name, std::optional<Durability> durability = std::nullopt) const;

    /// The lock of this name that its holder cannot take twice. Names, errors and cost as for getLock(). It excludes
    /// the other kinds of lock of that name.
    [[nodiscard]] NonReentrantLock getNonReentrantLock(std::string name,
                                                       std::optional<Durability> durability = std::nullopt) const;

    /// The lock of this name whose waiters poll instead of being notified. Names, errors and cost as for getLock(). It
    /// excludes the other kinds of lock of that name. @param retry the pauses between a waiter's attempts.
    [[nodiscard]] SpinLock getSpinLock(std::string name,
                                       RetryPolicy retry = RetryPolicy::exponential(std::chrono::milliseconds(1),
                                                                                    std::chrono::milliseconds(128)),
                                       std::optional<Durability> durability = std::nullopt) const;

    /// The lock of this name that is granted in the order of asking. Names, errors and cost as for getLock(). It
    /// excludes the other kinds of lock of that name.
    [[nodiscard]] FairLock getFairLock(std::string name, std::optional<Durability> durability = std::nullopt) const;

    /// The lock of this name whose holds have growing tokens. Names, errors and cost as for getLock(). It excludes the
    /// other kinds of lock of that name.
    [[nodiscard]] FencedLock getFencedLock(std::string name, std::optional<Durability> durability = std::nullopt) const;

    /// The lock of this name that many may hold to read, or one to write. Names, errors and cost as for getLock(). If
    /// the name is in use as a lock of another kind, calls of this lock fail with `wrongType`.
    [[nodiscard]] ReadWriteLock getReadWriteLock(std::string name,
                                                 std::optional<Durability> durability = std::nullopt) const;
    /// The semaphore of this name, whose permits have no owner. Names, errors and cost as for getLock().
    [[nodiscard]] Semaphore getSemaphore(std::string name) const;

    /// The semaphore of this name whose permits are leased. Names, errors and cost as for getLock().
    [[nodiscard]] PermitExpirableSemaphore getPermitExpirableSemaphore(std::string name) const;

    /// The latch of this name. Names, errors and cost as for getLock().
    [[nodiscard]] CountDownLatch getCountDownLatch(std::string name) const;
    /// The lock of this name in segments, over which keys are spread. Does no I/O.
    /// @param name as for getLock(), and short enough that the names of the segments (`name:i`) are valid.
    /// @param segments 1 … 1024; the same in all programs. @throws LockError `invalidArgument`.
    [[nodiscard]] SegmentedLock getSegmentedLock(std::string name, std::size_t segments = 16,
                                                 std::optional<Durability> durability = std::nullopt) const;

    /// A function that makes locks as getLock(name) does and may outlive this object; the locks share the same client.
    [[nodiscard]] std::function<RedisLock(std::string)> locks() const;

    /// Connects now instead of at the first use, so that a wrong address or password, or the wrong kind of server, is
    /// found early. Blocks for one attempt, at most about `Config::connectTimeout`.
    /// @throws LockError `unreachable`, `authFailed`, `permissionDenied`, `noSuchDatabase`, `notRedis`, `unsupported`
    /// (a Sentinel, a node of a cluster), `serverRefused` (a replica), `wouldDeadlock`, `shutdown`, `forked`.
    void connect() const;
    /// As connect(), without exceptions.
    void connect(std::error_code& ec) const;

    /// Ends the client: waiters and later calls get `Errc::shutdown`, renewals stop, locks still held count as lost
    /// (their stop tokens are stopped) and end in Redis with their lease. Guards that are destroyed later do nothing.
    /// Requests under way have @p timeout to be answered: releases, and requests of waiters, whose grants are released
    /// again. Blocks until then, which takes milliseconds if the server answers; does not block on the client's own
    /// thread. A second call does nothing.
    /// @param timeout zero or negative: does not wait; `milliseconds::max()`: no limit.
    /// @return whether everything was answered: then nothing is left in Redis but the locks that were still held.
    bool shutdown(std::chrono::milliseconds timeout = std::chrono::seconds(1)) noexcept;

    /// connect() without blocking a thread. Makes the connection of the asynchronous calls.
    /// @param token for `void(boost::system::error_code)`; handler and errors as for Lock::asyncLock(), and those of
    /// connect(). **Cancellation** (terminal, partial and total) ends the call with
    /// `boost::asio::error::operation_aborted`; the connection may still be made.
    template <CompletionTokenFor<> Token = boost::asio::deferred_t>
    auto asyncConnect(Token&& token = Token()) const
    {
        return boost::asio::async_initiate<Token, void(boost::system::error_code)>(
            [engine = engine_](auto handler) { startConnect(engine, detail::withoutResult(std::move(handler))); },
            token);
    }

    /// shutdown() without blocking a thread. Other calls get `Errc::shutdown` as soon as this one has begun; the
    /// handler runs when everything under way is answered, or @p timeout is over. After that, the destructor only waits
    /// for the client's own thread, which has nothing more to do: microseconds, or 100 ms if a look-up of the server's
    /// name hangs. A destructor that runs earlier does not wait for this call, which continues.
    /// @param timeout zero or negative: does not wait; `milliseconds::max()`: no limit.
    /// @param token for `void(boost::system::error_code, bool)`: whether everything was answered, as for shutdown(); a
    /// second call does nothing, and its handler gets true at once. Handler and executor as for Lock::asyncLock().
    /// **Cancellation** (terminal, partial and total) ends the wait as if @p timeout were over, with
    /// `boost::asio::error::operation_aborted`; the client has ended nevertheless. There are no other errors.
    template <CompletionTokenFor<bool> Token = boost::asio::deferred_t>
    auto asyncShutdown(std::chrono::milliseconds timeout, Token&& token = Token())
    {
        return boost::asio::async_initiate<Token, void(boost::system::error_code, bool)>(
            [engine = engine_](auto handler, std::chrono::milliseconds limit) {
                startShutdown(engine, limit, detail::FlagHandler(std::move(handler)));
            },
            token, timeout);
    }
    /// asyncShutdown(1s).
    template <CompletionTokenFor<bool> Token = boost::asio::deferred_t>
    auto asyncShutdown(Token&& token = Token())
    {
        return asyncShutdown(std::chrono::seconds(1), std::forward<Token>(token));
    }

    /// For programs without exceptions: the text of the exception (LockError::what()) that a call of this client or of
    /// its locks, semaphores and latches throws with this code. It names the server, quotes what the system or the
    /// server said, and says what to do. For a group, see GroupLock::describe(). Call it right after the failed call:
    /// the quotation is the last that the client met with this code, on any thread.
    ///
    /// @code
    /// std::error_code ec;
    /// lock.lock(ec);
    /// if (ec) { log(client.describe(ec, "lock \"stock:42\"")); }
    /// @endcode
    ///
    /// @param ec from this client; the handlers' `boost::system::error_code` fits too. Of another one: its message.
    /// @param call what was attempted, with which the text begins; empty: it begins with the server.
    /// @return one line without secrets. Of an out-of-range argument it does not tell the value.
    /// **Thread safety**: safe. Does no I/O and does not block; costs a string and a mutex.
    [[nodiscard]] std::string describe(const std::error_code& ec, std::string_view call = {}) const;

    /// The client's random UUID, the first part of its holders in Redis.
    [[nodiscard]] const std::string& id() const noexcept;
    /// The settings with which the client was made.
    [[nodiscard]] const Config& config() const noexcept;

private:
    using State = std::shared_ptr<detail::Engine>;

    static void startConnect(const State& engine, detail::FlagHandler handler);
    static void startShutdown(const State& engine, std::chrono::milliseconds timeout, detail::FlagHandler handler);

    State engine_;
    bool isOwner_ = true; ///< its end is that of the state: it was not moved from
};

} // namespace redislock
