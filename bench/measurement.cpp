#include "measurement.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <future>
#include <latch>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace redislock::bench {

Measure inTurn(Side ours, Side reference)
{
    return [ours = std::move(ours), reference = std::move(reference)](Seconds duration, First first) {
        // The background work of a side after its last call must not disturb the other side.
        constexpr std::chrono::milliseconds settle{10};
        Pair pair;
        if (first == First::ours) {
            pair.ours = ours(duration);
            std::this_thread::sleep_for(settle);
        }
        pair.reference = reference(duration);
        std::this_thread::sleep_for(settle);
        if (first == First::reference) {
            pair.ours = ours(duration);
            std::this_thread::sleep_for(settle);
        }
        return pair;
    };
}

Seconds runThreads(unsigned threads, Seconds duration,
                   const std::function<void(unsigned, const std::atomic<bool>&)>& body)
{
    std::atomic<bool> stop{false};
    std::latch start(static_cast<std::ptrdiff_t>(threads) + 1);
    std::vector<std::future<void>> running;
    for (unsigned thread = 0; thread < threads; ++thread) {
        running.push_back(std::async(std::launch::async, [&, thread] {
            start.arrive_and_wait();
            body(thread, stop);
        }));
    }
    start.arrive_and_wait();
    const auto begin = Clock::now();
    std::this_thread::sleep_for(duration);
    stop = true;
    for (auto& thread : running) {
        thread.wait();
    }
    const Seconds taken = Clock::now() - begin;
    for (auto& thread : running) {
        thread.get();
    }
    return taken;
}

double callsPerSecond(unsigned threads, Seconds duration, const std::function<void(unsigned)>& work)
{
    std::vector<std::uint64_t> calls(threads);
    const auto taken = runThreads(threads, duration, [&](unsigned thread, const std::atomic<bool>& stop) {
        std::uint64_t count = 0;
        for (; !stop.load(std::memory_order_relaxed); ++count) {
            work(thread);
        }
        calls[thread] = count;
    });
    return static_cast<double>(std::accumulate(calls.begin(), calls.end(), std::uint64_t(0))) / taken.count();
}

void expect(bool asItShouldBe, std::string_view what)
{
    if (!asItShouldBe) {
        throw std::runtime_error(fmt::format("not as it should be: {}", what));
    }
}

} // namespace redislock::bench
