/// @file
/// Locks as people and machines read them.
#pragma once

#include <redislock/redislock.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::tool {

/// Whether standard output is a terminal that knows escape sequences (TERM is set, and not `dumb`).
bool isScreen();
/// The text in bold, or unchanged where standard output may show no colours (NO_COLOR).
std::string bold(std::string_view text);
/// The text in red, or unchanged.
std::string red(std::string_view text);

/// `1.5 s`, `2 min`.
std::string inWords(std::chrono::milliseconds time);
/// How long the lock stays, `never ends` for a key without time to live.
std::string timeLeft(const LockReport& lock);
/// `host, process 4711 (orders)`, or what is known instead.
std::string whereabouts(const LockHolder& holder);

/// A line for the head of the table, then one for each lock, without line ends. @param width of the terminal; 0: lines
/// may have any width.
std::vector<std::string> tableOf(const std::vector<LockReport>& locks, std::size_t width = 0);

/// One JSON object on one line.
std::string jsonOf(const LockReport& lock);
/// @param wasTaken whether a lock was to be had; nothing: that was not tried.
std::string jsonOf(const ServerReport& server, std::optional<bool> wasTaken, const std::vector<std::string>& problems);

} // namespace redislock::tool
