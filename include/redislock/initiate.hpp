/// @file
/// How asynchronous calls begin.
#pragma once

#include "redislock/export.hpp"
#include "redislock/fwd.hpp"
#include "redislock/handler.hpp"

#include <boost/asio/async_result.hpp>
#include <boost/system/error_code.hpp>

#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

namespace boost::asio {
template <class Executor>
struct use_awaitable_t;
template <class Allocator>
class use_future_t;
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
template <class Failure, class Result>
struct Completes {
    using Signature = void(Failure, Result);
};
template <class Failure>
struct Completes<Failure, void> {
    using Signature = void(Failure);
};

/// async_initiate() with a code for most tokens, and with an exception that says what failed for those that throw it.
/// @param verb, state passed to failureOf(). @param begin called with the handler of a code, and the arguments.
template <class Token, class Result, class State, class Begin, class... Arguments>
auto initiate(const char* verb, const std::shared_ptr<State>& state, Begin begin, Token& token,
              Arguments&&... arguments)
{
    if constexpr (throwsErrors<std::decay_t<Token>>) {
        return boost::asio::async_initiate<Token, typename Completes<std::exception_ptr, Result>::Signature>(
            [verb, state, begin = std::move(begin)](auto handler, auto... rest) mutable {
                begin(StepBefore{std::move(handler),
                                 [verb, state](auto next, const boost::system::error_code& ec, auto... result) {
                                     std::move(next)(failureOf(*state, verb, ec), std::move(result)...);
                                 }},
                      std::move(rest)...);
            },
            token, std::forward<Arguments>(arguments)...);
    } else {
        return boost::asio::async_initiate<Token, typename Completes<boost::system::error_code, Result>::Signature>(
            std::move(begin), token, std::forward<Arguments>(arguments)...);
    }
}

} // namespace redislock::detail
