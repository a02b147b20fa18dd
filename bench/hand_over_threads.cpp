/// @file
/// How long a waiting thread waits after the holder, a thread of the same process, has called unlock().
#include "ping.hpp"
#include "rows.hpp"
#include "statistics.hpp"

#include <redislock/redislock.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace redislock::bench {

namespace {

/// How long the holder keeps the lock after the other thread has called lock(): long enough for that thread to sleep.
constexpr std::chrono::microseconds threadHoldsFor{500};

/// Two threads that pass one lock to and fro.
class Players {
public:
    explicit Players(const Target& target) : client_(target.url), lock_(client_.getLock("bench:hand-over"))
    {
        client_.connect();
    }

    double medianHandOver(Seconds duration)
    {
        std::ranges::for_each(places_, [](auto& place) { place = Place::notWaiting; });
        unlockCalled_ = Clock::time_point::min();
        std::array<std::vector<double>, 2> samples;
        runThreads(2, duration,
                   [&](unsigned self, const std::atomic<bool>& stop) { play(self, stop, samples.at(self)); });
        auto all = std::move(samples[0]);
        all.insert(all.end(), samples[1].begin(), samples[1].end());
        expect(!all.empty(), "a hand-over in the time given");
        return median(std::move(all));
    }

private:
    enum class Place { notWaiting, waiting, gone };

    void play(unsigned self, const std::atomic<bool>& stop, std::vector<double>& samples)
    {
        for (bool last = false; !last;) {
            moveTo(self, Place::waiting);
            lock_.lock();
            const auto now = Clock::now();
            if (const auto called = unlockCalled_.load(); called != Clock::time_point::min()) {
                samples.push_back(microseconds(now - called));
            }
            last = stop;
            moveTo(self, last ? Place::gone : Place::notWaiting);
            if (!last) {
                places_.at(1 - self).wait(Place::notWaiting);
                std::this_thread::sleep_for(threadHoldsFor);
            }
            unlockCalled_ = last ? Clock::time_point::min() : Clock::now(); // no thread may be waiting at the end
            const auto how = lock_.unlock();
            expect(how == Unlocked::released || how == Unlocked::passedOn, "the library's unlock()");
        }
    }

    void moveTo(unsigned self, Place place)
    {
        places_.at(self) = place;
        places_.at(self).notify_all();
    }

    Client client_;
    RedisLock lock_;
    std::array<std::atomic<Place>, 2> places_{};
    std::atomic<Clock::time_point> unlockCalled_{Clock::time_point::min()};
};

} // namespace

Measure handOverBetweenThreads(const Target& target)
{
    auto ours = [players = std::make_shared<Players>(target)](Seconds d) { return players->medianHandOver(d); };
    return inTurn(std::move(ours), pingSide(target, threadHoldsFor));
}

} // namespace redislock::bench
