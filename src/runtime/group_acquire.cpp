#include "runtime/group_acquire.hpp"

#include "runtime/lock_access.hpp"

#include <boost/asio/error.hpp>

#include <algorithm>
#include <atomic>
#include <random>
#include <set>
#include <string>
#include <utility>

namespace redislock::detail {

namespace {

/// For how long a first acquire waits to be told which servers it talks to.
constexpr std::chrono::milliseconds identifyFor{250};

std::uint64_t seed()
{
    // differs between processes and calls; more is not needed of a pause
    static std::atomic<std::uint64_t> calls{std::random_device()()};
    return (calls.fetch_add(1) << 32U) ^ static_cast<std::uint64_t>(BootClock::now().time_since_epoch().count());
}

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
    : members_(std::move(members)), order_(std::move(order)), machine_(settings()), random_(seed())
{
}

GroupMachine::Settings GroupAcquire::settings() const
{
    GroupMachine::Settings settings;
    settings.members = members_->locks.size();
    settings.needed = members_->needed();
    settings.wait = order_.wait;
    settings.retry = &order_.retry;
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
        if (now >= until_) {
            lock.unlock();
            tick();
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
    {
        const std::lock_guard lock(mutex_);
        cancelled_ = true;
    }
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
    for (const auto& lock : members_->locks) {
        Engine& engine = LockAccess::engine(lock);
        const auto state = engine.serverId().state();
        if (state == State::fresh || state == State::failed) {
            engine.serverId().ask(engine.shared_from_this(), [weak = weak_from_this()] {
                const auto self = weak.lock();
                if (self && !self->anyState(State::asking)) {
                    self->begin();
                }
            });
        }
    }
    if (!first || !anyState(State::asking)) {
        return begin();
    }
    const std::lock_guard lock(mutex_);
    if (!began_ && !over_) {
        wakeAt(BootClock::now() + identifyFor);
    }
}

void GroupAcquire::begin()
{
    {
        const std::lock_guard lock(mutex_);
        if (std::exchange(began_, true)) {
            return;
        }
    }
    step(Start{BootClock::now()});
}

/// The time that was asked for has come.
void GroupAcquire::tick()
{
    begin();
    step(TimerFired{BootClock::now()});
}

void GroupAcquire::step(const GroupMachine::Event& event)
{
    End end;
    std::shared_ptr<GroupAcquire> self; // let go of after the mutex
    {
        const std::lock_guard lock(mutex_);
        if (over_) {
            return;
        }
        follow(machine_.resume(event, random_));
        if (!over_) {
            return;
        }
        end = std::exchange(end_, nullptr);
        self = std::move(self_);
    }
    if (end) { // nothing changes any more
        end(cancelled_ && error_ ? boost::asio::error::operation_aborted : boost::system::error_code(error_), hold_);
    }
}

/// Does what the machine asks for. Expects the mutex.
void GroupAcquire::follow(const GroupMachine::Action& action)
{
    if (const auto* done = std::get_if<Done<GroupResult>>(&action)) {
        return finish(done->result);
    }
    if (const auto* ask = std::get_if<AskMembers>(&action)) {
        if (haveOneServerTwice(*members_)) {
            return finish(Errc::badConfig);
        }
        hold_ = std::make_shared<GroupHold>(members_);
        hold_->ask(order_.lease,
                   [self = shared_from_this(), round = ask->round](std::size_t member, const MemberAnswer& answer) {
                       self->step(MemberAnswered{BootClock::now(), round, member, answer});
                   });
        return wakeAt(ask->until);
    }
    if (const auto* retreat = std::get_if<Retreat>(&action)) {
        hold_->end();
        return wakeAt(retreat->until);
    }
}

void GroupAcquire::finish(const GroupResult& result)
{
    if (result.kind == GroupResult::Kind::granted) {
        hold_->keep();
        return finish(haveOneServerTwice(*members_) ? std::error_code(Errc::badConfig) : std::error_code());
    }
    if (hold_) {
        hold_->end();
        hold_.reset();
    }
    finish(result.kind == GroupResult::Kind::failed ? std::error_code(result.error) : std::error_code());
}

void GroupAcquire::finish(std::error_code error)
{
    if (error && hold_) {
        hold_->end();
        hold_.reset();
    }
    error_ = error;
    over_ = true;
    callOff();
    changed_.notify_all();
}

/// Expects the mutex.
void GroupAcquire::wakeAt(TimePoint when)
{
    until_ = when;
    changed_.notify_all();
    if (!end_) {
        return; // the thread that waits sees to it
    }
    callOff();
    for (const auto& lock : members_->locks) {
        callOffTimer_ = LockAccess::engine(lock).doAt(when, [weak = weak_from_this(), when] {
            if (const auto self = weak.lock()) {
                self->timeIs(when);
            }
        });
        if (callOffTimer_) {
            return;
        }
    }
    finish(Errc::shutdown);
}

/// A timer went off; perhaps that of an earlier stage.
void GroupAcquire::timeIs(TimePoint when)
{
    {
        const std::lock_guard lock(mutex_);
        if (until_ != when) {
            return;
        }
    }
    tick();
}

void GroupAcquire::callOff()
{
    if (const auto callOff = std::exchange(callOffTimer_, nullptr)) {
        callOff();
    }
}

} // namespace redislock::detail
