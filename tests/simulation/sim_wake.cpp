// Who is woken, when and by whom, as in src/runtime/wake.cpp.
#include "simulation/operation.hpp"

#include <utility>

namespace redislock::simulation {

void Waiter::wake() const
{
    operation->wake();
}

void SimClient::subscribe(NamedLock& named)
{
    if (!std::exchange(named.subscribed, true)) {
        host_->post([this, &named] { subscriber_.want(named.channel, named.index); });
    }
}

void SimClient::unsubscribe(NamedLock& named)
{
    if (std::exchange(named.subscribed, false)) {
        host_->post([this, &named] { subscriber_.drop(named.channel); });
    }
}

/// A message, or a subscription that was confirmed: the first waiter tries once.
void SimClient::onChannel(std::size_t index, SimSubscriber::Table::Incoming::Kind kind)
{
    NamedLock& named = *names_[index];
    if (kind == SimSubscriber::Table::Incoming::Kind::refused || host_->now() < named.local.validUntil()) {
        return;
    }
    if (auto call = handOn(named)) {
        commands_.enqueue(std::move(call));
    }
}

std::shared_ptr<Call> SimClient::handOn(NamedLock& named)
{
    Waiter* head = named.waiters.head();
    if (head == nullptr) {
        return nullptr;
    }
    if (head->submitted) {
        head->notified = true; // the try under way may have been answered before this
        return nullptr;
    }
    if (!head->parked || head->hold->command.pending) {
        head->notified = true;
        head->wake();
        return nullptr;
    }
    head->submitted = true;
    prepareLock(head->hold->command, head->lease, 1, Situation::acquireAsking);
    head->hold->command.finished = [&named](Call& call) {
        named.waiters.forEach([&call](Waiter& waiter) { // unless it has gone meanwhile
            if (waiter.hold.get() == call.hold) {
                waiter.wake();
            }
        });
    };
    return {head->hold, &head->hold->command};
}

std::shared_ptr<Call> SimClient::handOnFairly(NamedLock& named)
{
    constexpr std::uint32_t most = 16;
    if (named.waiters.empty()) {
        return nullptr;
    }
    if (named.othersListen && ++named.handOns > most) {
        named.handOns = 0;
        named.raceAfterRelease = true;
        return nullptr;
    }
    return handOn(named);
}

void SimClient::noteAudience(const Call& call)
{
    NamedLock& named = *call.hold->lock;
    if (call.replied && call.reply.kind == Reply::Kind::integer && call.reply.integer >= 1) {
        named.othersListen = call.reply.integer - 1 > (named.subscribed ? 1 : 0);
    }
}

void SimClient::wakeHead(NamedLock& named)
{
    if (Waiter* head = named.waiters.head()) {
        head->notified = true;
        head->wake();
    }
}

} // namespace redislock::simulation
