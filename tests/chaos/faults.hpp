/// @file
/// What a chaos run breaks.
#pragma once

#include "chaos/world.hpp"

#include <cstddef>
#include <vector>

namespace redislock::test::chaos {

/// Something that goes wrong for a while and is over when inject() returns.
struct Fault {
    const char* name;
    /// @return how often it took effect; a fault that did not proves nothing.
    std::size_t (*inject)(World& world);
};

const std::vector<Fault>& allFaults();

} // namespace redislock::test::chaos
