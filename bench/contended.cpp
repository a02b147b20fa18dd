/// @file
/// Many threads, one lock, next to nothing done under it.
#include "reference/raw_locks.hpp"
#include "reference/server_facts.hpp"
#include "reference/thread_queue.hpp"
#include "rows.hpp"

#include <redislock/redislock.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace redislock::bench {

namespace {

constexpr std::chrono::milliseconds pollingSleep{20};

struct Contest {
    double acquisitionsPerSecond;
    double changesPerSecond;
    double meanWait;    ///< µs
    double longestWait; ///< µs
};

/// The results of one thread.
struct Share {
    std::uint64_t acquisitions = 0;
    std::uint64_t changes = 0;
    Clock::duration waited{};
    Clock::duration longest{};
};

Contest summary(const std::vector<Share>& shares, Seconds taken)
{
    Share all;
    for (const auto& share : shares) {
        all.acquisitions += share.acquisitions;
        all.changes += share.changes;
        all.waited += share.waited;
        all.longest = std::max(all.longest, share.longest);
    }
    const auto acquisitions = static_cast<double>(all.acquisitions);
    return {acquisitions / taken.count(), static_cast<double>(all.changes) / taken.count(),
            microseconds(all.waited) / acquisitions, microseconds(all.longest)};
}

/// Lets each thread lock and unlock @p lockOf(thread) until the time is over. A thread that still waits then goes on
/// waiting, and its wait counts.
template <class LockOf>
Contest contend(unsigned threads, Seconds duration, const LockOf& lockOf)
{
    std::vector<Share> shares(threads);
    std::atomic<unsigned> lastHolder{threads};
    std::atomic<unsigned> inside{0};
    const auto taken = runThreads(threads, duration, [&](unsigned thread, const std::atomic<bool>& stop) {
        auto& lock = lockOf(thread);
        Share share;
        while (!stop.load(std::memory_order_relaxed)) {
            const auto begin = Clock::now();
            lock.lock();
            const auto wait = Clock::now() - begin;
            expect(inside.exchange(1) == 0, "the exclusion of a contended lock");
            share.changes += lastHolder.exchange(thread) == thread ? 0 : 1;
            inside = 0;
            lock.unlock();
            ++share.acquisitions;
            share.waited += wait;
            share.longest = std::max(share.longest, wait);
        }
        shares[thread] = share;
    });
    return summary(shares, taken);
}

class Ours {
public:
    Ours(const Target& target, unsigned threads)
        : threads_(threads), client_(target.url), lock_(client_.getLock("bench:contended"))
    {
        client_.connect();
    }

    Contest contest(Seconds duration)
    {
        return contend(threads_, duration, [this](unsigned) -> const RedisLock& { return lock_; });
    }

private:
    unsigned threads_;
    Client client_;
    RedisLock lock_;
};

} // namespace

Measure changesOfHolder(const Target& target, unsigned threads)
{
    auto ours = [side = std::make_shared<Ours>(target, threads)](Seconds duration) {
        return side->contest(duration).changesPerSecond;
    };
    auto polling = std::make_shared<std::vector<PollingLock>>();
    for (unsigned thread = 0; thread < threads; ++thread) {
        polling->emplace_back(target.host, target.port, "bench:polling", fmt::format("token-{}", thread), pollingSleep);
    }
    auto reference = [threads, polling](Seconds duration) {
        const auto lockOf = [&](unsigned thread) -> PollingLock& { return (*polling)[thread]; };
        return contend(threads, duration, lockOf).changesPerSecond;
    };
    return inTurn(std::move(ours), std::move(reference));
}

Measure handOversInside(const Target& target, unsigned threads)
{
    auto ours = [side = std::make_shared<Ours>(target, threads)](Seconds duration) {
        return side->contest(duration).changesPerSecond;
    };
    auto reference = [threads, queue = std::make_shared<ThreadQueue>()](Seconds duration) {
        return contend(threads, duration, [&](unsigned) -> ThreadQueue& { return *queue; }).changesPerSecond;
    };
    return inTurn(std::move(ours), std::move(reference));
}

Measure changesPerSecond(const Target& target, unsigned threads, double asked)
{
    return [side = std::make_shared<Ours>(target, threads), asked](Seconds duration, First) {
        return Pair{side->contest(duration).changesPerSecond, asked};
    };
}

Measure commandsPerAcquisition(const Target& target, unsigned threads)
{
    auto side = std::make_shared<Ours>(target, threads);
    auto statistics = std::make_shared<RawConnection>(target.host, target.port);
    return [side, statistics](Seconds duration, First) {
        const auto before = requestsSoFar(*statistics);
        const auto begin = Clock::now();
        const auto contest = side->contest(duration);
        const Seconds taken = Clock::now() - begin;
        return Pair{(requestsSoFar(*statistics) - before) / taken.count(), contest.acquisitionsPerSecond};
    };
}

Measure longestWait(const Target& target, unsigned threads)
{
    return [side = std::make_shared<Ours>(target, threads)](Seconds duration, First) {
        const auto contest = side->contest(duration);
        return Pair{contest.longestWait, contest.meanWait};
    };
}

} // namespace redislock::bench
