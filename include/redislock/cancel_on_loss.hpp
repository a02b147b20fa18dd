/// @file
/// Asynchronous work that is cancelled when its lock is lost.
#pragma once

#include "redislock/handler.hpp"
#include "redislock/lock_guard.hpp"
#include "redislock/stop_at.hpp"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/prefer.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

namespace redislock {

namespace detail {

/// The signal of one operation: emitted when a stop token is stopped, or when its starter is cancelled. Used before the
/// operation begins, and then on the handler's executor, except for begunOrStopped(), which only posts.
class LossSignal : public std::enable_shared_from_this<LossSignal> {
public:
    /// The token may be stopped already; it cancels nothing before the operation has begun, which would not notice.
    template <class Executor>
    void watch(std::stop_token stop, const Executor& executor)
    {
        cancel_ = [weak = weak_from_this(),
                   later = boost::asio::prefer(executor, boost::asio::execution::blocking.never)] {
            later.execute([weak] {
                if (const auto self = weak.lock()) {
                    self->signal_.emit(boost::asio::cancellation_type::terminal);
                }
            });
        };
        onStop_.emplace(std::move(stop), [this] { begunOrStopped(); });
    }

    /// Called when the operation has begun (it may have ended on another thread by then) and when the token is stopped:
    /// the second call cancels.
    void begunOrStopped()
    {
        if (isSecond_.test_and_set()) {
            cancel_();
        }
    }

    /// Passes on what the starter of the operation cancels.
    void follow(boost::asio::cancellation_slot starter)
    {
        if (starter.is_connected()) {
            starter.assign([weak = weak_from_this()](boost::asio::cancellation_type type) {
                if (const auto self = weak.lock()) { // the starter may outlive the operation, and its context
                    self->signal_.emit(type);
                }
            });
            starter_ = starter;
        }
    }

    void end()
    {
        onStop_.reset();
        starter_.clear();
    }

    boost::asio::cancellation_slot slot() noexcept { return signal_.slot(); }

private:
    boost::asio::cancellation_signal signal_;
    boost::asio::cancellation_slot starter_;
    std::function<void()> cancel_;
    std::atomic_flag isSecond_;
    std::optional<std::stop_callback<std::function<void()>>> onStop_;
};

} // namespace detail

/// A completion token that cancels its operation when a lock is lost. Made by cancelOnLoss().
template <class Token>
struct CancelOnLoss {
    std::stop_token stop; ///< stopped when the lock is lost or at risk
    Token token;          ///< completes the operation
};

/// Cancels an asynchronous operation, or a whole coroutine, when the lock under which it runs is lost.
///
/// The operation ends as if it had been cancelled (terminal) by whoever started it, whose own cancellation still works:
/// most end with `boost::asio::error::operation_aborted`, and a coroutine with everything that it awaits. It runs for
/// as long as that takes, although the lock is no longer held.
///
/// @param held the guard of the lock; may be moved or destroyed meanwhile. A guard that is empty, or whose lock has
/// been lost, cancels at once. A regular release cancels nothing.
/// @param when `StopAt::atRisk` leaves time to stop while the lock is still held.
/// @param token any completion token; the handler needs an associated executor, on which the cancellation is emitted
/// and which must not run two handlers of the operation at the same time (a coroutine's executor is right; in a pool
/// use a strand). When its context is destroyed while the operation is under way, there is nothing left to cancel.
///
/// @code
/// auto held = co_await lock.asyncLock();
/// co_await asio::co_spawn(executor, sell(), redislock::cancelOnLoss(held, StopAt::atRisk));
/// @endcode
template <class Token = boost::asio::deferred_t>
[[nodiscard]] CancelOnLoss<std::decay_t<Token>> cancelOnLoss(const LockGuard& held, StopAt when,
                                                             Token&& token = Token())
{
    return {held.stopToken(when), std::forward<Token>(token)};
}

} // namespace redislock

/// @cond
template <class Token, class... Signatures>
class boost::asio::async_result<redislock::CancelOnLoss<Token>, Signatures...> {
public:
    template <class Initiation, class... Arguments>
    static auto initiate(Initiation&& initiation, redislock::CancelOnLoss<Token> with, Arguments&&... arguments)
    {
        return async_initiate<Token, Signatures...>(
            [stop = std::move(with.stop)](auto handler, auto begin, auto... rest) {
                const auto signal = std::make_shared<redislock::detail::LossSignal>();
                const auto executor = get_associated_executor(handler);
                signal->follow(get_associated_cancellation_slot(handler));
                signal->watch(std::move(stop), executor);
                const auto slot = signal->slot();
                std::move(begin)(
                    bind_cancellation_slot(slot, redislock::detail::StepBefore{std::move(handler),
                                                                               [signal](auto next, auto&&... results) {
                                                                                   signal->end();
                                                                                   std::move(next)(
                                                                                       std::forward<decltype(results)>(
                                                                                           results)...);
                                                                               }}),
                    std::move(rest)...);
                signal->begunOrStopped();
            },
            with.token, std::forward<Initiation>(initiation), std::forward<Arguments>(arguments)...);
    }
};
/// @endcond
