/// @file
/// What the tool is asked to do.
#pragma once

#include "table.hpp"

#include <redislock/redislock.hpp>

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace redislock::tool {

/// Exit statuses of all commands but run and lock.
inline constexpr int exitFine = 0;
inline constexpr int exitNo = 1;    ///< the answer is no: free, not kicked, not healthy
inline constexpr int exitError = 2; ///< the answer could not be found out

/// Exit status of run and lock, when they themselves failed.
inline constexpr int exitFailed = 125;

/// What a command is run under.
enum class Hold {
    exclusive, ///< a fenced lock
    shared,    ///< the reading half of a read/write lock
    writing,   ///< the writing half
    permit,    ///< a permit of a semaphore
};

struct Settings {
    int (*perform)(const Settings&) = nullptr; ///< one of the commands below
    std::string url = "redis://127.0.0.1:6379";
    bool json = false;

    std::string name; ///< for run, lock, who, kick and doctor

    // for ls and watch
    std::string pattern = "*";
    std::optional<Sort> sort;
    std::size_t limit = std::numeric_limits<std::size_t>::max();
    std::chrono::milliseconds interval{1000}; ///< for watch

    // for kick
    bool yes = false; ///< does not ask
    std::string host; ///< empty: one lock

    // for run and lock
    Hold hold = Hold::exclusive;
    std::int64_t holders = 0;                       ///< of the semaphore
    std::optional<std::chrono::milliseconds> wait;  ///< nothing: as long as it takes
    std::optional<std::chrono::milliseconds> lease; ///< nothing: renewed
    bool isVerbose = false;
    bool isQuiet = false;
    int notObtainedStatus = 75;
    int lostStatus = 76; ///< also of unlock

    // for run
    std::vector<std::string> command; ///< empty: none, the lock is held until a signal comes
    bool noTerm = false;

    // for lock and unlock
    std::string tokenFile;
    std::optional<pid_t> process; ///< with which the hold ends; nothing: the parent
};

/// Reads `1500ms`, `30s`, `5m`, `2h`, or a number of seconds, also with a fraction; nothing for any other text.
std::optional<std::chrono::milliseconds> durationOf(const std::string& text);

/// Writes a line to standard error, if that can be written.
void complain(const std::string& words) noexcept;
/// Has standard output written. @throws std::system_error where that cannot be.
void flushOutput();

/// Says on standard error which rights were missing, if any.
void warnOfRights(const LockMonitor& monitor);
/// Prints locks that are sorted, at most as many as the settings say, and how many are left out.
void printLocks(std::vector<LockReport> locks, const Settings& settings, Sort order);

int ls(const Settings& settings);
int who(const Settings& settings);
int kick(const Settings& settings);
int doctor(const Settings& settings);
int watch(const Settings& settings);
int run(const Settings& settings);
int lock(const Settings& settings);
int unlock(const Settings& settings);

} // namespace redislock::tool
