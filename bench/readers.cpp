/// @file
/// How long many readers wait after the writer, another client, has called unlock().
#include "ping.hpp"
#include "reference/server_facts.hpp"
#include "rows.hpp"
#include "slow_link.hpp"
#include "statistics.hpp"

#include <redislock/redislock.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace redislock::bench {

namespace {

constexpr char readersLock[] = "bench:readers";
constexpr std::chrono::seconds readersPatience{20};
/// Longer than a round trip through the link.
constexpr std::chrono::milliseconds settled{50};

/// Threads that wait for the reading half of a lock while a client near the server writes.
class Readers {
public:
    /// @param delay each way between the server and the readers; 0: the readers are near the server too
    Readers(const Target& target, unsigned readers, std::chrono::microseconds delay)
        : link_(delay.count() > 0 ? std::make_optional<SlowLink>(target, delay) : std::nullopt),
          server_(target.host, target.port),
          writer_(target.url),
          writing_(writer_.getReadWriteLock(readersLock).writeLock()),
          client_(path(target).url),
          reading_(client_.getReadWriteLock(readersLock).readLock()),
          grantedAt_(readers)
    {
        client_.connect();
        const std::scoped_lock loaded(writing_);
    }

    [[nodiscard]] const Target& path(const Target& target) const { return link_ ? link_->target() : target; }

    /// Releases the lock. @return microseconds from the call of unlock() until the last reader has the lock.
    double lastGrant()
    {
        writing_.lock();
        std::atomic<std::size_t> answered{0};
        std::atomic<bool> failed{false};
        std::atomic<bool> leave{false};
        const auto read = [&](Clock::time_point& moment) {
            failed = !reading_.tryLock(readersPatience) || failed;
            moment = Clock::now();
            ++answered;
            leave.wait(false);
            (void)reading_.unlock();
        };
        auto asked = scripts();
        std::vector<std::jthread> threads;
        for (auto& moment : grantedAt_) {
            threads.emplace_back(read, std::ref(moment));
        }
        failed = !awaitQuiet(asked + static_cast<double>(grantedAt_.size())) || answered > 0 || failed;
        asked = scripts();
        const auto called = Clock::now();
        failed = writing_.unlock() != Unlocked::released || failed;
        while (answered < grantedAt_.size()) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        requests_ = (scripts() - asked - 1) / static_cast<double>(grantedAt_.size());
        leave = true;
        leave.notify_all();
        threads.clear();
        expect(!failed, "the writer, or a reader behind it");
        first_ = microseconds(std::ranges::min(grantedAt_) - called);
        return microseconds(std::ranges::max(grantedAt_) - called);
    }

    [[nodiscard]] std::string note() const
    {
        return fmt::format("the first after {:.0f} µs; {:.2f} requests a reader", first_, requests_);
    }

private:
    [[nodiscard]] double scripts() { return infoNumber(server_, "commandstats", "cmdstat_evalsha:calls"); }

    /// Waits until @p asked requests were sent, somebody listens, and no more requests come.
    /// @return false when that took too long.
    bool awaitQuiet(double asked)
    {
        const auto end = Clock::now() + readersPatience;
        for (double last = 0; Clock::now() < end; std::this_thread::sleep_for(settled)) {
            const auto now = scripts();
            if (now >= asked && now == last && infoNumber(server_, "stats", "pubsub_channels") == 1) {
                return true;
            }
            last = now;
        }
        return false;
    }

    const std::optional<SlowLink> link_;
    RawConnection server_;
    const Client writer_;
    const WriteLock writing_;
    const Client client_;
    const ReadLock reading_;
    std::vector<Clock::time_point> grantedAt_;
    double first_ = 0;
    double requests_ = 0;
};

} // namespace

Measure wakingReaders(const Target& target, unsigned readers, std::chrono::microseconds delay)
{
    const auto all = std::make_shared<Readers>(target, readers, delay);
    return [all, ping = pingSide(all->path(target), std::chrono::milliseconds(3))](Seconds duration, First) {
        std::vector<double> samples;
        const auto end = Clock::now() + duration;
        do {
            samples.push_back(all->lastGrant());
        } while (Clock::now() < end);
        return Pair{median(std::move(samples)), ping(duration), all->note()};
    };
}

} // namespace redislock::bench
