/// @file
/// Locks as people and machines read them.
#pragma once

#include "text.hpp"

#include <redislock/redislock.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::tool {

/// The order of a table.
enum class Sort {
    name,
    left,    ///< those first that end first
    waiters, ///< those first for which most wait
    age,     ///< those first whose holders have been connected for longest
};

/// Whether standard output is a terminal that knows escape sequences (TERM is set, and not `dumb`).
bool isScreen();
/// How wide a line on standard output may be: on a terminal as wide as that is (or COLUMNS says, if it does not say
/// that itself); 0, elsewhere: any width.
std::size_t outputWidth();
/// The text in bold, or unchanged where standard output may show no colours (NO_COLOR).
std::string bold(std::string_view text);
/// The text in red, or unchanged.
std::string red(std::string_view text);

/// How long the lock stays, `never ends` for a key without time to live.
std::string timeLeft(const LockReport& lock);
/// `web-3, process 4711`, or what is known instead.
std::string whereabouts(const LockHolder& holder);
/// `held by web-3, process 4711, 29 s left, 2 wait`.
std::string heldBy(const LockReport& lock);
/// Prints who holds a lock, and who waits.
void describe(const LockReport& lock);
/// The holder that counts: a writer's own reading is no second holder. The lock must have one.
const LockHolder& mainHolder(const LockReport& lock);

/// Sorts locks; by name where the order says nothing.
void sortLocks(std::vector<LockReport>& locks, Sort order);
/// A line for the head of the table, then one for each lock, without line ends. What matters comes first; what does not
/// fit the width is left out by columns, the holder shortened, and a name that is too long for its column put on a line
/// of its own: no name is cut. @param width 0: any
std::vector<std::string> tableOf(const std::vector<LockReport>& locks, Sort order, std::size_t width);

/// One JSON object on one line.
std::string jsonOf(const LockReport& lock);
/// @param wasTaken whether a lock could be taken; nothing: that was not tried.
std::string jsonOf(const ServerReport& server, std::optional<bool> wasTaken, const std::vector<std::string>& problems);

} // namespace redislock::tool
