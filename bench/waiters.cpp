/// @file
/// Many calls that wait: all for one name, or each for a name of its own.
#include "ping.hpp"
#include "process_facts.hpp"
#include "reference/server_facts.hpp"
#include "rows.hpp"
#include "statistics.hpp"

#include <redislock/redislock.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace redislock::bench {

namespace {

constexpr std::chrono::seconds patience{120};

/// Waits until @p done is true. @throws std::runtime_error, which names @p what, when that takes too long.
template <class Predicate>
void await(Predicate done, std::string_view what)
{
    const auto end = Clock::now() + patience;
    while (!done()) {
        expect(Clock::now() < end, what);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

/// The cost of waiting for the process, and for the server in subscriptions.
struct Cost {
    std::size_t heap = heapInUse();
    std::size_t threads = threadCount();
    std::size_t descriptors = descriptorCount();
};

std::string noteOf(const Cost& before, std::size_t waiters, double channels)
{
    const auto bytes = static_cast<double>(heapInUse() - before.heap) / static_cast<double>(waiters);
    return fmt::format("{:.0f} bytes a waiter; {} threads, {} descriptors, {:.0f} subscriptions for all", bytes,
                       threadCount() - before.threads, descriptorCount() - before.descriptors, channels);
}

double subscribedChannels(RawConnection& server)
{
    return infoNumber(server, "stats", "pubsub_channels");
}

std::string waitName(std::size_t i)
{
    return fmt::format("bench:wait:{:06}", i);
}

/// Waits for one name with @p waiters asynchronous calls, each of which releases the lock as soon as it has it.
Pair queueForOneName(const Target& target, std::size_t waiters, const Side& ping)
{
    RawConnection server(target.host, target.port);
    const Client holder(target.url);
    LockGuard held(holder.getLock(waitName(0)));
    std::atomic<std::size_t> served{0};
    std::atomic<bool> failed{false};
    const Cost before;
    const Client client(target.url); // destroyed before the objects that its handlers use
    const auto lock = client.getLock(waitName(0));
    for (std::size_t i = 0; i < waiters; ++i) {
        lock.asyncLock([&](boost::system::error_code ec, LockGuard mine) {
            failed = failed || ec || !mine;
            mine = LockGuard();
            ++served;
        });
    }
    await([&] { return subscribedChannels(server) == 1; }, "the subscription of the waiters");
    const auto note = noteOf(before, waiters, subscribedChannels(server));
    const auto scripts = [&] { return infoNumber(server, "commandstats", "cmdstat_evalsha:calls"); };
    const auto scriptsBefore = scripts();
    const auto begin = Clock::now();
    held.release();
    await([&] { return served == waiters; }, "the last of the waiters");
    const auto taken = Clock::now() - begin;
    expect(!failed, "an asynchronous lock");
    const auto each = static_cast<double>(waiters);
    return {microseconds(taken) / each, ping(std::chrono::milliseconds(300)),
            fmt::format("{}; {:.2f} requests a grant", note, (scripts() - scriptsBefore) / each)};
}

/// One waiter for each of many names, all of which another client holds.
class ManyNames {
public:
    ManyNames(const Target& target, std::size_t names)
        : server_(target.host, target.port), holder_(target.url), grantedAt_(names), client_(target.url)
    {
        for (std::size_t i = 0; i < names; ++i) {
            held_.emplace_back(holder_.getLock(waitName(i)));
        }
        const Cost before;
        for (std::size_t i = 0; i < names; ++i) {
            client_.getLock(waitName(i)).asyncLock([this, i](boost::system::error_code ec, LockGuard mine) {
                failed_ = failed_ || ec || !mine;
                grantedAt_[i] = Clock::now();
                ++served_;
            });
        }
        const auto all = static_cast<double>(names);
        await([&] { return subscribedChannels(server_) == all; }, "the subscriptions of the waiters");
        note_ = noteOf(before, names, all);
    }

    /// Releases one lock after another, each after a pause, and waits until its waiter has it.
    double medianWakeUp(std::size_t count)
    {
        std::vector<double> samples;
        for (std::size_t i = 0; i < count; ++i) {
            std::this_thread::sleep_for(pause);
            samples.push_back(microseconds(passOn(next_++)));
        }
        return median(std::move(samples));
    }

    /// Releases all remaining locks at once. @return a text about what happened.
    std::string passOnTheRest()
    {
        const auto begin = Clock::now();
        const auto rest = held_.size() - next_;
        for (; next_ < held_.size(); ++next_) {
            held_[next_] = LockGuard();
        }
        await([&] { return served_ == held_.size(); }, "the last of the waiters");
        const Seconds taken = Clock::now() - begin;
        await([&] { return subscribedChannels(server_) == 0; }, "the end of the subscriptions");
        expect(!failed_, "an asynchronous lock");
        return fmt::format("{}; {} freed at once: all granted after {:.2f} s; then no subscription is left", note_,
                           rest, taken.count());
    }

    static constexpr std::chrono::milliseconds pause{3};

private:
    Clock::duration passOn(std::size_t i)
    {
        const auto before = served_.load();
        const auto called = Clock::now();
        held_[i] = LockGuard();
        await([&] { return served_ > before; }, "a waiter that is woken");
        return grantedAt_[i] - called;
    }

    RawConnection server_;
    Client holder_;
    std::vector<LockGuard> held_;
    std::vector<Clock::time_point> grantedAt_;
    std::string note_;
    std::size_t next_ = 0;
    std::atomic<std::size_t> served_{0};
    std::atomic<bool> failed_{false};
    Client client_; // destroyed before the objects that its handlers use
};

} // namespace

Measure waitersOfOneName(const Target& target, std::size_t waiters)
{
    return [=, ping = pingSide(target, std::chrono::microseconds(0))](Seconds, First) {
        return queueForOneName(target, waiters, ping);
    };
}

Measure waitersOfManyNames(const Target& target, std::size_t names)
{
    return [=, ping = pingSide(target, ManyNames::pause)](Seconds, First) {
        const std::size_t samples = std::min<std::size_t>(300, names / 2);
        ManyNames many(target, names);
        Pair pair;
        pair.ours = many.medianWakeUp(samples);
        pair.reference = ping(std::chrono::seconds(1));
        pair.note = many.passOnTheRest();
        return pair;
    };
}

} // namespace redislock::bench
