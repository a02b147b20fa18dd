/// @file
/// The steps of understand(), which alone uses them.
#pragma once

#include "history/history.hpp"

namespace redislock::test::history {

/// Sets `grants` and `orphans` from the replication stream.
void readTruth(History& history);
/// Sets `calls` and `holds` from the lines of the clients.
void readClients(History& history);
/// Finds the holder and the grant of each hold, and then the end of each belief.
void joinTruth(History& history);

} // namespace redislock::test::history
