/// @file
/// The size of the sale, and its failures.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace flash {

using Clock = std::chrono::steady_clock; ///< the same in all processes of a machine

struct Settings {
    std::string url = "redis://127.0.0.1:6379";
    std::string database; ///< the URL of PostgreSQL
    std::string sale;     ///< the prefix of its keys, so that sales on one server do not collide
    int stock = 2'000;
    int users = 20'000;
    int seconds = 20; ///< until the last user comes
    int buyerProcesses = 4;
    int workers = 3;
    int threads = 4; ///< of each worker
    int workerKills = 6;
    int serviceKills = 3;
    int pauses = 2; ///< of a worker, for longer than its lease
    std::uint32_t seed = 1;
    std::string lookWith;            ///< a command that looks at the page
    std::string page;                ///< the file for the page of the finished sale
    std::string falsify = "nothing"; ///< changes a figure before the proof, which has to notice it
};

} // namespace flash
