#include "rows.hpp"

namespace redislock::bench {

const std::vector<Row>& allRows()
{
    static const std::vector<Row> rows{
        {"lock_unlock_1_thread", "/s", Aim::atLeast, 0.95, 1.1,
         "lock() and unlock(), 1 thread, nobody else wants the lock; against raw hiredis",
         [](const Target& target) { return lockAndUnlock(target, 1); }},
        {"lock_guard_1_thread", "/s", Aim::atLeast, 1.25, 1.5,
         "the same through a LockGuard, whose end does not wait for the answer; against raw hiredis, which does",
         [](const Target& target) { return lockGuard(target, 1); }},
        {"lock_unlock_8_threads", "/s", Aim::atLeast, 1.4, 1.6,
         "lock() and unlock(), 8 threads, 8 names, one Client; against a raw connection per thread",
         [](const Target& target) { return lockAndUnlock(target, 8); }},
        {"lock_unlock_64_threads", "/s", Aim::atLeast, 1.5, 1.9,
         "lock() and unlock(), 64 threads, 64 names, one Client; against a raw connection per thread",
         [](const Target& target) { return lockAndUnlock(target, 64); }},
        {"hand_over_threads", " µs", Aim::atMost, 2.5, 0,
         "unlock() called until lock() returns on a waiting thread of the same process, median; against PING",
         handOverBetweenThreads},
        {"hand_over_processes", " µs", Aim::atMost, 2.7, 1.5,
         "unlock() called until lock() returns in a waiting process, median; against PING", handOverBetweenProcesses},
        {"contended_changes", "/s", Aim::atLeast, 6, 50,
         "changes of holder, 32 threads, one lock, tiny section; against SET NX PX and a sleep of 20 ms",
         [](const Target& target) { return changesOfHolder(target, 32); }},
        {"contended_commands", "/s", Aim::atMost, 2.2, 0, "the same: requests to the server; against acquisitions",
         [](const Target& target) { return commandsPerAcquisition(target, 32); }},
        {"contended_longest_wait", " µs", Aim::atMost, 5, 0, "the same: the longest wait; against the mean wait",
         [](const Target& target) { return longestWait(target, 32); }},
    };
    return rows;
}

} // namespace redislock::bench
