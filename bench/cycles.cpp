/// @file
/// Whether anything grows when locks come and go for a long time.
#include "process_facts.hpp"
#include "reference/server_facts.hpp"
#include "rows.hpp"

#include <redislock/redislock.hpp>

#include <fmt/format.h>

#include <unistd.h>

#include <cstddef>
#include <string>

namespace redislock::bench {

namespace {

/// On a terminal, shows the progress: the row takes a minute.
void showShare(std::size_t done, std::size_t all)
{
    if (::isatty(STDERR_FILENO) == 1) {
        fmt::print(stderr, "\r\x1b[K{} of {} cycles", done, all);
    }
}

/// Names change all the time; every third cycle ends without waiting, every third has two levels.
void cycle(const Client& client, std::size_t i)
{
    const auto lock = client.getLock(fmt::format("bench:cycle:{}", i));
    if (i % 3 == 0) {
        const LockGuard held(lock);
        return;
    }
    lock.lock();
    if (i % 3 == 1) {
        lock.lock();
        expect(lock.unlock() == Unlocked::stillHeld, "the library's unlock() of a level");
    }
    expect(lock.unlock() == Unlocked::released, "the library's unlock()");
}

struct Use {
    std::size_t heap = heapInUse();
    std::size_t resident = residentBytes();
    std::size_t threads = threadCount();
    std::size_t descriptors = descriptorCount();
};

} // namespace

Measure cycles(const Target& target, std::size_t count)
{
    return [target, count](Seconds, First) {
        constexpr std::size_t first = 10'000;
        RawConnection server(target.host, target.port);
        const Client client(target.url);
        const auto begin = Clock::now();
        Use before;
        for (std::size_t i = 0; i < count; ++i) {
            if (i % first == 0) {
                showShare(i, count);
            }
            if (i == first) {
                before = Use();
            }
            cycle(client, i);
        }
        const Seconds taken = Clock::now() - begin;
        const Use after;
        expect(after.threads == before.threads, "the number of threads");
        expect(after.descriptors == before.descriptors, "the number of descriptors");
        expect(infoNumber(server, "stats", "pubsub_channels") == 0, "the number of subscriptions");
        constexpr double kB = 1000;
        return Pair{
            static_cast<double>(after.heap) / kB, static_cast<double>(before.heap) / kB,
            fmt::format("{:.0f} cycles a second; resident {:.0f} kB, before {:.0f} kB; threads, descriptors and "
                        "subscriptions as before: {}, {}, 0",
                        static_cast<double>(count) / taken.count(), static_cast<double>(after.resident) / kB,
                        static_cast<double>(before.resident) / kB, after.threads, after.descriptors)};
    };
}

} // namespace redislock::bench
