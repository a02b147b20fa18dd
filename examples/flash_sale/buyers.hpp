/// @file
/// The users, who want to buy.
#pragma once

#include "flash_sale/settings.hpp"

#include <cstdint>

namespace flash {

/// How many orders the users make: every twentieth makes two, at once and with a number each.
int ordersOf(const Settings& settings);

/// One process of buyers. They come slowly first, and many when word has got round; each asks until there is an answer,
/// always with the same number, and every tenth once more. What all were told is kept in the database.
/// @param number of the process, from 0. @param port of the service on this machine. @param start when the sale opened
void buy(const Settings& settings, int number, std::uint16_t port, Clock::time_point start);

} // namespace flash
