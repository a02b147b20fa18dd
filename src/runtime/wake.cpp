// Who is woken, when and by whom.
#include "runtime/engine.hpp"

#include <utility>

namespace redislock::detail {

void Engine::subscribe(NamedLock& named)
{
    if (std::exchange(named.subscribed, true)) {
        return;
    }
    post([this, channel = named.channel, listener = named.weak_from_this()] {
        background_->subscriber.want(channel, listener);
    });
}

void Engine::unsubscribe(NamedLock& named) noexcept
{
    if (std::exchange(named.subscribed, false)) {
        post([this, channel = named.channel] { background_->subscriber.drop(channel); });
    }
}

/// A message, or a subscription that was confirmed or refused: in each case the first waiter tries once. Background thread.
void Engine::onChannel(const std::weak_ptr<NamedLock>& listener, bool refused)
{
    const auto named = listener.lock();
    if (!named) {
        return;
    }
    if (refused) {
        tell([named](Observer& observer) { observer.subscribeRefused({named->name, {}}); });
        return; // the poll goes on
    }
    {
        const Lock lock(mutex_);
        if (BootClock::now() < named->local.validUntil()) {
            return; // held by this client: the end of that hold wakes the waiter
        }
        const Waiter* head = named->waiters.head();
        if (head == nullptr) {
            return;
        }
        if (auto call = handOn(*named, head->hold.lane)) {
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
    if (head == nullptr || head->ended) {
        return nullptr;
    }
    if (head->submitted) {
        head->notified = true; // the try under way may have been answered before this
        return nullptr;
    }
    if (head->hold.lane != lane) { // it would overtake the release
        named.raceAfterRelease = true;
        return nullptr;
    }
    if (!head->parked || head->hold.command.pending) {
        head->notified = true;
        head->look();
        return nullptr;
    }
    head->submitted = true;
    const bool isThread = head->operation == nullptr;
    head->hold.command.prepare(HoldCall::Verb::lock, head->lease, 1,
                               isThread ? Call::Mode::awaited : Call::Mode::detached);
    if (!isThread) {
        head->operation->look();
    }
    return {head->hold.shared_from_this(), &head->hold.command};
}

/// At the end of a hold: hands on, unless this process had the lock so often in a row that waiters elsewhere, who only now learn
/// that it is free, must get a chance. Then the first waiter tries when the release was answered, about when they do.
std::shared_ptr<HoldCall> Engine::handOnFairly(NamedLock& named, Lane lane) noexcept
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
    return handOn(named, lane);
}

/// Remembers whether a release told others than this client.
void Engine::noteAudience(const HoldCall& call) noexcept
{
    NamedLock& named = *call.hold().lock;
    if (call.outcome.replied && call.reply.kind == Reply::Kind::integer && call.reply.integer >= 1) {
        named.othersListen = call.reply.integer - 1 > (named.subscribed ? 1 : 0);
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
