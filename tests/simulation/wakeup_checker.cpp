#include "simulation/wakeup_checker.hpp"

#include "simulation/safety_checker.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace redislock::simulation {

using detail::KindTraits;

namespace {

const char* ruleOf(bool isRelease)
{
    return isRelease ? "T4 no lost wake-up" : "T5 the dead hand over";
}

bool modeIsRead(const Keyspace::Key& key)
{
    const std::string* mode = key.find("mode");
    return mode != nullptr && *mode == "read";
}

} // namespace

void WakeUpChecker::executed(const Request& request, const Reply& reply, const std::string& passedTo)
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
    if (const auto refused = locks ? detail::LockAnswer::refusal(reply) : std::nullopt) {
        const VirtualTime told = refused->timeToLive ? VirtualTime(*refused->timeToLive) : longestPoll;
        auto& seen = seenUntil_[request.name];
        seen = std::max(seen, now + told + told / 50); // by a clock that may be slow
    }
    if ((locks && reply.kind == Reply::Kind::nil) || !passedTo.empty()) {
        lastGrant_[request.name] = now;
    }
    if (!isOn_) {
        return;
    }
    if (!passedTo.empty()) {
        expectTaken(request.name, passedTo, now);
    }
    const auto* key = keyspace_.find(request.name, millisecondOf(now));
    const bool isQueue = request.kind->asking == detail::Asking::queue;
    const bool ends = (request.does(&KindTraits::unlock) || request.does(&KindTraits::forceUnlock)) &&
                      reply.kind == Reply::Kind::integer && reply.integer > 0;
    if (key == nullptr) { // if it was free before, no message is sent
        return ends ? expectFree(request.name, now, promptly, Freed::released, isQueue) : void();
    }
    if (ends && modeIsRead(*key) && request.kind->asking != detail::Asking::each) { // a writer goes on as a reader
        expectAttempt(request.name, now, promptly, Freed::released, Who::readers);
    }
    if (key->expiresAtMs) {
        const VirtualTime end((*key->expiresAtMs + 1) * 1'000'000);
        scheduler_.at(end, [this, name = request.name, end, isQueue] {
            const auto within = std::max(seenUntil_[name] - end, VirtualTime{0}) + promptly;
            expectFree(name, end, within, Freed::expired, isQueue);
        });
    }
}

void WakeUpChecker::expectFree(const std::string& name, VirtualTime freedAt, VirtualTime within, Freed how,
                               bool isQueue)
{
    if (keyspace_.find(name, millisecondOf(freedAt)) != nullptr) {
        return;
    }
    isQueue ? expectGrant(name, freedAt, within, how) : expectAttempt(name, freedAt, within, how, Who::anybody);
}

void WakeUpChecker::expectAttempt(const std::string& name, VirtualTime freedAt, VirtualTime within, Freed how, Who who)
{
    const auto lateWaiter = [this, name, freedAt, who] {
        return lastAttempt_[{name, who}] >= freedAt ? std::string() : waiterSince_(name, freedAt, who);
    };
    scheduler_.at(freedAt + within - longestGap, [=, this] {
        if (lateWaiter().empty()) { // perhaps since it stands behind a hold of its own client
            return;
        }
        scheduler_.at(freedAt + within, [=] {
            if (const auto waiter = lateWaiter(); !waiter.empty()) {
                fail(ruleOf(how == Freed::released), name, freedAt, waiter);
            }
        });
    });
}

/// The first in the queue; empty: nobody.
std::string WakeUpChecker::headOf(const std::string& name, VirtualTime now) const
{
    const auto* queue = keyspace_.find(detail::prefixed(detail::queuePrefix, name), millisecondOf(now));
    return queue == nullptr ? std::string() : queue->fields.front().first;
}

void WakeUpChecker::expectGrant(const std::string& name, VirtualTime freedAt, VirtualTime within, Freed how)
{
    const auto head = headOf(name, freedAt);
    if (head.empty()) {
        return;
    }
    const auto nobodyGotIt = [this, name, freedAt] { return lastGrant_[name] < freedAt; };
    if (isWaiting_(name, head)) {
        scheduler_.at(freedAt + within, [this, name, freedAt, how, head, nobodyGotIt] {
            if (nobodyGotIt() && isWaiting_(name, head)) {
                fail(ruleOf(how == Freed::released), name, freedAt, head);
            }
        });
    }
    scheduler_.at(freedAt + within + deadKeep_, [this, name, freedAt, nobodyGotIt] {
        if (const auto who = waiterSince_(name, freedAt, Who::anybody); nobodyGotIt() && !who.empty()) {
            fail("T6 the dead do not keep others waiting", name, freedAt, who);
        }
    });
}

void WakeUpChecker::expectTaken(const std::string& name, const std::string& holder, VirtualTime passedAt)
{
    if (isWaiting_(name, holder)) {
        scheduler_.at(passedAt + promptly, [this, name, holder, passedAt] {
            if (isWaiting_(name, holder)) {
                fail(ruleOf(true), name, passedAt, holder);
            }
        });
    }
}

void WakeUpChecker::fail(const std::string& rule, const std::string& name, VirtualTime freedAt, const std::string& who)
{
    throw Violation(rule, fmt::format("{} is free since {:.3f} ms, {} waits for it and does not try or get it", name,
                                      static_cast<double>(freedAt.count()) / 1e6, who));
}

} // namespace redislock::simulation
