/// @file
/// The steps of understand(). Used by it alone.
#pragma once

#include "history/history.hpp"

namespace redislock::test::history {

/// Sets `grants` and `orphans` from the replication stream.
void readTruth(History& history);
/// Sets `calls` and `holds` from what the clients wrote.
void readClients(History& history);
/// Finds the holder and the grant of each hold, and then the end of each belief.
void joinTruth(History& history);

} // namespace redislock::test::history
