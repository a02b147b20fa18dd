/// @file
/// Whether a lock becomes slower when its client holds many other locks.
#include "rows.hpp"
#include "statistics.hpp"

#include <redislock/redislock.hpp>
#include <redislock/testing/redis_server.hpp>

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <vector>

namespace redislock::bench {

namespace {

/// A client that holds other locks while one is acquired and released.
class Holder {
public:
    Holder(const std::string& url, std::size_t others) : client_(url), lock_(client_.getLock("bench:beside"))
    {
        constexpr Lease longEnough = std::chrono::hours(1);
        others_.reserve(others);
        for (std::size_t i = 0; i < others; ++i) {
            others_.emplace_back(client_.getLock(fmt::format("bench:other:{:06}", i)), longEnough);
        }
    }

    double medianPair(Seconds duration)
    {
        std::vector<double> samples;
        const auto end = Clock::now() + duration;
        do {
            const auto begin = Clock::now();
            lock_.lock();
            expect(lock_.unlock() == Unlocked::released, "the library's unlock()");
            samples.push_back(microseconds(Clock::now() - begin));
        } while (Clock::now() < end);
        return median(std::move(samples));
    }

private:
    Client client_;
    RedisLock lock_;
    std::vector<LockGuard> others_;
};

} // namespace

Measure besideHeldLocks(const Target& target, std::size_t held)
{
    // a second server: a server with many keys may be slower, and that counts as well
    auto empty = std::make_shared<testing::RedisServer>();
    auto ours = [holder = std::make_shared<Holder>(target.url, held)](Seconds d) { return holder->medianPair(d); };
    auto reference = [empty, holder = std::make_shared<Holder>(empty->url(), 0)](Seconds d) {
        return holder->medianPair(d);
    };
    return inTurn(std::move(ours), std::move(reference));
}

} // namespace redislock::bench
