/// @file
/// What the tool is asked to do.
#pragma once

#include <redislock/redislock.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace redislock::tool {

/// Exit statuses of all commands but run.
inline constexpr int exitFine = 0;
inline constexpr int exitNo = 1;    ///< the answer is no: free, not kicked, not healthy
inline constexpr int exitError = 2; ///< the answer could not be found out

struct Settings {
    int (*perform)(const Settings&) = nullptr; ///< one of the commands below
    std::string url = "redis://127.0.0.1:6379";
    bool json = false;

    std::string pattern = "*";                ///< for ls and watch
    std::string name;                         ///< for run, who, kick and doctor
    bool yes = false;                         ///< for kick: does not ask
    std::chrono::milliseconds interval{1000}; ///< for watch

    // for run
    std::vector<std::string> command;
    std::optional<std::chrono::milliseconds> wait;  ///< nothing: as long as it takes
    std::optional<std::chrono::milliseconds> lease; ///< nothing: renewed
    bool noTerm = false;
    int notObtainedStatus = 75;
    int lostStatus = 76;
};

/// Reads `1500ms`, `30s`, `5m`, `2h`, or a number of seconds, also with a fraction; nothing for any other text.
std::optional<std::chrono::milliseconds> durationOf(const std::string& text);

/// Writes a line to standard error, if that can be written.
void complain(const std::string& words) noexcept;
/// Has standard output written. @throws std::system_error where that cannot be.
void flushOutput();

/// Says on standard error which rights were missing, if any.
void warnOfRights(const LockMonitor& monitor);

int ls(const Settings& settings);
int who(const Settings& settings);
int kick(const Settings& settings);
int doctor(const Settings& settings);
int watch(const Settings& settings);
int run(const Settings& settings);

} // namespace redislock::tool
