#include "simulation/wakeup_checker.hpp"

#include "simulation/safety_checker.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace redislock::simulation {

void WakeUpChecker::executed(const Request& request, const Reply& reply)
{
    if (request.kind == nullptr) {
        return;
    }
    const VirtualTime now = scheduler_.now();
    const bool locks = request.does(&detail::KindTraits::lock);
    if (locks) {
        lastAttempt_[request.name] = now;
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
        expectAttempt(request.name, now, promptly, Freed::released);
    } else if (key->expiresAtMs) {
        const VirtualTime end((*key->expiresAtMs + 1) * 1'000'000);
        scheduler_.at(end, [this, name = request.name, end] {
            expectAttempt(name, end, std::max(seenUntil_[name] - end, VirtualTime{0}) + promptly, Freed::expired);
        });
    }
}

void WakeUpChecker::expectAttempt(const std::string& name, VirtualTime freedAt, VirtualTime within, Freed how)
{
    if (keyspace_.find(name, millisecondOf(freedAt)) != nullptr) {
        return;
    }
    scheduler_.at(freedAt + within, [this, name, freedAt, how] {
        if (lastAttempt_[name] >= freedAt) {
            return;
        }
        if (const auto who = waiterSince_(name, freedAt); !who.empty()) {
            throw Violation(how == Freed::released ? "T4 no lost wake-up" : "T5 the dead hand over",
                            fmt::format("{} is free since {:.3f} ms, {} waits for it and does not try", name,
                                        static_cast<double>(freedAt.count()) / 1e6, who));
        }
    });
}

} // namespace redislock::simulation
