/// @file
/// For tests of the checkers.
#pragma once

#include "simulation/safety_checker.hpp"

#include <chrono>
#include <string>

namespace redislock::simulation {

/// The time of checks that do not need another time.
inline constexpr VirtualTime checkedAt = std::chrono::seconds(1);

/// The first word of the rule that the function broke, such as "S1"; or "none".
template <class Function>
std::string ruleBrokenBy(Function function)
{
    try {
        function();
    } catch (const Violation& violation) {
        const std::string what = violation.what();
        return what.substr(0, what.find(' '));
    }
    return "none";
}

} // namespace redislock::simulation
