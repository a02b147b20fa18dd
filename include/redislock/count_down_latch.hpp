/// @file
/// The latch that opens once.
#pragma once

#include "redislock/error.hpp"
#include "redislock/export.hpp"
#include "redislock/fwd.hpp"
#include "redislock/handler.hpp"
#include "redislock/initiate.hpp"
#include "redislock/lease_time.hpp"

#include <boost/asio/deferred.hpp>

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>

namespace redislock {

/// A count-down latch in Redis, shared by all processes that use its name: the `std::latch` of a fleet.
///
/// In Redis it is Redisson's `RCountDownLatch`: the count as a string at the name, deleted when it comes to zero, and
/// messages on `redisson_countdownlatch__channel__{<name>}` (`0`: open, `1`: a new count). For about a minute, further
/// keys (`redislock_request:{<name>}:…`) keep the answers to requests that may be sent again; Java does not see them.
///
/// **Guarantees**, while Redis keeps what it acknowledged: a countDown() that returned counts exactly once, however
/// often its request and reply are lost, doubled or late (up to a minute); all waiters in all processes continue when
/// the count reaches zero, at the latest at their next poll (`Config::pollInterval`).
///
/// **Does not distinguish** an open latch from one that never existed or was lost: **a latch without a key is open**,
/// as in Redisson, which deletes the key of an open latch. So the waiters continue when the server loses its data, when
/// the key is evicted, and after forceDelete(). If that would do harm, check afterwards that the work was done.
///
/// | latch                | trySetCount(n)   | countDown()                  | getCount() | wait()                 |
/// |----------------------|------------------|------------------------------|------------|------------------------|
/// | no key: open         | closes it: n     | nothing                      | 0          | returns                |
/// | count 1              | false            | opens it, tells all waiters  | 1          | waits                  |
/// | count 2 or more      | false            | count − 1                    | the count  | waits                  |
///
/// An open latch may be set again; callers that still wait then wait for the new count.
///
/// **Thread safety**: distinct objects: safe. Shared objects: safe; one object may be used by many threads. Objects of
/// one name and one client are the same latch.
/// **Blocking**: calls that ask Redis block their thread; none may be made on the client's own thread
/// (`wouldDeadlock`). **Lifetime**: cheap to make and to copy; may outlive its Client, whose end turns every call into
/// `Errc::shutdown`. **Cost**: a round trip for each call that need not wait; a waiting process has one subscription
/// for each name, and sends one request for each waiter at each message and poll. The key has no time to live: a latch
/// that nobody opens stays in Redis.
///
/// @code
/// redislock::CountDownLatch ready = client.getCountDownLatch("deploy:7");
/// ready.trySetCount(3);
/// ready.wait();      // until three processes have called ready.countDown()
/// @endcode
class REDISLOCK_EXPORT CountDownLatch {
public:
    /// Moving copies: a moved-from latch is still the same latch.
    CountDownLatch(const CountDownLatch&) noexcept = default;
    CountDownLatch& operator=(const CountDownLatch&) noexcept = default; ///< as above
    /// Closes the latch, unless it is closed. Blocks for one round trip, without a server for
    /// `Config::unreachableAfter`.
    /// @param count 1 … 2 147 483 647. @return whether this call closed it.
    /// @throws LockError `invalidArgument`, `unreachable`, `serverRefused`, `authFailed`, `permissionDenied`,
    /// `wrongType`, `wouldDeadlock`, `shutdown`, `forked`. After `unreachable` it is not known whether it was closed.
    bool trySetCount(std::int64_t count) const;
    /// As trySetCount(), without exceptions: @p ec is cleared on success.
    bool trySetCount(std::int64_t count, std::error_code& ec) const;

    /// Counts down by one; at zero the latch opens. An open latch stays open. Blocks for one round trip, without a
    /// server for `Config::unreachableAfter`. @return the count that is left.
    /// @throws LockError as trySetCount(). After `unreachable`, `serverRefused` and `badReply` the same count-down is
    /// repeated in the background for up to a minute, and counts once: do not repeat it yourself.
    std::int64_t countDown() const;
    /// As countDown(), without exceptions.
    std::int64_t countDown(std::error_code& ec) const;

    /// The count; 0 for an open latch. Blocks for one round trip. @throws LockError as trySetCount().
    [[nodiscard]] std::int64_t getCount() const;
    /// As getCount(), without exceptions.
    [[nodiscard]] std::int64_t getCount(std::error_code& ec) const;

    /// Waits until the latch is open, as long as it takes. Blocks. @throws LockError as trySetCount().
    void wait() const;
    /// As wait(), without exceptions.
    void wait(std::error_code& ec) const;
    /// As wait(), until @p stop is stopped: the call then ends soon, like the calls of a Lock that are called off (see
    /// LockCalls). @return whether the latch is open; false: called off.
    [[nodiscard]] bool wait(std::stop_token stop) const;
    /// As wait(stop), without exceptions.
    [[nodiscard]] bool wait(std::stop_token stop, std::error_code& ec) const;
    /// Waits until the latch is open or @p limit is over. Blocks for at most @p limit, whatever happens; `unreachable`
    /// if there was no answer by then. @param limit zero or negative: looks once; `waitForever`: as wait(). @param stop
    /// calls it off when it is stopped.
    /// @return whether it is open. @throws LockError as wait().
    [[nodiscard]] bool wait(Wait limit, std::stop_token stop = {}) const;
    /// As wait(limit), without exceptions.
    [[nodiscard]] bool wait(Wait limit, std::error_code& ec) const;
    /// As wait(limit, stop), without exceptions.
    [[nodiscard]] bool wait(Wait limit, std::stop_token stop, std::error_code& ec) const;

    /// Deletes the latch, which opens it. Blocks for one round trip. @return whether there was a count.
    /// @throws LockError as trySetCount().
    bool forceDelete() const;
    /// As forceDelete(), without exceptions.
    bool forceDelete(std::error_code& ec) const;

    /// The name as given to the Client.
    [[nodiscard]] const std::string& name() const noexcept;

    /// trySetCount() without blocking a thread. @param token any completion token for
    /// `void(boost::system::error_code, bool)`. The handler is called once, on its associated executor; without one on
    /// the client's own thread, where it must not block. Errors as codes. **Cancellation** (terminal, partial and
    /// total) ends the call with `boost::asio::error::operation_aborted`; whether the latch was closed is then not
    /// known. **Lifetime** as for Lock::asyncLock(): the executor's context may end first.
    template <CompletionTokenFor<bool> Token = boost::asio::deferred_t>
    auto asyncTrySetCount(std::int64_t count, Token&& token = Token()) const
    {
        return detail::initiate<Token, bool>(
            "asyncTrySetCount", state_,
            [state = state_](auto handler, std::int64_t n) {
                startSet(state, n, detail::FlagHandler(std::move(handler)));
            },
            token, count);
    }
    /// countDown() without blocking a thread. @param token for `void(boost::system::error_code, std::int64_t)`. A
    /// cancelled count-down is repeated in the background as well.
    template <CompletionTokenFor<std::int64_t> Token = boost::asio::deferred_t>
    auto asyncCountDown(Token&& token = Token()) const
    {
        return detail::initiate<Token, std::int64_t>(
            "asyncCountDown", state_,
            [state = state_](auto handler) { startCountDown(state, detail::NumberHandler(std::move(handler))); },
            token);
    }
    /// getCount() without blocking a thread. @param token for `void(boost::system::error_code, std::int64_t)`.
    template <CompletionTokenFor<std::int64_t> Token = boost::asio::deferred_t>
    auto asyncGetCount(Token&& token = Token()) const
    {
        return detail::initiate<Token, std::int64_t>(
            "asyncGetCount", state_,
            [state = state_](auto handler) { startGet(state, detail::NumberHandler(std::move(handler))); }, token);
    }
    /// wait() without blocking a thread. @param token for `void(boost::system::error_code)`; can be cancelled.
    template <CompletionTokenFor<> Token = boost::asio::deferred_t>
    auto asyncWait(Token&& token = Token()) const
    {
        return detail::initiate<Token, void>(
            "asyncWait", state_,
            [state = state_](auto handler) {
                startWait(state, waitForever, detail::withoutResult(std::move(handler)));
            },
            token);
    }
    /// wait(limit) without blocking a thread. @param token for `void(boost::system::error_code, bool)`; can be
    /// cancelled.
    template <CompletionTokenFor<bool> Token = boost::asio::deferred_t>
    auto asyncWait(Wait limit, Token&& token = Token()) const
    {
        return detail::initiate<Token, bool>(
            "asyncWait", state_,
            [state = state_](auto handler, Wait w) { startWait(state, w, detail::FlagHandler(std::move(handler))); },
            token, limit);
    }
    /// forceDelete() without blocking a thread. @param token for `void(boost::system::error_code, bool)`.
    template <CompletionTokenFor<bool> Token = boost::asio::deferred_t>
    auto asyncForceDelete(Token&& token = Token()) const
    {
        return detail::initiate<Token, bool>(
            "asyncForceDelete", state_,
            [state = state_](auto handler) { startDelete(state, detail::FlagHandler(std::move(handler))); }, token);
    }

private:
    friend class Client;
    using State = std::shared_ptr<detail::NamedCounter>;

    explicit CountDownLatch(State state) noexcept : state_(std::move(state)) {}

    static void startSet(const State& state, std::int64_t count, detail::FlagHandler handler);
    static void startCountDown(const State& state, detail::NumberHandler handler);
    static void startGet(const State& state, detail::NumberHandler handler);
    static void startWait(const State& state, Wait limit, detail::FlagHandler handler);
    static void startDelete(const State& state, detail::FlagHandler handler);

    State state_;
};

} // namespace redislock
