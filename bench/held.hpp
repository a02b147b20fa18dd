/// @file
/// What the renewals of held locks cost.
#pragma once

#include "reference/raw_connection.hpp"

#include <redislock/config.hpp>

#include <cstddef>
#include <span>

namespace redislock::bench {

struct RenewalCost {
    double client;   ///< cores
    double servers;  ///< cores, of all of them together
    double requests; ///< a second
};

/// Holds @p locks locks of a client with these settings for two and a half leases, and measures the last two.
/// @param servers a connection to each of the client's servers
RenewalCost costOfRenewals(const Config& config, std::span<RawConnection> servers, std::size_t locks);

} // namespace redislock::bench
