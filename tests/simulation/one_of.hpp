/// @file A random choice.
#pragma once

#include "redislock/random.hpp"

#include <cstddef>

namespace redislock::simulation {

/// One of some values, each with the same chance; a value that is listed twice has twice the chance.
template <class Value, std::size_t size>
Value oneOf(Random& chance, const Value (&values)[size])
{
    return values[static_cast<std::size_t>(chance.unit() * static_cast<double>(size))];
}

} // namespace redislock::simulation
