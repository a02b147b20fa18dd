/// @file
/// What the server says of itself.
#pragma once

#include "reference/raw_connection.hpp"

#include <string>
#include <string_view>

namespace redislock::bench {

/// The number behind `<field>:` or `<field>=` in INFO; 0 when there is none.
double infoNumber(RawConnection& connection, std::string_view section, std::string_view field);

/// How many requests clients have sent so far. Redis counts what scripts call too, by the same names; those names are
/// left out, which is right because the library sends none of them itself.
double requestsSoFar(RawConnection& connection);

} // namespace redislock::bench
