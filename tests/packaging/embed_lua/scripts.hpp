#pragma once

#include "wire/script.hpp"

namespace redislock::detail::scripts {

extern const Script oddEmpty;
extern const Script oddEveryByte;
extern const Script oddInParts;

} // namespace redislock::detail::scripts
