/// @file
/// The users who want to buy.
#pragma once

#include "flash_sale/settings.hpp"

#include <cstdint>

namespace flash {

/// How many orders the users make: every twentieth user makes two at once, each with a number of its own.
int ordersOf(const Settings& settings);

/// One process of buyers. At first few come, later many. Each buyer asks until there is an answer, always with the same
/// number, and every tenth buyer asks once more. The answers to all buyers are kept in the database.
/// @param number of the process, from 0. @param port of the service on this machine. @param start when the sale opened
void buy(const Settings& settings, int number, std::uint16_t port, Clock::time_point start);

} // namespace flash
