/// @file
/// The completion handlers of asynchronous calls, and their execution contexts.
#pragma once

#include "redislock/asio_options.hpp"
#include "redislock/fwd.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/associator.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/query.hpp>
#include <boost/system/error_code.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

namespace boost::asio {
class system_context;
namespace detail {
template <typename T, typename Blocking>
class promise_executor;
} // namespace detail
} // namespace boost::asio

namespace redislock {

/// The parameter of asynchronous calls: a completion token of Asio for a call that ends with a code and these results,
/// for instance a function object that can be called with them.
template <class Token, class... Results>
concept CompletionTokenFor = boost::asio::completion_token_for<Token, void(boost::system::error_code, Results...)>;

} // namespace redislock

namespace redislock::detail {

/// Whether an executor's context is the system's: it ends with the program, and to ask for it starts its threads.
template <class Executor>
constexpr bool isOfTheSystem = std::is_same_v<
    std::remove_cvref_t<decltype(boost::asio::query(std::declval<const Executor&>(), boost::asio::execution::context))>,
    boost::asio::system_context>;
/// The same for the executor of `use_future`.
template <class T, class Blocking>
constexpr bool isOfTheSystem<boost::asio::detail::promise_executor<T, Blocking>> = true;

/// The context of a handler's own executor; null without an executor, for an executor that does not tell its context,
/// and for the system's context.
template <class User>
boost::asio::execution_context* contextOf(const User& handler)
{
    using boost::asio::execution::context;
    const auto executor = boost::asio::get_associated_executor(handler, boost::asio::any_completion_executor());
    using Executor = std::remove_cv_t<decltype(executor)>;
    if constexpr (boost::asio::can_query_v<const Executor&, decltype(context)>) {
        if constexpr (!isOfTheSystem<Executor> && std::is_convertible_v<decltype(boost::asio::query(executor, context)),
                                                                        boost::asio::execution_context&>) {
            boost::asio::execution_context& known = boost::asio::query(executor, context);
            return &known;
        }
    }
    return nullptr;
}

/// A handler without its type, and the context that may end before it is called.
template <class Result>
struct Handler {
    template <class User>
    explicit Handler(User user) : context(contextOf(user)), function(std::move(user))
    {
    }

    boost::asio::execution_context* context;
    boost::asio::any_completion_handler<void(boost::system::error_code, Result)> function;
};

using LockHandler = Handler<LockGuard>;
using GroupHandler = Handler<GroupGuard>;
using UnlockHandler = Handler<Unlocked>;
using FlagHandler = Handler<bool>;
using TimeHandler = Handler<std::optional<std::chrono::milliseconds>>;
using NumberHandler = Handler<std::int64_t>;
using PermitHandler = Handler<Permit>;

/// A step before a handler: calls @p then with it, and has its executor, allocator and cancellation slot.
template <class Next, class Then>
struct StepBefore {
    Next handler;
    Then then;

    template <class... Arguments>
    void operator()(Arguments&&... arguments)
    {
        std::move(then)(std::move(handler), std::forward<Arguments>(arguments)...);
    }
};

template <class Next, class Then>
StepBefore(Next, Then) -> StepBefore<Next, Then>;

/// A handler that gets only the code.
template <class Next>
FlagHandler withoutResult(Next next)
{
    return FlagHandler(
        StepBefore{std::move(next), [](Next handler, boost::system::error_code ec, bool) { std::move(handler)(ec); }});
}

} // namespace redislock::detail

template <template <class, class> class Associator, class Next, class Then, class Default>
struct boost::asio::associator<Associator, redislock::detail::StepBefore<Next, Then>, Default>
    : Associator<Next, Default> {
    static auto get(const redislock::detail::StepBefore<Next, Then>& step) noexcept
    {
        return Associator<Next, Default>::get(step.handler);
    }
    static auto get(const redislock::detail::StepBefore<Next, Then>& step, const Default& fallback) noexcept
    {
        return Associator<Next, Default>::get(step.handler, fallback);
    }
};
