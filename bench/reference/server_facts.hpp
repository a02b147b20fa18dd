/// @file
/// What the server says of itself.
#pragma once

#include "reference/raw_connection.hpp"

#include <string>
#include <string_view>

namespace redislock::bench {

/// The number behind `<field>:` or `<field>=` in INFO; 0 when there is none.
double infoNumber(RawConnection& connection, std::string_view section, std::string_view field);

} // namespace redislock::bench
