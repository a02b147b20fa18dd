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
        const auto answer = LockAnswer::from(reply);
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
    : Operation(client), named_(named), lease_(lease), retry_(std::move(retry)), isOneAttempt_(wait.isOneAttempt())
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
    if (!isOneAttempt_ && named.traits().keepsPlace) {
        waiter_.hold->command.place = placesKept * client.config().pollInterval;
    }
    (isOneAttempt_ ? named_.oneShots : named_.waiters).join(waiter_);
}

OutermostAcquire::~OutermostAcquire()
{
    if (!left_) { // the process is gone
        (isOneAttempt_ ? named_.oneShots : named_.waiters).leave(waiter_);
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
    if (isOneAttempt_) {
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
        conclude({.kind = AcquireResult::Kind::contended});
        return true;
    }
    auto settings = client_.settingsFor(deadline_ == TimePoint::max() ? waitForever : Wait(deadline_ - now()), lease_);
    settings.retry = retry_.get();
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
        tries_ = 0;
        place_ = Place::turn;
        return true;
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
    auto over = std::get<detail::Done<AcquireResult>>(action).result;
    over.kind = AcquireResult::Kind::contended;
    conclude(over);
    return true;
}

/// Sends the acquire, unless somebody did already.
void OutermostAcquire::ask()
{
    ++tries_;
    place_ = Place::asking;
    const auto call = std::shared_ptr<Call>(waiter_.hold, &waiter_.hold->command);
    if (std::exchange(waiter_.submitted, false)) {
        awaitAnswer(call, askUntil_);
    } else {
        client_.prepareLock(*call, waiter_.lease, 1, Situation::acquireAsking);
        send(call, askUntil_);
    }
}

bool OutermostAcquire::readAnswer()
{
    constexpr int triesBehindReleases = 3;
    if (!answered()) {
        return false;
    }
    event_ = lockEvent(*call_, now());
    if (busyAnswer(event_) == nullptr || named_.unansweredReleases == 0 || tries_ == triesBehindReleases) {
        return step();
    }
    // refused perhaps only because of a hold of this client whose release is under way
    ++named_.releaseWatchers;
    place_ = Place::releases;
    return true;
}

bool OutermostAcquire::awaitReleases()
{
    waiter_.parked = false;
    if (named_.unansweredReleases > 0 && !waiter_.submitted && now() < askUntil_) {
        park(askUntil_);
        return false;
    }
    --named_.releaseWatchers;
    if (!waiter_.submitted && named_.unansweredReleases > 0) {
        return step();
    }
    ask();
    return true;
}

bool OutermostAcquire::sleep()
{
    waiter_.parked = false;
    if (waiter_.submitted || std::exchange(waiter_.notified, false)) {
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
    waiter_.hold->commandTaken = false;
    (isOneAttempt_ ? named_.oneShots : named_.waiters).leave(waiter_);
    client_.unsubscribe(named_, waiter_);
    if (named_.waiters.empty()) {
        client_.unsubscribe(named_);
    } else if (named_.traits().asking == Asking::first && now() >= named_.local.validUntil()) {
        client_.wakeHead(named_);
    }
}

} // namespace redislock::simulation
