/// @file
/// Acquiring and releasing a lock that nobody else wants: the cost of every critical section.
#include "uncontended.hpp"
#include "pipeline.hpp"
#include "reference/raw_locks.hpp"
#include "rows.hpp"

#include <redislock/redislock.hpp>

#include <fmt/format.h>

#include <memory>
#include <vector>

namespace redislock::bench {

namespace {

/// One client for all threads, and a lock for each thread.
class UncontendedLocks {
public:
    UncontendedLocks(const Config& config, unsigned threads) : client_(config)
    {
        for (unsigned thread = 0; thread < threads; ++thread) {
            locks_.push_back(client_.getLock(fmt::format("bench:ours:{:02}", thread)));
        }
        client_.connect();
    }

    [[nodiscard]] const RedisLock& lock(unsigned thread) const { return locks_[thread]; }

private:
    Client client_;
    std::vector<RedisLock> locks_;
};

/// A connection, a lock and a holder for each thread.
class Reference {
public:
    Reference(const Target& target, unsigned threads)
    {
        for (unsigned thread = 0; thread < threads; ++thread) {
            locks_.emplace_back(RawConnection(target.host, target.port), fmt::format("bench:hand:{:02}", thread),
                                fmt::format("6f1c1f7e-30a4-4c29-9d0b-5a3c8e2b7d{:02x}:100{:02}", thread, thread));
        }
    }

    [[nodiscard]] RawLock& lock(unsigned thread) { return locks_[thread]; }

private:
    std::vector<RawLock> locks_;
};

Side guardSide(const Target& target, unsigned threads)
{
    return [threads,
            side = std::make_shared<UncontendedLocks>(Config::fromUrl(target.url), threads)](Seconds duration) {
        return callsPerSecond(threads, duration, [&](unsigned thread) { const LockGuard held(side->lock(thread)); });
    };
}

Side referenceSide(const Target& target, unsigned threads)
{
    return [threads, side = std::make_shared<Reference>(target, threads)](Seconds duration) {
        return callsPerSecond(threads, duration, [&](unsigned thread) {
            side->lock(thread).lock();
            side->lock(thread).unlock();
        });
    };
}

} // namespace

Side lockSide(const Config& config, unsigned threads)
{
    return [threads, side = std::make_shared<UncontendedLocks>(config, threads)](Seconds duration) {
        return callsPerSecond(threads, duration, [&](unsigned thread) {
            side->lock(thread).lock();
            expect(side->lock(thread).unlock() == Unlocked::released, "the library's unlock()");
        });
    };
}

Measure lockAndUnlock(const Target& target, unsigned threads)
{
    return inTurn(lockSide(Config::fromUrl(target.url), threads), referenceSide(target, threads));
}

Measure lockGuard(const Target& target, unsigned threads)
{
    return inTurn(guardSide(target, threads), referenceSide(target, threads));
}

Measure lockGuardAgainstPipeline(const Target& target, unsigned threads)
{
    return inTurn(guardSide(target, threads), pipelineSide(target, threads));
}

} // namespace redislock::bench
