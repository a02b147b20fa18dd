/// @file
/// Load for faults that hit in the middle of work.
#pragma once

#include "redislock/redislock.hpp"

#include <atomic>
#include <chrono>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace redislock::test {

using namespace std::chrono_literals;

/// Locks and unlocks in several threads and two clients, with plain, nested and guarded holds, while connections end.
class BusyClients {
public:
    BusyClients(Client& one, Client& other, const std::string& name)
    {
        for (auto* client : {&one, &one, &other, &other}) {
            threads_.emplace_back([this, lock = client->getLock(name)] { run(lock); });
        }
    }
    ~BusyClients() { end(); }
    BusyClients(const BusyClients&) = delete;
    BusyClients& operator=(const BusyClients&) = delete;

    void end()
    {
        ending_ = true;
        for (auto& thread : threads_) {
            thread.join();
        }
        threads_.clear();
    }

    std::atomic<int> rounds{0};
    std::atomic<int> overlaps{0};
    std::atomic<int> failures{0};
    std::atomic<int> wrongUnlocks{0};

private:
    void run(const RedisLock& lock)
    {
        for (int i = 0; !ending_; ++i) {
            std::error_code ec;
            if (i % 3 == 0) {
                const LockGuard guard(lock, 20s, 20s, ec);
                work(static_cast<bool>(guard));
                continue;
            }
            const bool granted = lock.tryLock(20s, 20s, ec);
            work(granted);
            if (!granted) {
                continue;
            }
            if (i % 3 == 1) {
                const bool nested = lock.tryLock(20s, 20s, ec);
                work(nested);
                expectUnlocked(lock, Unlocked::stillHeld, nested);
            }
            expectUnlocked(lock, Unlocked::released, true);
        }
    }

    void work(bool granted)
    {
        failures += granted ? 0 : 1;
        if (granted) {
            overlaps += ++inside_ == 1 ? 0 : 1;
            ++rounds;
            --inside_;
        }
    }

    void expectUnlocked(const RedisLock& lock, Unlocked expected, bool held)
    {
        if (held && lock.unlock() != expected) {
            ++wrongUnlocks;
        }
    }

    std::atomic<bool> ending_{false};
    std::atomic<int> inside_{0};
    std::vector<std::thread> threads_;
};

} // namespace redislock::test
