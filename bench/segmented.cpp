/// @file
/// Many threads that want one resource of many keys, locked by segments.
#include "rows.hpp"

#include <redislock/redislock.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>

namespace redislock::bench {

namespace {

constexpr std::uint64_t keys = 10'000;
constexpr std::chrono::microseconds workUnderTheLock{50};

class Segmented {
public:
    Segmented(const Target& target, std::size_t segments, unsigned threads)
        : threads_(threads),
          client_(target.url),
          lock_(client_.getSegmentedLock("bench:segmented:" + std::to_string(segments), segments))
    {
        client_.connect();
    }

    /// Locks a second of all threads, each for a random key.
    double locksPerSecond(Seconds duration)
    {
        std::atomic<std::uint64_t> locks{0};
        const auto taken = runThreads(threads_, duration, [&](unsigned thread, const std::atomic<bool>& stop) {
            Random random(thread);
            std::uint64_t own = 0;
            while (!stop.load(std::memory_order_relaxed)) {
                const auto key = "key:" + std::to_string(random.next() % keys);
                const RedisLock& segment = lock_.lockFor(key);
                segment.lock();
                auto& inside = inside_.at(lock_.segmentOf(key));
                expect(inside.exchange(1) == 0, "the exclusion of a segment");
                std::this_thread::sleep_for(workUnderTheLock);
                inside = 0;
                segment.unlock();
                ++own;
            }
            locks += own;
        });
        return static_cast<double>(locks) / taken.count();
    }

private:
    unsigned threads_;
    Client client_;
    SegmentedLock lock_;
    std::array<std::atomic<int>, SegmentedLock::maxSegments> inside_{};
};

} // namespace

Measure segmented(const Target& target, std::size_t segments, unsigned threads)
{
    const auto sideOf = [&](std::size_t count) {
        return [side = std::make_shared<Segmented>(target, count, threads)](Seconds duration) {
            return side->locksPerSecond(duration);
        };
    };
    return inTurn(sideOf(segments), sideOf(1));
}

} // namespace redislock::bench
