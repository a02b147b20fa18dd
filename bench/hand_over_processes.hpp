/// @file
/// The library's side of the rows about a hand-over between two processes.
#pragma once

#include "measurement.hpp"

#include <string>

namespace redislock::bench {

/// The median time, in µs, from unlock() called in this process until lock() returns in another one.
/// @param kind of the lock: "plain" or "fair".
Side handOverSide(const std::string& url, const std::string& kind);

} // namespace redislock::bench
