#include "simulation/wakeup_checker.hpp"

#include "simulation/safety_checker.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace redislock::simulation {

using detail::KindTraits;

void WakeUpChecker::executed(const Request& request, const Reply& reply)
{
    if (request.kind == nullptr) {
        return;
    }
    const VirtualTime now = scheduler_.now();
    const bool locks = request.does(&KindTraits::lock);
    if (locks) {
        lastAttempt_[{request.name, Who::anybody}] = now;
    }
    if (locks && request.kind->asking == detail::Asking::each) {
        lastAttempt_[{request.name, Who::readers}] = now;
    }
    if (locks && reply.kind == Reply::Kind::integer) {
        const auto told = reply.integer < 0 ? longestPoll : VirtualTime(reply.integer * 1'000'000);
        auto& seen = seenUntil_[request.name];
        seen = std::max(seen, now + told + told / 50); // by a clock that may be slow
    }
    if (!isOn_) {
        return;
    }
    const auto* key = keyspace_.find(request.name, millisecondOf(now));
    if (key == nullptr) {
        return expectFreed(request.name, now, promptly, Freed::released);
    }
    const bool ends = request.does(&KindTraits::unlock) && reply.kind == Reply::Kind::integer && reply.integer > 0;
    if (ends && request.kind->asking != detail::Asking::each) { // a writer that goes on as a reader
        expectAttempt(request.name, now, promptly, Freed::released, Who::readers);
    }
    if (key->expiresAtMs) {
        const VirtualTime end((*key->expiresAtMs + 1) * 1'000'000);
        scheduler_.at(end, [this, name = request.name, end] {
            expectFreed(name, end, std::max(seenUntil_[name] - end, VirtualTime{0}) + promptly, Freed::expired);
        });
    }
}

void WakeUpChecker::expectFreed(const std::string& name, VirtualTime freedAt, VirtualTime within, Freed how)
{
    if (keyspace_.find(name, millisecondOf(freedAt)) == nullptr) {
        expectAttempt(name, freedAt, within, how, Who::anybody);
    }
}

void WakeUpChecker::expectAttempt(const std::string& name, VirtualTime freedAt, VirtualTime within, Freed how, Who who)
{
    scheduler_.at(freedAt + within, [this, name, freedAt, how, who] {
        if (lastAttempt_[{name, who}] >= freedAt) {
            return;
        }
        if (const auto waiter = waiterSince_(name, freedAt, who); !waiter.empty()) {
            throw Violation(how == Freed::released ? "T4 no lost wake-up" : "T5 the dead hand over",
                            fmt::format("{} is free since {:.3f} ms, {} waits for it and does not try", name,
                                        static_cast<double>(freedAt.count()) / 1e6, waiter));
        }
    });
}

} // namespace redislock::simulation
