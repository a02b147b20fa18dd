#include "simulation/loss_checker.hpp"

#include "core/renewing.hpp"

#include "simulation/safety_checker.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace redislock::simulation {

using namespace std::chrono_literals;
using std::chrono::duration_cast;
using std::chrono::milliseconds;

void expectLossTold(const std::string& holder, TimePoint deadline, const Host& host, VirtualTime now)
{
    const bool isAwake = now > host.runsSince(); // work that was due during a pause is done at its end
    if (isAwake && host.now() > deadline + 1ms) {
        throw Violation("T1 lost signal", fmt::format("{} is over and was not told lost", holder));
    }
}

void expectNoChance(const RunOut& hold, const Host& host, VirtualTime lastTrouble)
{
    constexpr double latest = 0.36; // of a lease: when a renewal is due, with its spread
    constexpr auto pause = 1200ms;  // the longest before the next attempt to connect
    const auto needed = 2 * detail::renewalTimeout(hold.lease, hold.commandTimeout) + pause + hold.lease / 20 + 50ms;
    const auto due = host.trueTime(hold.renewedAt + duration_cast<std::chrono::nanoseconds>(hold.lease * latest));
    const auto begin = std::max(due, lastTrouble);
    const auto end = host.trueTime(hold.deadline);
    if (end - begin > needed) {
        throw Violation("T3 renewal resilience",
                        fmt::format("{} was lost by the clock, though it could have been renewed for {} ms",
                                    hold.holder, duration_cast<milliseconds>(end - begin).count()));
    }
}

} // namespace redislock::simulation
