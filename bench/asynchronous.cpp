/// @file
/// Locks without a thread for each: the cost for a service of coroutines or callbacks.
#include "pipeline.hpp"
#include "rows.hpp"
#include "uncontended.hpp"

#include <redislock/redislock.hpp>

#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

namespace redislock::bench {

namespace {

/// Acquires and releases a lock again and again, the next step always in the handler of the one before: on the client's
/// own thread, because the handlers have no executor.
class Chain {
public:
    explicit Chain(RedisLock lock) : lock_(std::move(lock)) {}

    /// Goes on until `stop`; then counts down `ended`.
    void run(const std::atomic<bool>& stop, std::latch& ended)
    {
        stop_ = &stop;
        ended_ = &ended;
        pairs_ = 0;
        acquire();
    }

    /// The pairs of the last run. @throws std::runtime_error when something went wrong.
    [[nodiscard]] std::uint64_t pairs() const
    {
        expect(!failed_, "an asynchronous lock");
        return pairs_;
    }

private:
    void acquire()
    {
        if (failed_ || stop_->load(std::memory_order_relaxed)) {
            ended_->count_down();
            return;
        }
        lock_.asyncLock([this](boost::system::error_code ec, LockGuard held) {
            failed_ = ec || !held;
            release(std::move(held));
        });
    }

    void release(LockGuard held)
    {
        held.asyncRelease([this](boost::system::error_code ec, Unlocked how) {
            failed_ = failed_ || ec || how != Unlocked::released;
            ++pairs_;
            acquire();
        });
    }

    RedisLock lock_;
    const std::atomic<bool>* stop_ = nullptr;
    std::latch* ended_ = nullptr;
    std::uint64_t pairs_ = 0;
    bool failed_ = false;
};

class Chains {
public:
    Chains(const Config& config, unsigned count) : client_(config)
    {
        client_.connect();
        for (unsigned i = 0; i < count; ++i) {
            chains_.emplace_back(client_.getLock(fmt::format("bench:ours:{:02}", i)));
        }
    }

    double pairsPerSecond(Seconds duration)
    {
        std::atomic<bool> stop{false};
        std::latch ended(static_cast<std::ptrdiff_t>(chains_.size()));
        const auto begin = Clock::now();
        for (auto& chain : chains_) {
            chain.run(stop, ended);
        }
        std::this_thread::sleep_for(duration);
        stop = true;
        ended.wait();
        const Seconds taken = Clock::now() - begin;
        std::uint64_t pairs = 0;
        for (const auto& chain : chains_) {
            pairs += chain.pairs();
        }
        return static_cast<double>(pairs) / taken.count();
    }

private:
    std::vector<Chain> chains_;
    Client client_; // ends before the chains
};

} // namespace

Side asynchronousSide(const Config& config, unsigned underWay)
{
    return [chains = std::make_shared<Chains>(config, underWay)](Seconds d) { return chains->pairsPerSecond(d); };
}

Measure asynchronous(const Target& target, unsigned underWay)
{
    return inTurn(asynchronousSide(Config::fromUrl(target.url), underWay), pipelineSide(target, underWay));
}

} // namespace redislock::bench
