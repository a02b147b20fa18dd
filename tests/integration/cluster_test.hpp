/// @file
/// A cluster of three masters with a replica each that the tests of a program share, and what they do in it.
#pragma once

#include "redislock/redislock.hpp"
#include "support/deployments.hpp"
#include "support/raw_redis.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <future>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace redislock::test {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// What takes a moment, on a busy machine; far below a poll.
constexpr std::chrono::milliseconds aMoment{3000};

/// What a call that failed said; empty: it did not.
template <class Act>
std::string errorOf(Act act)
{
    try {
        act();
    } catch (const LockError& error) {
        return error.what();
    }
    return {};
}

inline milliseconds since(Clock::time_point begin)
{
    return std::chrono::duration_cast<milliseconds>(Clock::now() - begin);
}

/// Locks and unlocks all the time, each time a lock of another name with the same tag.
class Turns {
public:
    Turns(const Config& config, std::string tag)
        : client_(config), tag_(std::move(tag)), thread_([this](const std::stop_token& end) { run(end); })
    {
    }

    [[nodiscard]] int count() const noexcept { return count_; }
    [[nodiscard]] std::vector<std::string> errors() const
    {
        const std::lock_guard lock(mutex_);
        return errors_;
    }
    /// The longest time between two grants.
    [[nodiscard]] milliseconds gap() const noexcept { return milliseconds(gap_); }

private:
    void run(const std::stop_token& end)
    {
        auto last = Clock::now();
        for (int i = 0; !end.stop_requested(); ++i) {
            try {
                const auto lock = client_.getLock("{" + tag_ + "}" + std::to_string(i));
                lock.lock(5s);
                gap_ = std::max(gap_.load(), since(last).count());
                last = Clock::now();
                ++count_;
                lock.unlock();
            } catch (const LockError& error) {
                const std::lock_guard lock(mutex_);
                errors_.emplace_back(error.what());
            }
            std::this_thread::sleep_for(1ms);
        }
    }

    Client client_;
    const std::string tag_;
    std::atomic<int> count_{0};
    std::atomic<milliseconds::rep> gap_{0};
    mutable std::mutex mutex_;
    std::vector<std::string> errors_;
    std::jthread thread_;
};

class InCluster : public ::testing::Test {
protected:
    static Cluster& cluster()
    {
        static Cluster instance(3, 1);
        return instance;
    }

    ~InCluster() override { cluster().heal(); }

    static Config config()
    {
        Config config = Config::fromUrl(cluster().url());
        config.watchdogTimeout = 3s;
        config.pollInterval = 60s; // who is not told waits in vain
        return config;
    }
    /// The lease outlasts a fail-over on a busy machine.
    static Config patient()
    {
        Config patient = config();
        patient.watchdogTimeout = 20s;
        return patient;
    }
    /// A tag whose slot is at that node now.
    static std::string tagAt(std::size_t node)
    {
        static int last = 0;
        for (;;) {
            auto tag = "t" + std::to_string(++last);
            if (cluster().ownerOf(tag) == node) {
                return tag;
            }
        }
    }
    static std::size_t masterOf(const std::string& tag) { return cluster().ownerOf(tag); }
    /// A master that has not the slot of that tag.
    static std::size_t otherThan(const std::string& tag) { return cluster().masterWithout(tag); }
};

/// @param other waits for what the first one has
template <class Held, class Wanted>
milliseconds handOver(const Held& held, const Wanted& wanted)
{
    held.lock(30s);
    std::promise<Clock::time_point> got;
    std::jthread waiter([&] {
        wanted.lock(30s);
        got.set_value(Clock::now());
        wanted.unlock();
    });
    std::this_thread::sleep_for(200ms);
    const auto begin = Clock::now();
    held.unlock();
    return std::chrono::duration_cast<milliseconds>(got.get_future().get() - begin);
}

} // namespace redislock::test
