#pragma once

#include "wire/script.hpp"

namespace redislock::detail::scripts {

extern const Script oddStrings;
extern const Script oddInParts;

} // namespace redislock::detail::scripts
