/// @file
/// The cost of many held locks of one client, and whether they stay held.
#include "held.hpp"

#include "process_facts.hpp"
#include "reference/server_facts.hpp"
#include "rows.hpp"
#include "statistics.hpp"

#include <redislock/redislock.hpp>

#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace redislock::bench {

namespace {

constexpr std::size_t nameSize = 17;

std::string nameOf(std::size_t lock)
{
    return fmt::format("bench:held:{:06}", lock);
}

/// A client that holds a number of locks, each with a name of its own.
class HeldLocks {
public:
    HeldLocks(const Config& config, std::size_t count, Lease lease, std::size_t firstName = 0) : client_(config)
    {
        guards_.reserve(count);
        for (std::size_t i = 0; i < count; ++i) {
            guards_.emplace_back(client_.getLock(nameOf(firstName + i)), lease);
        }
    }

    [[nodiscard]] std::size_t valid() const
    {
        std::size_t count = 0;
        for (const auto& held : guards_) {
            count += held ? 1 : 0;
        }
        return count;
    }

private:
    Client client_;
    std::vector<LockGuard> guards_;
};

Config configOf(const Target& target, std::chrono::milliseconds lease, std::shared_ptr<Observer> observer = nullptr)
{
    auto config = Config::fromUrl(target.url);
    config.watchdogTimeout = lease;
    config.observer = std::move(observer);
    return config;
}

/// Notes when each renewal was sent, and what went wrong. The client's own thread calls this observer.
class Renewals final : public Observer {
public:
    explicit Renewals(std::size_t locks) { sentAt_.reserve(locks); }

    void renewed(const LockEvent& event, std::chrono::nanoseconds took) noexcept override
    {
        const auto sent = Clock::now() - std::chrono::duration_cast<Clock::duration>(took);
        const std::lock_guard lock(mutex_);
        const auto [place, isFirst] = sentAt_.try_emplace(std::string(event.name), sent);
        if (!isFirst) {
            intervals_.push_back(sent - place->second);
            place->second = sent;
        }
    }
    void atRisk(const LockEvent&, std::chrono::nanoseconds, LossReason) noexcept override { ++troubled; }
    void lost(const LockEvent&, LossReason) noexcept override { ++troubled; }

    /// Times from one renewal of a lock to its next.
    [[nodiscard]] std::vector<Clock::duration> intervals() const
    {
        const std::lock_guard lock(mutex_);
        return intervals_;
    }

    /// Forgets the renewals so far, which came while locks were still being acquired.
    void beginAnew()
    {
        const std::lock_guard lock(mutex_);
        intervals_.clear();
    }

    std::atomic<std::size_t> troubled{0};

private:
    mutable std::mutex mutex_;
    std::unordered_map<std::string, Clock::time_point> sentAt_;
    std::vector<Clock::duration> intervals_;
};

/// Holds the locks for a lease and a third, so that each is renewed about four times.
struct Watched {
    Watched(const Target& target, std::size_t count, std::chrono::milliseconds leaseTime)
        : lease(leaseTime), renewals(std::make_shared<Renewals>(count))
    {
        RawConnection statistics(target.host, target.port);
        const auto sent = [&] { return infoNumber(statistics, "commandstats", "cmdstat_evalsha:calls"); };
        const HeldLocks held(configOf(target, lease, renewals), count, keepRenewing);
        std::this_thread::sleep_for(lease / 2);
        renewals->beginAnew();
        const auto sentBefore = sent();
        const auto timeBefore = processorTime();
        std::this_thread::sleep_for(lease + lease / 3);
        timePerRenewal = (processorTime() - timeBefore) / (sent() - sentBefore);
        stillHeld = held.valid();
        intervals = renewals->intervals();
        expect(!intervals.empty(), "a renewal in a third of the lease");
    }

    /// For each renewal the time since the one before, less a third of the lease, in ms. This includes the 5 % by which
    /// the library spreads renewals to either side.
    [[nodiscard]] std::vector<double> lateness() const
    {
        std::vector<double> late;
        for (const auto interval : intervals) {
            late.push_back(microseconds(interval - lease / 3) / 1000);
        }
        return late;
    }

    [[nodiscard]] std::string note() const
    {
        const auto late = lateness();
        return fmt::format(
            "{} renewals; late by {:.1f} ms (median), {:.1f} (99 %), {:.1f} (most), of which the spreading "
            "is up to {:.1f}; {:.1f} µs of processor time a renewal",
            late.size(), median(late), quantile(late, 0.99), quantile(late, 1), static_cast<double>(lease.count()) / 60,
            timePerRenewal.count() * 1e6);
    }

    std::chrono::milliseconds lease;
    std::shared_ptr<Renewals> renewals;
    std::vector<Clock::duration> intervals;
    std::size_t stillHeld = 0;
    Seconds timePerRenewal{};
};

} // namespace

Measure threadsOfHeldLocks(const Target& target, std::size_t locks)
{
    return [target, locks](Seconds, First) {
        constexpr double allowed = 2;
        const auto before = threadCount();
        const HeldLocks held(configOf(target, std::chrono::seconds(30)), locks, keepRenewing);
        return Pair{static_cast<double>(threadCount() - before), allowed};
    };
}

Measure bytesOfHeldLocks(const Target& target, std::size_t locks)
{
    return [target, locks](Seconds, First) {
        constexpr double allowed = 400;
        const auto config = configOf(target, std::chrono::seconds(30));
        const HeldLocks one(config, 1, keepRenewing, locks); // what the process has once
        const auto before = heapInUse();
        const HeldLocks held(config, locks, keepRenewing);
        const auto all = static_cast<double>(heapInUse() - before);
        // the guard and the name belong to the program
        return Pair{all / static_cast<double>(locks) - static_cast<double>(nameSize + sizeof(LockGuard)), allowed};
    };
}

RenewalCost costOfRenewals(const Config& config, std::span<RawConnection> servers, std::size_t locks)
{
    const auto sum = [&](std::string_view section, std::string_view field) {
        double all = 0;
        for (auto& each : servers) {
            all += infoNumber(each, section, field);
        }
        return all;
    };
    const auto requests = [&] { return sum("commandstats", "cmdstat_evalsha:calls"); };
    const auto serverTime = [&] { return sum("cpu", "used_cpu_user") + sum("cpu", "used_cpu_sys"); };
    const HeldLocks held(config, locks, keepRenewing);
    std::this_thread::sleep_for(config.watchdogTimeout / 2);
    const auto begin = Clock::now();
    const auto requestsBefore = requests();
    const auto serversBefore = serverTime();
    const auto clientBefore = processorTime();
    std::this_thread::sleep_for(2 * config.watchdogTimeout);
    const double client = (processorTime() - clientBefore).count();
    const double all = serverTime() - serversBefore;
    const double sent = requests() - requestsBefore;
    const double took = Seconds(Clock::now() - begin).count();
    expect(held.valid() == locks, "locks that stay held");
    return {client / took, all / took, sent / took};
}

Measure costOfHeldLocks(const Target& target, std::size_t locks, std::chrono::milliseconds lease, CostOf what)
{
    return [=](Seconds, First) {
        RawConnection server(target.host, target.port);
        const auto cost = costOfRenewals(configOf(target, lease), {&server, 1}, locks);
        const auto note = fmt::format("client {:.3f} cores, server {:.3f}, {:.0f} requests a second", cost.client,
                                      cost.servers, cost.requests);
        return what == CostOf::cores ? Pair{(cost.client + cost.servers) * 1000, 80, note}
                                     : Pair{cost.requests, 200, note};
    };
}

Measure renewedInTime(const Target& target, std::size_t locks, std::chrono::milliseconds lease)
{
    return [=](Seconds, First) {
        const Watched watched(target, locks, lease);
        const auto good = static_cast<double>(watched.stillHeld) - static_cast<double>(watched.renewals->troubled);
        return Pair{good, static_cast<double>(locks), watched.note()};
    };
}

Measure latenessOfRenewals(const Target& target, std::size_t locks, std::chrono::milliseconds lease)
{
    return [=](Seconds, First) {
        const Watched watched(target, locks, lease);
        return Pair{quantile(watched.lateness(), 0.99), static_cast<double>(lease.count()) / 30, watched.note()};
    };
}

} // namespace redislock::bench
