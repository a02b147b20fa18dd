// Acquiring an outermost hold, as in src/runtime/acquire.cpp.
#include "simulation/operation.hpp"

#include <algorithm>
#include <utility>

namespace redislock::simulation {

using detail::AcquireMachine;
using detail::AcquireResult;
using detail::Asking;
using detail::LockAnswer;
using detail::Replied;

AcquireMachine::Event lockEvent(const Call& call, TimePoint now)
{
    return eventOf<AcquireMachine::Event>(call, now, [&](const Reply& reply) -> AcquireMachine::Event {
        const auto level = call.count > 1 ? detail::Level::nested : detail::Level::outermost;
        const auto answer = LockAnswer::from(reply, call.request.kind->tokens, level);
        if (!answer) {
            throw Violation("replies", "a lock script gave an answer that it cannot give");
        }
        return Replied<LockAnswer>{now, call.sentAt, *answer};
    });
}

namespace {

const LockAnswer* busyAnswer(const AcquireMachine::Event& event)
{
    const auto* replied = std::get_if<Replied<LockAnswer>>(&event);
    return replied != nullptr && replied->answer.kind == LockAnswer::Kind::busy ? &replied->answer : nullptr;
}

} // namespace

OutermostAcquire::OutermostAcquire(SimClient& client, NamedLock& named, std::uint64_t owner, Wait wait, Lease lease,
                                   detail::EndedBy endedBy, std::shared_ptr<const RetryPolicy> retry,
                                   const Hold* writer)
    : Operation(client),
      named_(named),
      wait_(wait),
      lease_(lease),
      retry_(std::move(retry)),
      asksForItself_(wait.isOneAttempt() || retry_ != nullptr)
{
    waiter_.operation = this;
    waiter_.hold = client.takeHold(named, owner);
    waiter_.hold->commandTaken = true;
    waiter_.lease = client.leaseTime(lease);
    waiter_.joined = now();
    deadline_ = saturatingAdd(waiter_.joined, wait.span());
    level_ = waiter_.hold->levels.add(lease, endedBy);
    if (writer != nullptr) {
        waiter_.hold->command.writer = writer->holder;
    }
    behindHold_ = waiter_.joined < named.local.validUntil();
    waiter_.comesBack = !wait.isOneAttempt();
    if (!asksForItself_ && named.traits().keepsPlace) {
        waiter_.hold->command.place = placesKept * client.config().pollInterval;
    }
    (asksForItself_ ? named_.askers : named_.waiters).join(waiter_);
}

OutermostAcquire::~OutermostAcquire()
{
    if (!left_) { // the process is gone
        (asksForItself_ ? named_.askers : named_.waiters).leave(waiter_);
    }
}

std::optional<Situation> OutermostAcquire::situation() const
{
    switch (place_) {
    case Place::asking:
    case Place::releases:
        return Situation::acquireAsking;
    case Place::sleeping:
        return machine_->state() == AcquireMachine::State::backingOff ? Situation::acquireBackingOff
                                                                      : Situation::acquireWaiting;
    default:
        return std::nullopt;
    }
}

void OutermostAcquire::advance()
{
    bool moved = true;
    while (moved && !isDone()) {
        switch (place_) {
        case Place::firstTurn:
            moved = begin();
            break;
        case Place::turn:
            moved = takeTurn();
            break;
        case Place::asking:
            moved = readAnswer();
            break;
        case Place::releases:
            moved = awaitReleases();
            break;
        case Place::sleeping:
            moved = sleep();
            break;
        case Place::over:
            return;
        }
    }
}

void OutermostAcquire::park(TimePoint until)
{
    waiter_.parked = true;
    alarm(until);
}

/// Nothing while it is not this waiter's turn: it is then parked.
std::optional<OutermostAcquire::Turn> OutermostAcquire::lookForTurn()
{
    waiter_.parked = false;
    if (asksForItself_) {
        return Turn::mine;
    }
    const bool first = named_.waiters.head() == &waiter_;
    const TimePoint heldUntil = named_.local.validUntil();
    if (waiter_.submitted || named_.traits().asking != Asking::first || (first && now() >= heldUntil)) {
        return Turn::mine;
    }
    if (now() >= deadline_) {
        return Turn::over;
    }
    park(first ? std::min(deadline_, heldUntil) : deadline_);
    return std::nullopt;
}

bool OutermostAcquire::begin()
{
    const auto turn = lookForTurn();
    if (!turn) {
        return false;
    }
    if (*turn == Turn::over) {
        conclude(withoutTurn({}));
        return true;
    }
    const auto left = std::max<std::chrono::nanoseconds>(deadline_ - now(), std::chrono::milliseconds(1));
    const bool bounded = !wait_.isOneAttempt() && deadline_ != TimePoint::max();
    auto settings = client_.settingsFor(bounded ? Wait(left) : wait_, lease_);
    settings.byPolicy = retry_ != nullptr;
    settings.contended = !asksForItself_ && wasContended();
    if (named_.silentSince) {
        settings.silentSince = std::max(*named_.silentSince, waiter_.joined);
    }
    machine_.emplace(settings);
    event_ = detail::Start{now()};
    return step();
}

/// Feeds the machine and does what it asks for.
bool OutermostAcquire::step()
{
    const auto action = machine_->resume(event_, client_.random());
    if (const auto* done = std::get_if<detail::Done<AcquireResult>>(&action)) {
        if (done->result.kind == AcquireResult::Kind::failed && done->result.error == Errc::unreachable) {
            named_.silentSince = machine_->lastAnswer();
        }
        conclude(done->result);
        return true;
    }
    if (const auto* send = std::get_if<detail::Send>(&action)) {
        askUntil_ = send->until;
        waiter_.refusals.start();
        place_ = Place::turn;
        return true;
    }
    if (const auto* policy = std::get_if<detail::AskPolicy>(&action)) {
        const auto pause = retry_->pauseAfter(policy->attempt, client_.random());
        event_ = detail::Pause{now(), pause ? std::optional(pause->span()) : std::nullopt};
        return step();
    }
    place_ = Place::sleeping;
    if (const auto* subscription = std::get_if<detail::Subscribe>(&action)) {
        client_.subscribe(named_, waiter_);
        sleepUntil_ = subscription->until;
    } else {
        sleepUntil_ = std::get<detail::SleepUntil>(action).until;
    }
    return true;
}

bool OutermostAcquire::takeTurn()
{
    const auto turn = lookForTurn();
    if (!turn) {
        return false;
    }
    if (*turn == Turn::mine) {
        ask();
        return true;
    }
    const auto action = machine_->resume(detail::Cancelled{now(), Errc::shutdown}, client_.random());
    conclude(withoutTurn(std::get<detail::Done<AcquireResult>>(action).result));
    return true;
}

/// Whether another is known to have had the lock since this waiter came.
bool OutermostAcquire::wasContended() const
{
    const Waiter* first = named_.waiters.head();
    const bool sleepsBefore = first != nullptr && first != &waiter_ && !first->hold->command.pending;
    return behindHold_ || sleepsBefore || (named_.answeredAt && *named_.answeredAt >= waiter_.joined) ||
           now() < named_.local.validUntil();
}

/// The wait was over before the turn came.
AcquireResult OutermostAcquire::withoutTurn(AcquireResult result) const
{
    result.kind = wasContended() ? AcquireResult::Kind::contended : AcquireResult::Kind::failed;
    result.error = Errc::unreachable;
    return result;
}

/// Sends the acquire, unless somebody did already.
void OutermostAcquire::ask()
{
    place_ = Place::asking;
    watchReleases(false);
    const auto call = std::shared_ptr<Call>(waiter_.hold, &waiter_.hold->command);
    if (std::exchange(waiter_.submitted, false)) {
        awaitAnswer(call, askUntil_);
    } else {
        client_.prepareLock(*call, waiter_.lease, 1, Situation::acquireAsking);
        waiter_.refusals.queued(named_.releases);
        send(call, askUntil_);
    }
}

bool OutermostAcquire::readAnswer()
{
    if (!answered()) {
        return false;
    }
    event_ = lockEvent(*call_, now());
    if (std::holds_alternative<Replied<LockAnswer>>(event_)) {
        named_.answeredAt = now();
    }
    if (busyAnswer(event_) == nullptr || !waiter_.refusals.passesOver(named_.releases)) {
        return step();
    }
    place_ = Place::releases;
    return true;
}

bool OutermostAcquire::awaitReleases()
{
    waiter_.parked = false;
    if (!waiter_.submitted) {
        if (now() >= askUntil_) {
            return step();
        }
        if (named_.releases.underWay()) {
            watchReleases(true);
            park(askUntil_);
            return false;
        }
    }
    ask();
    return true;
}

void OutermostAcquire::watchReleases(bool watches)
{
    if (std::exchange(watchesReleases_, watches) != watches) {
        watches ? ++named_.releaseWatchers : --named_.releaseWatchers;
    }
}

bool OutermostAcquire::sleep()
{
    waiter_.parked = false;
    const bool watches = waiter_.refusals.isOpen();
    watchReleases(watches);
    if (waiter_.submitted || std::exchange(waiter_.notified, false) || (watches && !named_.releases.underWay())) {
        event_ = detail::Notified{now()};
    } else if (now() >= sleepUntil_) {
        event_ = detail::TimerFired{now()};
    } else {
        park(sleepUntil_);
        return false;
    }
    return step();
}

void OutermostAcquire::conclude(const AcquireResult& result)
{
    using Kind = AcquireResult::Kind;
    const auto hold = waiter_.hold;
    end_ = {result.kind, result.error, nullptr, 0};
    if (result.kind == Kind::granted) {
        named_.silentSince.reset();
        client_.grant(*hold, level_, result);
        end_.hold = hold;
        end_.level = level_;
    } else if (result.mayBeHeld || (result.attempts > 0 && hold->command.place.count() > 0)) {
        client_.giveBack(*hold, saturatingAdd(now(), client_.leaseTime(lease_)));
    }
    leave();
    place_ = Place::over;
    finishOperation();
}

/// Leaves the queue, and hands on.
void OutermostAcquire::leave()
{
    left_ = true;
    watchReleases(false);
    waiter_.hold->commandTaken = false;
    (asksForItself_ ? named_.askers : named_.waiters).leave(waiter_);
    client_.unsubscribe(named_, waiter_);
    if (named_.waiters.empty()) {
        client_.unsubscribe(named_);
    }
    const bool handsOn = !named_.waiters.empty() || waiter_.comesBack; // a single attempt was given nothing to hand on
    if (handsOn && named_.traits().asking == Asking::first && now() >= named_.local.validUntil()) {
        client_.wakeNext(named_);
    }
}

} // namespace redislock::simulation
