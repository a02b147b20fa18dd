/// @file
/// What the server reports about itself.
#pragma once

#include "reference/raw_connection.hpp"

#include <string>
#include <string_view>

namespace redislock::bench {

/// The number behind `<field>:` or `<field>=` in INFO; 0 when there is none.
double infoNumber(RawConnection& connection, std::string_view section, std::string_view field);

/// How many requests clients of the library have sent so far, but for those that open a connection. Redis counts the
/// commands that scripts call by the same names: so only those count that the library sends and no script calls.
double requestsSoFar(RawConnection& connection);

} // namespace redislock::bench
