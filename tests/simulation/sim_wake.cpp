// Who is woken, when and by whom, as in src/runtime/wake.cpp.
#include "simulation/operation.hpp"

#include <utility>

namespace redislock::simulation {

using detail::Asking;

void Waiter::wake() const
{
    operation->wake();
}

void SimClient::subscribe(NamedLock& named)
{
    if (!std::exchange(named.subscribed, true)) {
        host_->post([this, &named] { subscriber_.want(named.channel(), {named.index}); });
    }
}

void SimClient::subscribe(NamedLock& named, Waiter& waiter)
{
    if (named.traits().asking != Asking::queue) {
        return subscribe(named);
    }
    if (!std::exchange(waiter.subscribed, true)) {
        host_->post([this, &named, hold = waiter.hold] {
            subscriber_.want(named.channel() + hold->holder, {named.index, hold->id});
        });
    }
}

void SimClient::unsubscribe(NamedLock& named)
{
    if (std::exchange(named.subscribed, false)) {
        host_->post([this, &named] { subscriber_.drop(named.channel(), {named.index}); });
    }
}

void SimClient::unsubscribe(NamedLock& named, Waiter& waiter)
{
    if (std::exchange(waiter.subscribed, false)) {
        host_->post([this, &named, hold = waiter.hold] {
            subscriber_.drop(named.channel() + hold->holder, {named.index, hold->id});
        });
    }
}

/// Where each waiter asks for itself: all of them look, or the one with this holder does.
void SimClient::wakeWaiters(NamedLock& named, std::uint64_t of)
{
    named.waiters.forEach([of](Waiter& waiter) {
        if (of == 0 || waiter.hold->id == of) {
            waiter.notified = true;
            waiter.wake();
        }
    });
}

/// A message, or a subscription that was confirmed: the first waiter tries once, or all of those that listen.
void SimClient::onChannel(Listener listener, SimSubscriber::Table::Incoming::Kind kind)
{
    NamedLock& named = *names_[listener.index];
    if (kind == SimSubscriber::Table::Incoming::Kind::refused) {
        return;
    }
    if (named.traits().asking != Asking::first) {
        return wakeWaiters(named, listener.holder);
    }
    if (host_->now() < named.local.validUntil()) {
        return;
    }
    if (auto call = handOn(named.waiters.head())) {
        commands_.enqueue(std::move(call));
    }
}

std::shared_ptr<Call> SimClient::handOn(Waiter* next)
{
    detail::FirstInLine first;
    if (next != nullptr) {
        first = {.submitted = next->submitted, .sleeps = next->parked && !next->hold->command.pending};
    }
    switch (detail::handOnTo(next == nullptr ? nullptr : &first)) {
    case detail::HandOn::nobody:
    case detail::HandOn::race: // all go over one connection here
        break;
    case detail::HandOn::remember:
        next->notified = true;
        break;
    case detail::HandOn::look:
        next->notified = true;
        next->wake();
        break;
    case detail::HandOn::send:
        return submitFor(*next);
    }
    return nullptr;
}

std::shared_ptr<Call> SimClient::submitFor(Waiter& waiter)
{
    NamedLock& named = *waiter.hold->lock;
    waiter.submitted = true;
    waiter.refusals.queued(named.releases);
    prepareLock(waiter.hold->command, waiter.lease, 1, Situation::acquireAsking);
    waiter.hold->command.finished = [&named](Call& call) {
        const auto wake = [&call](Waiter& each) { // unless it has gone meanwhile
            if (each.hold.get() == call.hold) {
                each.wake();
            }
        };
        named.waiters.forEach(wake);
        named.askers.forEach(wake);
    };
    return {waiter.hold, &waiter.hold->command};
}

std::shared_ptr<Call> SimClient::handOnFairly(NamedLock& named)
{
    const detail::KindTraits& kind = named.traits();
    Waiter* next = nextOf(named);
    if (next == nullptr || kind.asking != Asking::first) {
        return nullptr;
    }
    if (!kind.handsOn) {
        named.handOver.race();
        return nullptr;
    }
    return named.handOver.mayFollow() ? handOn(next) : nullptr;
}

void SimClient::noteAudience(const Call& call)
{
    if (call.replied) {
        call.hold->lock->handOver.answered(call.reply, call.hold->lock->subscribed);
    }
}

Waiter* SimClient::nextOf(const NamedLock& named)
{
    Waiter* next = named.waiters.head();
    if (next == nullptr) {
        named.askers.forEach([&next](Waiter& waiter) { next = next == nullptr && waiter.comesBack ? &waiter : next; });
    }
    return next;
}

void SimClient::wakeNext(NamedLock& named)
{
    if (Waiter* next = nextOf(named)) {
        next->notified = true;
        next->wake();
    }
}

} // namespace redislock::simulation
