/// @file
/// The words of a history for the results of unlock().
#pragma once

#include <redislock/unlocked.hpp>

#include <array>
#include <cstddef>
#include <string>

namespace redislock::test::history {

inline std::string nameOf(Unlocked how)
{
    constexpr std::array names{"released", "stillHeld", "alreadyLost", "unconfirmed", "passedOn"};
    return names.at(static_cast<std::size_t>(how));
}

} // namespace redislock::test::history
