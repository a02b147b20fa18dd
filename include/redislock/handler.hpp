/// @file
/// The completion handlers of asynchronous calls.
#pragma once

#include "redislock/fwd.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/associator.hpp>
#include <boost/system/error_code.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

namespace redislock::detail {

template <class Result>
using Handler = boost::asio::any_completion_handler<void(boost::system::error_code, Result)>;

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

/// A handler that gets the code alone.
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
