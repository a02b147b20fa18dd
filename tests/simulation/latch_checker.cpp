#include "simulation/latch_checker.hpp"

#include "simulation/safety_checker.hpp"
#include "wire/script.hpp"

#include <fmt/format.h>

namespace redislock::simulation {

namespace scripts = detail::scripts;

namespace {

constexpr std::string_view latchRule = "S12 latch";

} // namespace

void LatchChecker::executed(const Request& request, const Reply& reply, VirtualTime now)
{
    Latch& latch = latches_[request.name];
    if (latch.isExcused || reply.isError()) {
        return;
    }
    const auto answer = foresee(latch, request, now);
    if (reply.integer != answer) {
        throw Violation(latchRule, fmt::format("{} of {} was answered {} instead of {}", request.script->name,
                                               request.name, reply.integer, answer));
    }
    const auto count = numberAt(keyspace_, request.name, now);
    if (count != latch.count) {
        throw Violation(latchRule, fmt::format("{} counts {} more, there are {}", request.name, count, latch.count));
    }
}

/// The effect of the request, if it is executed for the first time. @return its answer.
std::int64_t LatchChecker::foresee(Latch& latch, const Request& request, VirtualTime now)
{
    if (request.script == &scripts::counterGet) {
        return latch.count;
    }
    if (const auto answer = latch.answers.find(recordOf(request))) {
        return *answer;
    }
    std::int64_t answer = 0;
    if (request.script == &scripts::counterTrySet) {
        answer = latch.count == 0 ? 1 : 0;
        if (latch.count == 0) {
            latch.count = numberIn(request.arguments.at(0)).value();
            latch.openUntil = now;
        }
    } else {
        ++latch.distinct;
        latch.count -= latch.count > 0 ? 1 : 0;
        answer = latch.count;
        latch.openUntil = latch.count == 0 ? VirtualTime::max() : latch.openUntil;
    }
    latch.answers.keep(recordOf(request), answer);
    return answer;
}

void LatchChecker::passed(const std::string& name, VirtualTime began) const
{
    const auto found = latches_.find(name);
    if (found == latches_.end() || found->second.isExcused) {
        return;
    }
    const Latch& latch = found->second;
    if (latch.openUntil < began) {
        throw Violation(latchRule, fmt::format("somebody passed {}, which was closed all the time", name));
    }
}

void LatchChecker::expectAllCounted() const
{
    for (const auto& [name, latch] : latches_) {
        if (!latch.isExcused && (latch.distinct < latch.ended || latch.distinct > latch.begun)) {
            throw Violation(latchRule, fmt::format("{} was counted down {} times, by {} to {} calls", name,
                                                   latch.distinct, latch.ended, latch.begun));
        }
    }
}

} // namespace redislock::simulation
