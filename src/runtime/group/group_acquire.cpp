#include "runtime/group/group_acquire.hpp"

#include "runtime/base/fresh_seed.hpp"
#include "runtime/engine/policy.hpp"
#include "runtime/lock/lock_access.hpp"

#include <boost/asio/error.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace redislock::detail {

namespace {

/// For how long a first acquire waits to be told which servers it talks to.
constexpr std::chrono::milliseconds identifyFor{250};

} // namespace

bool haveOneServerTwice(const GroupMembers& members)
{
    std::set<std::string> seen;
    return members.rule == GroupMembers::Rule::majority && std::ranges::any_of(members.locks, [&](const Lock& lock) {
               const auto id = LockAccess::engine(lock).serverId().text();
               return !id.empty() && !seen.insert(id).second;
           });
}

GroupAcquire::GroupAcquire(std::shared_ptr<const GroupMembers> members, Order order)
    : members_(std::move(members)), order_(std::move(order)), machine_(settings()), random_(freshSeed())
{
}

GroupMachine::Settings GroupAcquire::settings() const
{
    GroupMachine::Settings settings;
    settings.members = members_->locks.size();
    settings.needed = members_->needed();
    settings.wait = order_.wait;
    settings.began = BootClock::now();
    settings.memberTimeout = settings.unreachableAfter = std::chrono::milliseconds(0);
    auto lease = maxLease;
    for (const auto& lock : members_->locks) {
        const Engine& engine = LockAccess::engine(lock);
        lease = std::min(lease, engine.leaseTime(order_.lease));
        settings.memberTimeout = std::max(settings.memberTimeout, engine.config().commandTimeout);
        settings.unreachableAfter = std::max(settings.unreachableAfter, engine.config().unreachableAfter);
    }
    if (members_->rule == GroupMembers::Rule::majority) {
        settings.memberTimeout = memberTimeoutOf(lease, settings.memberTimeout);
    }
    return settings;
}

std::error_code GroupAcquire::run(std::shared_ptr<GroupHold>& hold)
{
    identifyServers();
    std::unique_lock lock(mutex_);
    while (!over_) {
        const TimePoint now = BootClock::now();
        if (const auto round = std::exchange(toAsk_, 0); round > 0) {
            lock.unlock();
            askPolicy(round);
            lock.lock();
        } else if (now >= until_) {
            until_ = TimePoint::max(); // whoever handles it sets the next
            lock.unlock();
            step(TimerFired{now});
            lock.lock();
        } else if (until_ == TimePoint::max()) {
            changed_.wait(lock);
        } else {
            changed_.wait_for(lock, until_ - now);
        }
    }
    hold = hold_;
    return error_;
}

void GroupAcquire::start(End end)
{
    end_ = std::move(end);
    self_ = shared_from_this();
    identifyServers();
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

/// The first time, the attempts wait a moment for the servers to tell who they are.
void GroupAcquire::identifyServers()
{
    using State = ServerId::State;
    if (members_->rule == GroupMembers::Rule::all) {
        return begin();
    }
    const bool first = anyState(State::fresh);
    if (first) {
        wakeAt(BootClock::now() +
               (order_.wait.isOneAttempt() ? identifyFor : std::min(identifyFor, order_.wait.span())));
    }
    for (const auto& lock : members_->locks) {
        Engine& engine = LockAccess::engine(lock);
        const auto state = engine.serverId().state();
        if (state == State::fresh || state == State::failed) {
            engine.serverId().ask(engine.shared_from_this(), [weak = weak_from_this()] {
                const auto self = weak.lock();
                if (self && !self->anyState(State::asking) && !self->anyState(State::fresh)) {
                    self->begin();
                }
            });
        }
    }
    if (!first || !anyState(State::asking)) {
        begin();
    }
}

void GroupAcquire::begin()
{
    step(Start{BootClock::now()});
}

/// Whoever finds nobody at it handles what happened, and what happens meanwhile: calls out of here, some of which call back at
/// once, are made under no lock.
void GroupAcquire::step(const GroupMachine::Event& event)
{
    const auto self = shared_from_this();
    std::unique_lock lock(mutex_);
    events_.push_back(event);
    if (std::exchange(busy_, true)) {
        return;
    }
    while (!events_.empty()) {
        const auto next = std::move(events_.front());
        events_.pop_front();
        if (!over_) {
            lock.unlock();
            handle(next);
            lock.lock();
        }
    }
    busy_ = false;
}

void GroupAcquire::handle(const GroupMachine::Event& event)
{
    const bool isStart = std::holds_alternative<Start>(event);
    if (isStart && machine_.state() != GroupMachine::State::idle) {
        return;
    }
    if (std::holds_alternative<TimerFired>(event)) {
        callOffTimer_ = nullptr;
    }
    const auto* cancelled = std::get_if<Cancelled>(&event);
    cancelled_ = cancelled_ || (cancelled != nullptr && cancelled->reason == Errc::shutdown);
    if (!isStart && !cancelled_ && machine_.state() == GroupMachine::State::idle) {
        return handle(Start{BootClock::now()}); // the servers were given their time to tell who they are
    }
    follow(machine_.resume(event));
}

/// Does what the machine asks for.
void GroupAcquire::follow(const GroupMachine::Action& action)
{
    if (const auto* done = std::get_if<Done<GroupResult>>(&action)) {
        return finish(done->result);
    }
    if (const auto* ask = std::get_if<AskMembers>(&action)) {
        if (haveOneServerTwice(*members_)) {
            return end(Errc::badConfig);
        }
        wakeAt(ask->until);
        hold_ = std::make_shared<GroupHold>(members_);
        hold_->ask(order_.lease,
                   [self = shared_from_this(), round = ask->round](std::size_t member, const MemberAnswer& answer) {
                       self->step(MemberAnswered{BootClock::now(), round, member, answer});
                   });
    } else if (const auto* retreat = std::get_if<Retreat>(&action)) {
        hold_->end();
        if (end_) { // nobody's thread but a client's: whoever made the call may be the one who is here
            callOff();
            if (!doAt(BootClock::now(),
                      [self = shared_from_this(), round = retreat->attempt] { self->askPolicy(round); })) {
                step(Cancelled{BootClock::now(), Errc::shutdown});
            }
            return;
        }
        const std::lock_guard lock(mutex_); // the thread that waits does it
        toAsk_ = retreat->attempt;
        until_ = TimePoint::max();
        changed_.notify_all();
    } else if (const auto* sleep = std::get_if<SleepUntil>(&action)) {
        wakeAt(sleep->until);
    } else {
        wakeAt(std::get<AwaitMembers>(action).until);
    }
}

/// Asks the policy. Under no lock: nobody else does, or draws from the same numbers.
void GroupAcquire::askPolicy(std::uint32_t round)
{
    std::visit([this](const auto& event) { step(event); }, pauseOf(order_.retry, round, random_, order_.thrown));
}

void GroupAcquire::finish(const GroupResult& result)
{
    if (result.kind == GroupResult::Kind::granted) {
        hold_->keep();
        return end(haveOneServerTwice(*members_) ? std::error_code(Errc::badConfig) : std::error_code());
    }
    if (hold_) {
        hold_->end();
    }
    hold_.reset();
    end(result.kind == GroupResult::Kind::failed ? std::error_code(result.error) : std::error_code());
}

/// It is over. @param error with which nothing is held.
void GroupAcquire::end(std::error_code error)
{
    if (error && hold_) {
        hold_->end();
        hold_.reset();
    }
    callOff();
    {
        const std::lock_guard lock(mutex_);
        error_ = error;
        over_ = true;
        changed_.notify_all();
    }
    if (const auto tell = std::exchange(end_, nullptr)) {
        tell(cancelled_ && error ? boost::asio::error::operation_aborted : boost::system::error_code(error),
             std::move(hold_));
    }
    self_.reset(); // step() has another
}

/// Has TimerFired come then.
void GroupAcquire::wakeAt(TimePoint when)
{
    if (!end_) {
        const std::lock_guard lock(mutex_);
        if (std::exchange(until_, when) != when) {
            changed_.notify_all(); // the thread that waits sees to it
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
        step(Cancelled{BootClock::now(), Errc::shutdown}); // nobody is left who could ask
    }
}

/// Has something done on the background thread of one of the clients. @return what calls it off; null: all of them have ended.
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
