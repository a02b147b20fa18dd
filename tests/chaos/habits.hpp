/// @file
/// How threads and asynchronous chains of a chaos run use locks: at random, from a seed.
#pragma once

#include "history/report.hpp"

#include <redislock/lease_time.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace redislock::test::chaos {

/// The kinds of lock that a run uses besides RedisLock.
inline const std::vector<std::string> otherKinds{"nonReentrant", "spin", "fenced", "fair", "read", "write"};

/// The semaphores of a run: with leased permits, and with permits without a lease.
inline constexpr int semaphores = 2;
inline constexpr std::int64_t leasedPermits = 2;
inline constexpr std::int64_t plainPermits = 4;
inline std::string leasedName(int number)
{
    return "chaos:permit:" + std::to_string(number);
}
inline std::string plainName(int number)
{
    return "chaos:semaphore:" + std::to_string(number);
}

/// The latches of a run, one after the other: each process counts each down once.
inline constexpr int latches = 300;
inline std::string latchName(int number)
{
    return "chaos:latch:" + std::to_string(number);
}

/// The locks of a run with fail-overs, each of which exists with a durability and without: kind, and end of the name.
inline std::vector<std::pair<std::string, std::string>> locksThatFailOver()
{
    std::vector<std::pair<std::string, std::string>> all;
    for (const std::string kind : {"", "fair", "nonReentrant"}) {
        all.emplace_back(kind, kind + "0");
        all.emplace_back(kind, kind + "1");
    }
    return all;
}
inline std::string plainLock(const std::string& end)
{
    return "chaos:plain:" + end;
}
inline std::string durableLock(const std::string& end)
{
    return "chaos" + std::string(history::durableMark) + end;
}

/// Chooses the next step of a thread or chain. Not thread-safe.
class Habits {
public:
    explicit Habits(std::uint64_t seed) : random_(seed) {}

    std::size_t upTo(std::size_t most) { return std::uniform_int_distribution<std::size_t>(0, most)(random_); }
    bool oneIn(std::size_t n) { return upTo(n - 1) == 0; }
    std::chrono::milliseconds between(int least, int most)
    {
        return std::chrono::milliseconds(std::uniform_int_distribution<int>(least, most)(random_));
    }

    Lease shortLease() { return between(300, 1200); }
    Lease lease() { return oneIn(2) ? shortLease() : keepRenewing; }

    Wait wait()
    {
        using std::chrono::milliseconds;
        const auto which = upTo(9);
        return which < 2 ? Wait(milliseconds(0)) : which < 8 ? Wait(between(100, 1500)) : Wait(milliseconds(3000));
    }

    /// How long to hold: mostly no time at all, sometimes as long as leases last.
    std::chrono::milliseconds hold()
    {
        const auto which = upTo(199);
        return which < 170   ? std::chrono::milliseconds(0)
               : which < 193 ? between(1, 30)
               : which < 199 ? between(50, 300)
                             : between(500, 1500);
    }

private:
    std::mt19937_64 random_;
};

} // namespace redislock::test::chaos
