/// @file
/// How asynchronous calls begin.
#pragma once

#include "redislock/export.hpp"
#include "redislock/fwd.hpp"
#include "redislock/handler.hpp"

#include <boost/asio/async_result.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>

#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

namespace boost::asio {
template <class Executor>
struct use_awaitable_t;
template <class Allocator>
class use_future_t;
class deferred_t;
#if BOOST_VERSION < 108700 // newer versions have another template: see the end of this file
namespace detail {
template <typename Signature, typename Executor>
class awaitable_async_op_handler;
} // namespace detail
#endif
} // namespace boost::asio

namespace redislock::detail {

/// Whether a caller with this token receives errors as exceptions: then it gets the exceptions that the library makes.
template <class Token>
constexpr bool throwsErrors = false;
template <class E>
constexpr bool throwsErrors<boost::asio::use_awaitable_t<E>> = true;
template <class A>
constexpr bool throwsErrors<boost::asio::use_future_t<A>> = true;

/// The exception of a call that ended with an error: a `boost::system::system_error` whose message names the call, the
/// lock and the server, as that of a LockError does. Null without an error.
REDISLOCK_EXPORT std::exception_ptr failureOf(const NamedLock& lock, const char* verb,
                                              const boost::system::error_code& ec);
REDISLOCK_EXPORT std::exception_ptr failureOf(const NamedCounter& counter, const char* verb,
                                              const boost::system::error_code& ec);
REDISLOCK_EXPORT std::exception_ptr failureOf(const GroupState& group, const char* verb,
                                              const boost::system::error_code& ec);

/// The signature of a handler that gets a result, or none. @tparam Failure a code or an exception
template <class Failure, class Result, class Return = void>
struct Completes {
    using Signature = Return(Failure, Result);
};
template <class Failure, class Return>
struct Completes<Failure, void, Return> {
    using Signature = Return(Failure);
};

/// What handlers of operations that `deferred` makes return by their signature. Asio ignores this type; by it the
/// specializations below know a coroutine that awaits such an operation of the library.
struct Deferred;
template <class... Results>
using DeferredSignature = Deferred(boost::system::error_code, Results...);

/// What such a coroutine gets.
template <class Result>
struct AwaitedResult {
    std::exception_ptr failure;
    Result result;
};

/// Whether the handler is a coroutine that awaits an operation of the library without a token.
template <class Handler>
constexpr bool awaitsDirectly = false;
#if BOOST_VERSION < 108700
template <class... Arguments, class Executor>
constexpr bool awaitsDirectly<boost::asio::detail::awaitable_async_op_handler<Deferred(Arguments...), Executor>> = true;
#endif

inline std::exception_ptr exceptionOf(const boost::system::error_code& ec)
{
    return ec ? std::make_exception_ptr(boost::system::system_error(ec)) : nullptr;
}

/// Hands an exception that says what failed to a handler that takes exceptions.
template <class Handler, class State>
auto explaining(Handler handler, const char* verb, const std::shared_ptr<State>& state)
{
    return StepBefore{std::move(handler),
                      [verb, state](auto next, const boost::system::error_code& ec, auto... result) {
                          std::move(next)(failureOf(*state, verb, ec), std::move(result)...);
                      }};
}

/// async_initiate() with a code for most tokens, and with an exception that says what failed for those that throw it.
/// @param verb passed to failureOf(), as `state` is. @param begin called with the handler of a code, and the arguments.
template <class Token, class Result, class State, class Begin, class... Arguments>
auto initiate(const char* verb, const std::shared_ptr<State>& state, Begin begin, Token& token,
              Arguments&&... arguments)
{
    if constexpr (throwsErrors<std::decay_t<Token>>) {
        return boost::asio::async_initiate<Token, typename Completes<std::exception_ptr, Result>::Signature>(
            [verb, state, begin = std::move(begin)](auto handler, auto... rest) mutable {
                begin(explaining(std::move(handler), verb, state), std::move(rest)...);
            },
            token, std::forward<Arguments>(arguments)...);
    } else if constexpr (std::is_same_v<std::decay_t<Token>, boost::asio::deferred_t>) {
        return boost::asio::async_initiate<Token,
                                           typename Completes<boost::system::error_code, Result, Deferred>::Signature>(
            [verb, state, begin = std::move(begin)](auto handler, auto... rest) mutable {
                if constexpr (awaitsDirectly<decltype(handler)>) {
                    begin(explaining(std::move(handler), verb, state), std::move(rest)...);
                } else {
                    begin(std::move(handler), std::move(rest)...);
                }
            },
            token, std::forward<Arguments>(arguments)...);
    } else {
        return boost::asio::async_initiate<Token, typename Completes<boost::system::error_code, Result>::Signature>(
            std::move(begin), token, std::forward<Arguments>(arguments)...);
    }
}

} // namespace redislock::detail

#if BOOST_VERSION < 108700

/// A coroutine that awaits an operation of the library directly: its exception is that of the library. Without this,
/// and with newer versions of Asio, Asio makes one of the code, which names neither the call nor the lock.
template <class Result, class Executor>
class boost::asio::detail::awaitable_async_op_handler<redislock::detail::DeferredSignature<Result>, Executor>
    : public awaitable_async_op_handler<void(redislock::detail::AwaitedResult<Result>), Executor> {
    using Base = awaitable_async_op_handler<void(redislock::detail::AwaitedResult<Result>), Executor>;

public:
    using Base::Base;

    void operator()(std::exception_ptr failure, Result result)
    {
        Base::operator()({std::move(failure), std::move(result)});
    }
    /// For a handler that another one calls, which knows no exception.
    void operator()(const boost::system::error_code& ec, Result result)
    {
        (*this)(redislock::detail::exceptionOf(ec), std::move(result));
    }

    static Result resume(typename Base::result_type& result)
    {
        auto awaited = Base::resume(result);
        if (awaited.failure) {
            std::rethrow_exception(std::move(awaited.failure));
        }
        return std::move(awaited.result);
    }
};

/// The same for operations without a result.
template <class Executor>
class boost::asio::detail::awaitable_async_op_handler<redislock::detail::DeferredSignature<>, Executor>
    : public awaitable_async_op_handler<void(std::exception_ptr), Executor> {
    using Base = awaitable_async_op_handler<void(std::exception_ptr), Executor>;

public:
    using Base::Base;
    using Base::operator();

    void operator()(const boost::system::error_code& ec) { Base::operator()(redislock::detail::exceptionOf(ec)); }
};

#endif
