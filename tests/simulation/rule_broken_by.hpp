/// @file
/// For tests of the checkers.
#pragma once

#include "simulation/safety_checker.hpp"

#include <chrono>
#include <string>

namespace redislock::simulation {

/// When the checkers are asked, where nothing needs another time.
inline constexpr VirtualTime checkedAt = std::chrono::seconds(1);

/// The first word of the rule that the function broke, "S1"; "none".
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
