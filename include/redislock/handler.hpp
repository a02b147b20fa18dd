/// @file
/// The completion handlers of asynchronous calls, erased.
#pragma once

#include "redislock/fwd.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/system/error_code.hpp>

#include <chrono>
#include <optional>

namespace redislock::detail {

template <class Result>
using Handler = boost::asio::any_completion_handler<void(boost::system::error_code, Result)>;

using LockHandler = Handler<LockGuard>;
using UnlockHandler = Handler<Unlocked>;
using FlagHandler = Handler<bool>;
using TimeHandler = Handler<std::optional<std::chrono::milliseconds>>;

} // namespace redislock::detail
