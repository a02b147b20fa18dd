/// @file
/// What the server reports about itself.
#pragma once

#include "reference/raw_connection.hpp"

#include <string>
#include <string_view>

namespace redislock::bench {

/// The number behind `<field>:` or `<field>=` in INFO; 0 when there is none.
double infoNumber(RawConnection& connection, std::string_view section, std::string_view field);

/// How many requests clients have sent so far. Redis also counts the commands that scripts call, by the same names.
/// These names are left out, which is correct because the library itself sends none of them.
double requestsSoFar(RawConnection& connection);

} // namespace redislock::bench
