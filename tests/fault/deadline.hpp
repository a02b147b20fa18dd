/// @file
/// The deadline of a hold, as its holder sees it.
#pragma once

#include "fault/fault_test.hpp"

#include <chrono>
#include <thread>

namespace redislock::test {

/// Until when this thread's hold is valid: not before `earliest`, not after `latest`.
struct Deadline {
    explicit Deadline(const RedisLock& lock)
    {
        const auto before = bootTime();
        const auto valid = lock.validFor();
        earliest = before + valid;
        latest = bootTime() + valid + 1ms;
    }
    std::chrono::nanoseconds earliest;
    std::chrono::nanoseconds latest;
};

/// Expects the lock to be held until its deadline, and no longer, by asking it all the time.
inline void expectHeldExactlyUntil(const Deadline& deadline, const RedisLock& lock)
{
    for (bool held = true; held; std::this_thread::sleep_for(200us)) {
        const auto before = bootTime();
        held = lock.isHeldByCurrentThread();
        if (held) {
            ASSERT_LE(before, deadline.latest);
        } else {
            ASSERT_GE(bootTime(), deadline.earliest);
        }
    }
    EXPECT_EQ(lock.validFor(), 0ms);
    EXPECT_EQ(lock.holdCount(), 0U);
}

} // namespace redislock::test
