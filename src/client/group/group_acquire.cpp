#include "client/group/group_acquire.hpp"

#include "client/completion.hpp"
#include "client/lock/lock_access.hpp"
#include "core/operation/operation.hpp"
#include "link/request/patience.hpp"
#include "values/system/process.hpp"

#include <algorithm>
#include <new>
#include <set>
#include <string>
#include <utility>

namespace redislock::detail {

namespace {

/// How long a first acquire waits to learn which servers it talks to.
constexpr std::chrono::milliseconds identifyFor{250};

/// The pauses between waits for one member, after which the others could not be had.
RetryPolicy betweenWaits()
{
    return RetryPolicy::exponential(std::chrono::milliseconds(1), std::chrono::milliseconds(16));
}

} // namespace

bool haveOneServerTwice(const GroupMembers& members)
{
    std::set<std::string> seen;
    return members.rule == GroupMembers::Rule::majority && std::ranges::any_of(members.locks, [&](const Lock& lock) {
               Engine& engine = LockAccess::engine(lock);
               auto ids = engine.nodeIds(); // of a cluster, in which any node may have answered
               if (ids.empty()) {
                   ids.push_back(engine.serverId().text());
               }
               const bool isKnown =
                   std::ranges::any_of(ids, [&](const std::string& id) { return !id.empty() && seen.contains(id); });
               seen.insert(ids.begin(), ids.end());
               return isKnown;
           });
}

GroupAcquire::GroupAcquire(std::shared_ptr<const GroupMembers> members, Order order)
    : members_(std::move(members)),
      order_(std::move(order)),
      flow_({.members = members_->configs(),
             .needed = members_->needed(),
             .isMajority = members_->rule == GroupMembers::Rule::majority,
             .byPolicy = order_.retry != nullptr,
             .wait = order_.wait,
             .lease = order_.lease,
             .began = began_},
            *this),
      random_(freshSeed())
{
}

std::error_code GroupAcquire::run(std::shared_ptr<GroupHold>& hold)
{
    const std::stop_callback wakes(order_.stop, [this] { changed_.notify(Signal::look); });
    bool calledOff = false;
    identifyServers();
    std::unique_lock lock(mutex_);
    while (!over_) {
        const TimePoint now = BootClock::now();
        if (!calledOff && order_.stop.stop_requested()) {
            calledOff = true;
            lock.unlock();
            cancel();
            lock.lock();
        } else if (const auto round = std::exchange(toAsk_, 0); round > 0) {
            lock.unlock();
            askPolicy(round);
            lock.lock();
        } else if (now >= until_) {
            until_ = TimePoint::max(); // the thread that handles the event sets the next
            lock.unlock();
            step(TimerFired{now});
            lock.lock();
        } else {
            const TimePoint until = until_;
            lock.unlock();
            changed_.waitUntil(until);
            lock.lock();
        }
    }
    hold = hold_;
    return calledOff ? std::error_code() : error_;
}

void GroupAcquire::start(End end)
{
    end_ = std::move(end);
    self_ = shared_from_this();
    try {
        identifyServers();
    } catch (const std::bad_alloc&) {
        cancel();
    }
}

void GroupAcquire::cancel()
{
    step(Cancelled{BootClock::now(), Errc::shutdown});
}

bool GroupAcquire::anyState(ServerId::State state) const
{
    return std::ranges::any_of(
        members_->locks, [state](const Lock& lock) { return LockAccess::engine(lock).serverId().state() == state; });
}

/// The first time, the attempts wait a moment for the servers to tell who they are, at most half of the call's wait:
/// the other half is for the attempts.
void GroupAcquire::identifyServers()
{
    using State = ServerId::State;
    if (members_->rule == GroupMembers::Rule::all) {
        return startFlow();
    }
    const bool first = anyState(State::fresh);
    if (first) {
        wakeAt(BootClock::now() +
               (order_.wait.isOneAttempt() ? identifyFor : std::min(identifyFor, order_.wait.span() / 2)));
    }
    for (const auto& lock : members_->locks) {
        Engine& engine = LockAccess::engine(lock);
        const auto state = engine.serverId().state();
        if (state == State::fresh || state == State::failed) {
            engine.serverId().ask(engine.shared_from_this(), [weak = weak_from_this()] {
                const auto self = weak.lock();
                if (self && !self->anyState(State::asking) && !self->anyState(State::fresh)) {
                    self->startFlow();
                }
            });
        }
    }
    if (!first || !anyState(State::asking)) {
        startFlow();
    }
}

void GroupAcquire::startFlow()
{
    step(Start{BootClock::now()});
}

/// If no other thread handles events, this one does, including those that come meanwhile. Calls out of here, some of
/// which call back at once, are made under no mutex.
void GroupAcquire::step(const GroupMachine::Event& event)
{
    const auto self = shared_from_this();
    std::unique_lock lock(mutex_);
    patiently([&] { events_.push_back(event); });
    if (std::exchange(busy_, true)) {
        return;
    }
    while (!events_.empty()) {
        const auto next = std::move(events_.front());
        events_.pop_front();
        if (!over_) {
            lock.unlock();
            try {
                handle(next);
            } catch (const std::bad_alloc&) { // half-done: ends, and gives back what it has
                giveUp();
                end(std::make_error_code(std::errc::not_enough_memory));
            } catch (const LockError& e) { // no thread to ask a member
                giveUp();
                end(e.code());
            }
            lock.lock();
        }
    }
    busy_ = false;
}

void GroupAcquire::handle(const GroupMachine::Event& event)
{
    const bool isStart = std::holds_alternative<Start>(event);
    if (isStart && flow_.state() != GroupMachine::State::idle) {
        return;
    }
    if (std::holds_alternative<TimerFired>(event)) {
        callOffTimer_ = nullptr;
    }
    const auto* cancelled = std::get_if<Cancelled>(&event);
    cancelled_ = cancelled_ || (cancelled != nullptr && cancelled->reason == Errc::shutdown);
    if (!isStart && !cancelled_ && flow_.state() == GroupMachine::State::idle) {
        return handle(Start{BootClock::now()}); // the time for the servers to tell who they are is over
    }
    follow(flow_.step(event));
}

/// Does what the flow asks for next.
void GroupAcquire::follow(const WaitStep& next)
{
    switch (next.kind) {
    case WaitStep::Kind::askPolicy:
        return awaitPolicy(next.refusals);
    case WaitStep::Kind::done:
        return end({});
    default:
        return wakeAt(next.until);
    }
}

std::optional<Reason> GroupAcquire::begin()
{
    if (haveOneServerTwice(*members_)) {
        return Cause::sameServer;
    }
    hold_ = std::make_shared<GroupHold>(members_);
    return std::nullopt;
}

void GroupAcquire::ask(std::uint32_t round, std::size_t member, Wait wait)
{
    hold_->ask(member, wait, order_.lease, [self = shared_from_this(), round](std::size_t who, const auto& answer) {
        self->step(MemberAnswered{BootClock::now(), round, who, answer});
    });
}

void GroupAcquire::giveUp()
{
    if (hold_) {
        hold_->end();
    }
}

std::optional<Reason> GroupAcquire::keep()
{
    if (haveOneServerTwice(*members_)) {
        return Cause::sameServer;
    }
    members_->tell([waited = BootClock::now() - began_, rounds = flow_.result().rounds](
                       Observer& observer, const LockEvent& event) { observer.acquired(event, waited, rounds); });
    hold_->keep();
    return std::nullopt;
}

/// Makes the policy be asked on a thread that it may block.
void GroupAcquire::awaitPolicy(std::uint32_t round)
{
    if (end_) { // on a client's thread: this may be the thread of the call's user
        callOff();
        if (!doAt(BootClock::now(), [self = shared_from_this(), round] { self->askPolicy(round); })) {
            step(Cancelled{BootClock::now(), Errc::shutdown});
        }
        return;
    }
    const std::lock_guard lock(mutex_); // the waiting thread asks
    toAsk_ = round;
    until_ = TimePoint::max();
    changed_.notify(Signal::look);
}

/// Asks the policy. Under no mutex: no other thread asks it, or draws from the same random numbers.
void GroupAcquire::askPolicy(std::uint32_t round)
{
    const RetryPolicy own = betweenWaits();
    std::visit(
        [this](auto event) {
            event.now = BootClock::now();
            step(event);
        },
        pauseOf(order_.retry ? *order_.retry : own, round, random_, order_.thrown));
}

/// The acquire is over. @param error of its own, not of the flow
void GroupAcquire::end(std::error_code error)
{
    const GroupResult& result = flow_.result();
    if (!error && result.kind == GroupResult::Kind::failed) {
        error = result.error;
    }
    if (error || result.kind != GroupResult::Kind::granted) {
        hold_.reset();
    }
    if (!error && result.kind == GroupResult::Kind::contended) {
        members_->tell(
            [waited = BootClock::now() - began_, rounds = result.rounds](Observer& observer, const LockEvent& event) {
                observer.contended(event, std::nullopt, waited, rounds);
            });
    }
    callOff();
    {
        const std::lock_guard lock(mutex_);
        error_ = error;
        over_ = true;
        changed_.notify(Signal::look);
    }
    if (const auto tell = std::exchange(end_, nullptr)) {
        tell(handlersCode(error, cancelled_), std::move(hold_));
    }
    self_.reset(); // step() has another reference
}

/// Makes TimerFired come at that time.
void GroupAcquire::wakeAt(TimePoint when)
{
    if (!end_) {
        const std::lock_guard lock(mutex_);
        if (std::exchange(until_, when) != when) {
            changed_.notify(Signal::look); // the waiting thread looks at the time
        }
        return;
    }
    if (callOffTimer_ && when == until_) {
        return;
    }
    callOff();
    until_ = when;
    callOffTimer_ = doAt(when, [weak = weak_from_this()] {
        if (const auto self = weak.lock()) {
            self->step(TimerFired{BootClock::now()});
        }
    });
    if (!callOffTimer_) {
        step(Cancelled{BootClock::now(), Errc::shutdown}); // all clients have ended: nobody could ask
    }
}

/// Calls @p what on the background thread of one of the clients. @return what calls it off; null: all clients have
/// ended.
std::function<void()> GroupAcquire::doAt(TimePoint when, const std::function<void()>& what)
{
    for (const auto& lock : members_->locks) {
        if (auto callOff = LockAccess::engine(lock).doAt(when, what)) {
            return callOff;
        }
    }
    return nullptr;
}

void GroupAcquire::callOff()
{
    if (const auto callOff = std::exchange(callOffTimer_, nullptr)) {
        callOff();
    }
}

} // namespace redislock::detail
