#pragma once

#include "redislock/detail/protocol/script.hpp"

namespace redislock::detail::scripts {

extern const Script oddEmpty;
extern const Script oddEveryByte;

} // namespace redislock::detail::scripts
