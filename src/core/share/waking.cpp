#include "core/share/waking.hpp"

#include "core/core.hpp"
#include "core/share/handoff.hpp"
#include "wire/key_schema.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

namespace redislock::detail {

namespace {

/// The listener of a name, or of a waiter with a channel of its own.
ChannelListener listenerOf(NamedLock& named, HolderId of = {})
{
    return {named.weak_from_this(), static_cast<std::uint64_t>(of),
            [](void* whose, std::uint64_t part, Notice notice, std::string_view /*text*/) {
                auto& heard = *static_cast<NamedLock*>(whose);
                const Inside inside(heard.core->port);
                heard.core->waking.heard(heard, HolderId{part}, notice);
            }};
}

/// The listener for grants to waiters of any name.
ChannelListener listenerOf(const std::shared_ptr<Core>& core)
{
    return {core, 0, [](void* whose, std::uint64_t /*part*/, Notice notice, std::string_view text) {
                auto& heard = *static_cast<Core*>(whose);
                const Inside inside(heard.port);
                heard.waking.heardOfGrant(notice, text);
            }};
}

/// The listener for grants to waiters of this name.
ChannelListener grantListenerOf(NamedLock& named)
{
    return {named.weak_from_this(), ~std::uint64_t{0},
            [](void* whose, std::uint64_t /*part*/, Notice notice, std::string_view text) {
                auto& heard = *static_cast<NamedLock*>(whose);
                const Inside inside(heard.core->port);
                heard.core->waking.heardOfGrant(notice, text, &heard);
            }};
}

/// How long the subscription to the channel of grants outlasts the last waiter: the next one then need not subscribe.
constexpr std::chrono::seconds keepsListening{1};
/// A client that locks again after a hold as long as this would leave the name free for less than a twentieth of the
/// time, though its release was answered before.
constexpr std::chrono::milliseconds longHold{1};
/// How long a message may be on its way that was published before the answer to a request that has come.
constexpr std::chrono::milliseconds awaitsMessage{5};

} // namespace

void Waking::subscribe(NamedLock& named)
{
    if (named.listening == Listening::no) {
        core_.port.want(patiently([&] { return named.channel(); }), listenerOf(named));
        named.listening = Listening::asked;
    }
}

void Waking::subscribe(NamedLock& named, Waiter& waiter)
{
    if (named.traits().asking != Asking::queue) {
        return subscribe(named);
    }
    if (listensByName()) {
        return listenByName(named, waiter);
    }
    joinQueued(named);
    if (grants_ == Listening::no) {
        grantListener_ = listenerOf(named.core);
        core_.port.want(patiently([this] { return channelOfGrants(); }), grantListener_);
        grants_ = Listening::asked;
    } else {
        listens(named, waiter, grants_);
    }
}

/// A waiter of a name with a queue is about to sleep, whose client listens already.
void Waking::listens(NamedLock& named, Waiter& waiter, Listening listening)
{
    if (listening == Listening::refused) {
        subscribeOwn(named, waiter);
    } else if (listening == Listening::confirmed && !waiter.call->isHeard) {
        waiter.notified = true; // confirmed while its request was being refused: it asks once more
    }
}

bool Waking::hearsOfGrants(NamedLock& named, const Waiter& waiter)
{
    const bool isByName = listensByName();
    const bool hears = (isByName ? named.listening : grants_) == Listening::confirmed &&
                       waiter.call->place.count() > 0 && named.traits().asking == Asking::queue;
    if (hears && !isByName) {
        joinQueued(named); // the message may come before the answer to the request
    }
    return hears;
}

void Waking::subscribeOwn(NamedLock& named, Waiter& waiter)
{
    if (!waiter.subscribed) {
        core_.port.want(patiently([&] { return named.channel() + core_.holderText(*waiter.hold); }),
                        listenerOf(named, waiter.hold->id));
        waiter.subscribed = true;
    }
}

/// No lock has this channel for its own: in its place a lock's channel has a name in braces, or one that contains a
/// brace.
std::string Waking::channelOfGrants() const
{
    return std::string(lockChannelPrefix) + ":" + core_.id;
}

/// In a cluster a script that frees a name may publish only on sharded channels in the slot of that name.
bool Waking::listensByName() const noexcept
{
    return !core_.channelMark.empty();
}

std::string Waking::channelOfGrants(const NamedLock& named) const
{
    return ">" + named.channel().substr(core_.channelMark.size()) + core_.id;
}

void Waking::listenByName(NamedLock& named, Waiter& waiter)
{
    if (named.listening == Listening::no) {
        core_.port.want(patiently([&] { return channelOfGrants(named); }), grantListenerOf(named));
        named.listening = Listening::asked;
    } else {
        listens(named, waiter, named.listening);
    }
}

/// Ends the subscription to the name's own channel of grants, if nobody waits.
void Waking::listenNoLonger(NamedLock& named) noexcept
{
    if (named.waiters.empty() && std::exchange(named.listening, Listening::no) != Listening::no) {
        core_.port.drop(patiently([&] { return channelOfGrants(named); }), grantListenerOf(named));
    }
}

void Waking::joinQueued(NamedLock& named)
{
    if (named.listening == Listening::no) {
        patiently([&] { queued_.emplace(named.name, &named); });
        named.listening = grants_ == Listening::confirmed ? grants_ : Listening::asked;
    }
}

/// Ends the subscription some time after the last waiter has left, if no other has come.
void Waking::listenNoLonger()
{
    looksLater_ = false;
    if (!queued_.empty() || grants_ == Listening::no) {
        return;
    }
    const TimePoint end = saturatingAdd(queuedUntil_, keepsListening);
    if (core_.port.now() < end && !core_.isClosing()) {
        core_.port.after(end, [this] { listenNoLonger(); });
        looksLater_ = true;
        return;
    }
    grants_ = Listening::no;
    core_.port.drop(patiently([this] { return channelOfGrants(); }), grantListener_);
}

void Waking::unsubscribe(NamedLock& named) noexcept
{
    if (listensByName() && named.traits().asking == Asking::queue) {
        try {
            if (named.listening != Listening::no && !core_.isClosing()) {
                return core_.port.after(core_.port.now() + keepsListening,
                                        [this, keep = named.shared_from_this()] { listenNoLonger(*keep); });
            }
        } catch (const std::bad_alloc&) { // then at once
        }
        return listenNoLonger(named);
    }
    if (std::exchange(named.listening, Listening::no) == Listening::no) {
        return;
    }
    if (named.traits().asking != Asking::queue) {
        return core_.port.drop(patiently([&] { return named.channel(); }), listenerOf(named));
    }
    queued_.erase(named.name);
    queuedUntil_ = core_.port.now();
    if (queued_.empty() && !looksLater_) {
        listenNoLonger();
    }
}

void Waking::unsubscribe(NamedLock& named, Waiter& waiter) noexcept
{
    if (std::exchange(waiter.subscribed, false)) {
        core_.port.drop(patiently([&] { return named.channel() + core_.holderText(*waiter.hold); }),
                        listenerOf(named, waiter.hold->id));
    }
    if (named.waiters.empty() && !listensOn(named)) {
        unsubscribe(named);
    }
}

/// Where a message may still come that tells whether the others used their time, the subscription outlasts the last
/// waiter. @return whether it does.
bool Waking::listensOn(NamedLock& named) noexcept
{
    if (named.turn == nullptr || !named.turn->isInDoubt() || core_.isClosing()) {
        return false;
    }
    try {
        core_.port.after(core_.port.now() + awaitsMessage, [this, keep = named.shared_from_this()] {
            if (keep->waiters.empty()) {
                unsubscribe(*keep);
            }
        });
    } catch (const std::bad_alloc&) {
        return false;
    }
    return true;
}

/// For kinds whose waiters ask each for itself: lets all of them try, in one packet, or only the one with this holder.
void Waking::wakeWaiters(NamedLock& named, HolderId of)
{
    const TimePoint now = core_.port.now();
    const bool isGap = named.turn != nullptr && now < std::max(named.turn->gapUntil(), named.turn->closedUntil(now));
    named.waiters.forEach([&](Waiter& waiter) {
        if (of != HolderId{} && waiter.hold->id != of) {
            return;
        }
        if (isGap) {
            waiter.notified = true;
            waiter.look();
        } else if (auto call = letTry(named, &waiter, waiter.hold->lane)) {
            core_.port.submit(waiter.hold->lane, std::move(call));
        }
    });
}

void Waking::heard(NamedLock& named, HolderId of, Notice notice)
{
    if (notice != Notice::message && named.listening != Listening::no) {
        named.listening = notice == Notice::confirmed ? Listening::confirmed : Listening::refused;
    }
    if (notice == Notice::refused) {
        core_.port.tell([keep = named.shared_from_this()](Observer& observer) {
            observer.subscribeRefused({keep->name, {}, objectKind(keep->kind)});
        });
        return named.waiters.forEach([](Waiter& waiter) { waiter.look(); }); // they poll
    }
    if (named.traits().asking != Asking::first) {
        return wakeWaiters(named, of);
    }
    const TimePoint now = core_.port.now();
    Turn* const turn = named.turn.get();
    if (turn != nullptr) {
        notice == Notice::message ? turn->messageHeard(now) : turn->listens();
    }
    Waiter* head = named.waiters.head();
    if (head == nullptr || now < named.local.validUntil()) { // the end of that hold wakes the waiter
        return;
    }
    const bool isForOthers = turn != nullptr && (!turn->endsWithMessage(now) || now < turn->gapUntil());
    if (head->aside && (notice != Notice::message || isForOthers)) {
        return; // the lock is left to others
    }
    if (notice == Notice::message && turn != nullptr && turn->defers(now)) {
        head->notified = true;
        head->asksFrom = now + turn->grace();
        return head->look();
    }
    if (auto call = letTry(named, head, head->hold->lane)) {
        core_.port.submit(head->hold->lane, std::move(call));
    }
}

void Waking::letFirstTry(NamedLock& named)
{
    if (named.waiters.empty()) {
        return;
    }
    if (named.traits().asking != Asking::first) {
        return wakeWaiters(named, {});
    }
    Waiter* head = named.waiters.head();
    if (core_.port.now() < named.local.validUntil() || head->aside) {
        return; // the end of that hold, or of the turn of others, wakes the waiter
    }
    if (auto call = letTry(named, head, head->hold->lane)) {
        core_.port.submit(head->hold->lane, std::move(call));
    }
}

void Waking::tell(NamedLock& named, const GrantMessage& grant)
{
    named.waiters.forEach([&](Waiter& waiter) {
        if (waiter.hold->id == grant.holder) {
            waiter.grant = {grant.request, grant.lasts};
            waiter.look();
        }
    });
}

/// The waiters of a name will hear of grants from now on, or will not.
void Waking::tellGrants(NamedLock& named, Notice notice)
{
    if (notice == Notice::refused) { // then each waiter listens on a channel of its own
        heard(named, {}, notice);
        named.listening = listensByName() ? Listening::refused : Listening::asked;
        return named.waiters.forEach([&](Waiter& waiter) { subscribeOwn(named, waiter); });
    }
    named.listening = Listening::confirmed;
    wakeWaiters(named, {});
}

void Waking::heardOfGrant(Notice notice, std::string_view text, NamedLock* named)
{
    if (notice == Notice::message) {
        const auto grant = GrantMessage::from(text);
        const auto found = grant && named == nullptr ? queued_.find(grant->name) : queued_.end();
        named = found != queued_.end() ? found->second : named;
        return grant && named != nullptr && grant->name == named->name ? tell(*named, *grant) : void();
    }
    if (named != nullptr) {
        return named->listening != Listening::no ? tellGrants(*named, notice) : void();
    }
    if (grants_ == Listening::no) {
        return; // heard after the last waiter had gone: the channel is not listened to any more
    }
    grants_ = notice == Notice::confirmed ? Listening::confirmed : Listening::refused;
    for (const auto& [name, each] : queued_) {
        tellGrants(*each, notice);
    }
}

/// The lock may have become free: lets a waiter try, if there is one. The request of a sleeping waiter is made here and
/// queued by the caller under the mutex, so that the waiter need not be woken first.
/// @param lane of the caller's own request
std::shared_ptr<HoldCall> Waking::letTry(NamedLock& named, Waiter* waiter, Lane lane) noexcept
{
    FirstInLine first;
    if (waiter != nullptr) {
        first = {.leaves = waiter->ended.has_value() || waiter->inherited != nullptr,
                 .submitted = waiter->submitted,
                 .sameLane = waiter->hold->lane == lane,
                 .sleeps = waiter->parked && !waiter->call->pending};
    }
    switch (howToFollow(waiter == nullptr ? nullptr : &first)) {
    case Follow::nobody:
        break;
    case Follow::race:
        named.race = true;
        break;
    case Follow::remember:
        waiter->notified = true;
        break;
    case Follow::look:
        waiter->notified = true;
        waiter->look();
        break;
    case Follow::send:
        return submitFor(*waiter);
    }
    return nullptr;
}

/// Prepares the request of a sleeping waiter.
std::shared_ptr<HoldCall> Waking::submitFor(Waiter& waiter) noexcept
{
    waiter.submitted = true;
    waiter.call->isHeard = hearsOfGrants(*waiter.hold->lock, waiter);
    core_.begins(waiter);
    waiter.refusals.queued(waiter.hold->lock->releases);
    waiter.call->prepare(HoldCall::Verb::lock, waiter.lease, 1);
    setRequester(*waiter.call, waiter.run);
    if (waiter.run != nullptr) {
        waiter.run->look();
    }
    return waiter.call;
}

Waking::Next Waking::letFollow(const Hold& ended, Lane lane) noexcept
{
    NamedLock& named = *ended.lock;
    const KindTraits& kind = named.traits();
    if (kind.asking != Asking::first) {
        readerLeft(named, ended);
        return {};
    }
    Next next;
    const TimePoint now = core_.port.now();
    Waiter* waiter = nextOf(named);
    const bool mayComeBack = waiter != nullptr || now - ended.grantedAt >= longHold;
    if (mayComeBack && named.turn == nullptr && named.takeTurns() != nullptr) {
        named.turn->granted(ended.grantedAt, ended.grantedAt);
    }
    Turn* const turn = named.turn.get();
    if (waiter != nullptr && !kind.follows) {
        named.race = true;
    } else if (waiter != nullptr && (turn == nullptr || turn->mayFollow(now))) {
        next.call = letTry(named, waiter, lane);
        next.quiet = next.call != nullptr && turn != nullptr && !kind.channelPrefix.empty() && turn->isQuiet(now);
        waiter->mustNotify = waiter->mustNotify || next.quiet;
    }
    if (turn != nullptr && next.quiet) {
        turn->releaseFollowed(now);
    } else if (turn != nullptr) {
        turn->releasePublished(now, next.call != nullptr, named.listening != Listening::no, core_.random);
        if (now < turn->asideUntil()) {
            wakeNext(named); // the waiter sleeps until then
        }
    }
    return next;
}

/// Readers of one client that overlap leave gaps too, for writers that wait for no message.
void Waking::readerLeft(NamedLock& named, const Hold& ended) noexcept
{
    const bool isLast = named.local.holds().empty();
    if (!isLast && named.turn == nullptr && named.takeTurns() != nullptr) {
        named.turn->granted(ended.grantedAt, ended.grantedAt);
    }
    const TimePoint now = core_.port.now();
    const bool isDue = isLast && named.turn != nullptr && !named.turn->mayFollow(now);
    if (isLast && named.turn != nullptr) {
        named.turn->releasePublished(now, false, false, core_.random);
    }
    if (isDue) { // those who were not let in sleep until the end of the gap now
        const auto look = [](Waiter& waiter) { waiter.look(); };
        named.waiters.forEach(look);
        named.askers.forEach(look);
    }
}

/// The answer to a release that was published says how many heard it. It also shows how long the way to the server is:
/// what the last acquire found may be old, and from a slow moment.
void Waking::noteAudience(const HoldCall& call) noexcept
{
    NamedLock& named = *call.hold().lock;
    const Reply& reply = call.reply;
    const TimePoint now = core_.port.now();
    if (call.outcome.replied && named.turn != nullptr) {
        named.turn->answered(now - call.sentAt);
    }
    if (call.quiet || !call.outcome.replied) {
        return;
    }
    if (call.isAsking && reply.kind == Reply::Kind::integer && reply.integer >= 1) {
        core_.releasing.tellAtSource(named);
    }
    bool isShorter = false; // the first waiter need not sleep as long
    if (reply.kind == Reply::Kind::nil) {
        isShorter = named.turn != nullptr && named.turn->toldNobody(call.echoes);
    } else if (reply.kind == Reply::Kind::integer && reply.integer >= 1) {
        const auto others = reply.integer - 1 - (call.echoes ? 1 : 0);
        Turn* const turn = others > 0 ? named.takeTurns() : named.turn.get();
        isShorter = turn != nullptr && turn->othersListen(others, now);
    }
    if (isShorter) {
        wakeNext(named);
    }
}

/// The waiter to let in next at the end of a hold: the first that waits for messages, else the first that asks for
/// itself more than once.
Waiter* Waking::nextOf(const NamedLock& named) noexcept
{
    Waiter* next = named.waiters.head();
    if (next == nullptr) {
        named.askers.forEach([&next](Waiter& waiter) { next = next == nullptr && waiter.comesBack ? &waiter : next; });
    }
    return next;
}

/// Makes the next waiter look for itself.
void Waking::wakeNext(NamedLock& named) noexcept
{
    if (Waiter* next = nextOf(named)) {
        next->notified = true;
        next->look();
    }
}

} // namespace redislock::detail
