/// @file
/// Functions and coroutines that run under a lock, without blocking a thread.
#pragma once

#include "redislock/error.hpp"
#include "redislock/execute_with_lock.hpp"
#include "redislock/export.hpp"
#include "redislock/group_guard.hpp"
#include "redislock/group_lock.hpp"
#include "redislock/handler.hpp"
#include "redislock/initiate.hpp"
#include "redislock/lock.hpp"
#include "redislock/lock_guard.hpp"
#include "redislock/redis_lock.hpp"

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/error_code.hpp>

#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

namespace redislock {

namespace detail {

template <class Function>
using Returned = decltype(invokeUnder(std::declval<const LockGuard&>(), std::declval<Function&>()));

/// What a function under a lock returns: at once, or when its coroutine ends.
template <class T>
struct Produced {
    using Type = std::remove_cvref_t<T>;
    static constexpr bool isLater = false;
};
template <class T, class E>
struct Produced<boost::asio::awaitable<T, E>> {
    using Type = std::remove_cvref_t<T>;
    using Executor = E;
    static constexpr bool isLater = true;
};

/// failureOf() for the state of @p lock.
REDISLOCK_EXPORT std::exception_ptr failureOf(const Lock& lock, const char* verb, const boost::system::error_code& ec);
REDISLOCK_EXPORT std::exception_ptr failureOf(const GroupLock& lock, const char* verb,
                                              const boost::system::error_code& ec);

/// The type in which a caller with this token receives errors.
template <class Token>
using FailureFor = std::conditional_t<throwsErrors<std::decay_t<Token>>, std::exception_ptr, boost::system::error_code>;

/// What a call that runs the function ends with.
template <class Function>
using ResultOf = IfRun<typename Produced<Returned<std::decay_t<Function>>>::Type>;

/// The code of an exception that has one; otherwise `Errc::functionThrew`.
REDISLOCK_EXPORT boost::system::error_code codeOf(const std::exception_ptr& thrown);

/// Runs a function; the hold has ended when this returns or throws.
template <class Guard, class Function>
IfRun<typename Produced<Returned<Function>>::Type> runUnder(Guard guard, Function& function)
{
    const Guard held = std::move(guard); // not a parameter, whose end the caller decides
    if constexpr (std::is_void_v<Returned<Function>>) {
        invokeUnder(held, function);
        return true;
    } else {
        return invokeUnder(held, function);
    }
}

/// As runUnder(), for a function that returns a coroutine.
template <class Result, class Executor, class Guard, class Function>
boost::asio::awaitable<Result, Executor> awaitUnder(Guard guard, Function function)
{
    const Guard held = std::move(guard);
    if constexpr (std::is_void_v<typename Produced<Returned<Function>>::Type>) {
        co_await invokeUnder(held, function);
        co_return true;
    } else {
        co_return co_await invokeUnder(held, function);
    }
}

/// Runs the function when the lock is held, then calls the handler: the step between asyncTryLock() and the handler.
template <class Base, class Function, class Result, bool asExceptions>
class RunWhenHeld {
public:
    RunWhenHeld(Base lock, Function function) : lock_(std::move(lock)), function_(std::move(function)) {}

    template <class Next, class Guard>
    void operator()(Next handler, boost::system::error_code ec, Guard held)
    {
        using What = Produced<Returned<Function>>;
        if (ec || !held) {
            complete(std::move(handler), ec, failure(ec), Result());
        } else if constexpr (What::isLater) {
            using Executor = typename What::Executor;
            const Executor executor = boost::asio::get_associated_executor(handler);
            boost::asio::co_spawn(
                executor, awaitUnder<Result, Executor>(std::move(held), std::move(function_)),
                StepBefore{std::move(handler), [](auto next, const std::exception_ptr& thrown, Result result) {
                               complete(std::move(next), {}, thrown, std::move(result));
                           }});
        } else {
            std::exception_ptr thrown;
            auto result = [&]() -> Result {
                try {
                    return runUnder(std::move(held), function_);
                } catch (...) {
                    thrown = std::current_exception();
                    return Result();
                }
            }();
            complete(std::move(handler), ec, thrown, std::move(result));
        }
    }

private:
    /// The exception for the caller; null if the caller receives codes.
    std::exception_ptr failure(const boost::system::error_code& ec) const
    {
        return asExceptions ? failureOf(lock_, "asyncExecuteWithLock", ec) : nullptr;
    }

    template <class Next>
    static void complete(Next handler, boost::system::error_code ec, const std::exception_ptr& thrown, Result result)
    {
        if constexpr (asExceptions) {
            std::move(handler)(thrown, std::move(result));
        } else {
            std::move(handler)(thrown ? codeOf(thrown) : ec, std::move(result));
        }
    }

    Base lock_;
    Function function_;
};

} // namespace detail

/// executeWithLock() without blocking a thread: acquires @p lock, runs @p function, and releases the lock whatever
/// happens.
///
/// @param lock of any kind, also a MultiLock or RedLock.
/// @param wait how long to wait for the lock; zero: one attempt.
/// @param lease 10 ms … 30 days, or `keepRenewing`.
/// @param function called with no argument, or with the hold's `std::stop_token` where it takes one, on the handler's
/// executor; it may be a coroutine that returns `boost::asio::awaitable`, which runs there too. It continues when the
/// lock is lost: see cancelOnLoss().
/// @param token any completion token for `void(boost::system::error_code, T)`; T is `std::optional` of what the
/// function returned, empty when the lock was not acquired; for a function that returns nothing, `bool`: whether it
/// ran. Give the handler an executor; without one, a function runs on the client's own thread, where it must not block,
/// and a coroutine on the system executor. Errors as for Lock::asyncTryLock(). An exception of the function passes
/// unchanged through `use_awaitable`, the default, and `use_future`; all other tokens get its code if it is a
/// system_error, else `Errc::functionThrew`.
/// **Cancellation**: while it waits for the lock, as for asyncTryLock(): the function has not run then. Afterwards the
/// coroutine is cancelled.
///
/// @code
/// auto sold = co_await redislock::asyncExecuteWithLock(lock, 100ms, 10s, [&] { return sell(); });
/// @endcode
template <detail::AnyLock SomeLock, class Function, class Token = boost::asio::use_awaitable_t<>>
requires boost::asio::completion_token_for<Token, void(detail::FailureFor<Token>, detail::ResultOf<Function>)>
auto asyncExecuteWithLock(const SomeLock& lock, Wait wait, Lease lease, Function&& function, Token&& token = Token())
{
    using Run = std::decay_t<Function>;
    using Result = detail::ResultOf<Function>;
    return boost::asio::async_initiate<Token, void(detail::FailureFor<Token>, Result)>(
        [lock](auto handler, Run run, Wait w, Lease l) {
            using Base = std::conditional_t<std::is_base_of_v<Lock, SomeLock>, Lock, GroupLock>;
            using Step = detail::RunWhenHeld<Base, Run, Result, detail::throwsErrors<std::decay_t<Token>>>;
            lock.asyncTryLock(w, l, detail::StepBefore{std::move(handler), Step(lock, std::move(run))});
        },
        token, std::forward<Function>(function), wait, lease);
}

} // namespace redislock
