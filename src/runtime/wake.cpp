// Who is woken, when and by whom.
#include "runtime/engine.hpp"

#include <utility>

namespace redislock::detail {

/// What hears for a name, or for a waiter with a channel of its own.
ChannelListener Engine::listenerOf(NamedLock& named, HolderId of)
{
    return {named.weak_from_this(), static_cast<std::uint64_t>(of),
            [](void* whose, std::uint64_t part, Notice notice, std::string_view /*text*/) {
                auto& heard = *static_cast<NamedLock*>(whose);
                heard.engine->onChannel(heard, HolderId{part}, notice);
            }};
}

void Engine::subscribe(NamedLock& named)
{
    if (std::exchange(named.subscribed, true)) {
        return;
    }
    post([this, channel = named.channel(), listener = listenerOf(named)] {
        background_->subscriber.want(channel, listener);
    });
}

void Engine::subscribe(NamedLock& named, Waiter& waiter)
{
    if (named.traits().asking != Asking::queue) {
        return subscribe(named);
    }
    if (!std::exchange(waiter.subscribed, true)) {
        post([this, channel = named.channel() + holderText(waiter.hold), listener = listenerOf(named, waiter.hold.id)] {
            background_->subscriber.want(channel, listener);
        });
    }
}

void Engine::unsubscribe(NamedLock& named) noexcept
{
    if (std::exchange(named.subscribed, false)) {
        post([this, channel = named.channel(), listener = listenerOf(named)] {
            background_->subscriber.drop(channel, listener);
        });
    }
}

void Engine::unsubscribe(NamedLock& named, Waiter& waiter) noexcept
{
    if (std::exchange(waiter.subscribed, false)) {
        post([this, channel = named.channel() + holderText(waiter.hold), listener = listenerOf(named, waiter.hold.id)] {
            background_->subscriber.drop(channel, listener);
        });
    }
}

/// Where each waiter asks for itself: all of them look, or the one with this holder does.
void Engine::wakeWaiters(NamedLock& named, HolderId of) noexcept
{
    named.waiters.forEach([of](Waiter& waiter) {
        if (of == HolderId{} || waiter.hold.id == of) {
            waiter.notified = true;
            waiter.look();
        }
    });
}

/// A message, or a subscription that was confirmed or refused: in each case the first waiter tries once, or all of those that
/// listen. Background thread.
void Engine::onChannel(NamedLock& named, HolderId of, Notice notice)
{
    if (notice == Notice::refused) {
        tell([keep = named.shared_from_this()](Observer& observer) { observer.subscribeRefused({keep->name, {}}); });
        return; // the poll goes on
    }
    if (named.traits().asking != Asking::first) {
        const Lock lock(mutex_);
        return wakeWaiters(named, of);
    }
    {
        const Lock lock(mutex_);
        if (BootClock::now() < named.local.validUntil()) {
            return; // held by this client: the end of that hold wakes the waiter
        }
        const Waiter* head = named.waiters.head();
        if (head == nullptr) {
            return;
        }
        if (auto call = handOn(named, head->hold.lane)) {
            submit(std::move(call));
        }
    }
    commands_->flush();
}

/// The lock may have become free: lets the first waiter try. If it sleeps, its request is made here, to be queued by the
/// caller under the mutex, so that it need not be woken first.
std::shared_ptr<HoldCall> Engine::handOn(NamedLock& named, Lane lane) noexcept
{
    Waiter* head = named.waiters.head();
    FirstInLine first;
    if (head != nullptr) {
        first = {.leaves = head->ended.has_value(),
                 .submitted = head->submitted,
                 .sameLane = head->hold.lane == lane,
                 .sleeps = head->parked && !head->call->pending};
    }
    switch (handOnTo(head == nullptr ? nullptr : &first)) {
    case HandOn::nobody:
        break;
    case HandOn::race:
        named.handOver.race();
        break;
    case HandOn::remember:
        head->notified = true;
        break;
    case HandOn::look:
        head->notified = true;
        head->look();
        break;
    case HandOn::send:
        return submitFor(*head);
    }
    return nullptr;
}

/// The request of a waiter that sleeps.
std::shared_ptr<HoldCall> Engine::submitFor(Waiter& waiter) noexcept
{
    waiter.submitted = true;
    const bool isThread = waiter.operation == nullptr;
    waiter.call->prepare(HoldCall::Verb::lock, waiter.lease, 1, isThread ? Call::Mode::awaited : Call::Mode::detached);
    if (!isThread) {
        waiter.operation->look();
    }
    return waiter.call;
}

/// At the end of a hold.
std::shared_ptr<HoldCall> Engine::handOnFairly(NamedLock& named, Lane lane) noexcept
{
    const KindTraits& kind = named.traits();
    if (named.waiters.empty() || kind.asking != Asking::first) {
        return nullptr;
    }
    if (!kind.handsOn) {
        named.handOver.race();
        return nullptr;
    }
    return named.handOver.mayFollow() ? handOn(named, lane) : nullptr;
}

void Engine::noteAudience(const HoldCall& call) noexcept
{
    NamedLock& named = *call.hold().lock;
    if (call.outcome.replied) {
        named.handOver.answered(call.reply, named.subscribed);
    }
}

/// Lets the first waiter look for itself.
void Engine::wakeHead(NamedLock& named) noexcept
{
    if (Waiter* head = named.waiters.head()) {
        head->notified = true;
        head->look();
    }
}

} // namespace redislock::detail
