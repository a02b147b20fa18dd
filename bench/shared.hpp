/// @file
/// Several processes that want one lock all the time.
#pragma once

#include <string>
#include <vector>

namespace redislock::bench {

/// One of these processes, as sharing() starts it: its threads take and release the lock until the board says stop.
/// @param words the server's URL, the descriptor of the board, this process' number, its threads, microseconds under
/// the lock, how it takes the lock ("lock", "guard", or by a RetryPolicy: "sleep", "spin", "both"; a plain or a fair lock
/// that is held for between two thirds and four thirds of that time: "varied", "fair"), and microseconds after each lock.
void runSharer(const std::vector<std::string>& words);
inline constexpr int sharerWords = 7;

} // namespace redislock::bench
