/// @file
/// How a figure is taken: both sides in turn, in one run, on one server.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <string_view>

namespace redislock::bench {

using Seconds = std::chrono::duration<double>;

/// `CLOCK_MONOTONIC`: two processes may compare their times.
using Clock = std::chrono::steady_clock;

/// One repetition: the same figure for both sides, measured one right after the other.
struct Pair {
    double ours = 0;
    double reference = 0;
    std::string note{}; ///< other observations for people; one line
};

/// Which side of a pair is measured first; changes from pair to pair, so that a machine that slows down favours neither
/// side.
enum class First { ours, reference };

/// Measures one pair, each side for about the given time.
using Measure = std::function<Pair(Seconds, First)>;

/// Measures one figure of one side.
using Side = std::function<double(Seconds)>;

/// Two sides that are measured independently of each other.
Measure inTurn(Side ours, Side reference);

/// Runs @p body(thread, stop) on @p threads threads, which start together; sets `stop` after @p duration and awaits
/// them.
/// @return the time from the common start to the end of the last thread. @throws what a body throws.
Seconds runThreads(unsigned threads, Seconds duration,
                   const std::function<void(unsigned, const std::atomic<bool>&)>& body);

/// Lets each of @p threads threads call @p work(thread) again and again; counts the calls of all threads.
double callsPerSecond(unsigned threads, Seconds duration, const std::function<void(unsigned)>& work);

/// A figure of something that does not work is worthless.
/// @throws std::runtime_error, which names @p what, if it does not.
void expect(bool asItShouldBe, std::string_view what);

inline double microseconds(Clock::duration d)
{
    return std::chrono::duration<double, std::micro>(d).count();
}

} // namespace redislock::bench
