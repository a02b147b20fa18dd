#include "client/group/group_hold.hpp"

#include "client/lock/lock_access.hpp"
#include "values/printable.hpp"
#include "values/server_text.hpp"
#include "values/system/process.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>

#include <algorithm>
#include <condition_variable>
#include <new>
#include <set>
#include <utility>

namespace redislock::detail {

namespace {

MemberAnswer answerOf(const boost::system::error_code& ec, const LockGuard& guard)
{
    if (ec) {
        return {.kind = MemberAnswer::Kind::failed, .error = Reason::of(ec, Errc::unreachable)};
    }
    if (guard) {
        return {.kind = MemberAnswer::Kind::granted, .validUntil = BootClock::now() + guard.validFor()};
    }
    return {.kind = MemberAnswer::Kind::busy};
}

/// The group is held: its caller now knows of this member's hold.
void isKnown(const HoldRef& hold)
{
    if (hold != nullptr) {
        const auto inside = engineOf(*hold->lock).lock();
        hold->isTentative = false;
    }
}

/// Counts how the members' releases end, on any thread; reports how the group's release ended.
class ReleaseTally {
public:
    ReleaseTally(std::size_t asked, std::size_t needed, std::function<void(Unlocked)> whenReleased)
        : release_(asked, needed), whenReleased_(std::move(whenReleased))
    {
    }

    void count(Unlocked how)
    {
        std::unique_lock lock(mutex_);
        const auto result = release_.count(how);
        lock.unlock();
        if (result) {
            whenReleased_(*result);
        }
    }

private:
    std::mutex mutex_;
    GroupRelease release_;
    const std::function<void(Unlocked)> whenReleased_;
};

} // namespace

bool GroupMembers::isForked() const noexcept
{
    return std::ranges::any_of(locks, [](const Lock& lock) { return LockAccess::engine(lock).isForked(); });
}

std::vector<const Config*> GroupMembers::configs() const
{
    std::vector<const Config*> configs;
    for (const auto& lock : locks) {
        configs.push_back(&LockAccess::engine(lock).config());
    }
    return configs;
}

boost::asio::any_completion_executor GroupMembers::handlerExecutor() const
{
    return LockAccess::engine(locks.front()).handlerExecutor();
}

bool GroupMembers::isOwnThread() const noexcept
{
    return std::ranges::any_of(locks,
                               [](const Lock& lock) { return LockAccess::engine(lock).background().isOwnThread(); });
}

std::string GroupMembers::str() const
{
    std::string names = rule == Rule::all ? "MultiLock of" : "RedLock of";
    constexpr std::size_t shown = 5;
    for (std::size_t i = 0; i < locks.size() && i < shown; ++i) {
        names += (i == 0 ? " \"" : ", \"") + printable(locks[i].name()) + "\" on " +
                 serverText(LockAccess::engine(locks[i]).config());
    }
    return locks.size() > shown ? names + ", …" : names;
}

bool GroupMembers::isObserved() const noexcept
{
    return std::ranges::any_of(locks,
                               [](const Lock& lock) { return LockAccess::engine(lock).config().observer != nullptr; });
}

void GroupMembers::tellEach(const std::function<void(Observer&, const LockEvent&)>& what) const
{
    std::string names;
    for (const auto& lock : locks) {
        names += (names.empty() ? "" : ", ") + lock.name();
    }
    const auto kind = rule == Rule::all ? ObjectKind::multiLock : ObjectKind::redLock;
    std::set<const Observer*> told;
    for (const auto& lock : locks) {
        Engine& engine = LockAccess::engine(lock);
        const auto& observer = engine.config().observer;
        if (observer && told.insert(observer.get()).second) {
            engine.tell([what, names, kind](Observer& each) { what(each, LockEvent{names, {}, kind}); });
        }
    }
}

GroupHold::GroupHold(std::shared_ptr<const GroupMembers> members)
    : members_(std::move(members)), standing_(members_->locks.size(), members_->needed()), held_(members_->locks.size())
{
    deadlines_.reserve(held_.size());
}

GroupHold::~GroupHold()
{
    end();
}

void GroupHold::ask(std::size_t member, Wait wait, Lease lease, const Answer& answer)
{
    const auto attempt = std::make_shared<boost::asio::cancellation_signal>();
    {
        const std::lock_guard lock(mutex_);
        if (!standing_.isOpen()) {
            return;
        }
        held_[member].attempt = attempt;
    }
    // its executor is the client's own: the slot is cleared there, and abandon() uses it there
    auto arrival = [self = shared_from_this(), attempt, member, answer = Answer(answer)]( // is moved without a copy
                       boost::system::error_code ec, LockGuard guard) {
        MemberAnswer result = answerOf(ec, guard);
        try {
            self->arrived(member, std::move(guard));
        } catch (const std::bad_alloc&) { // its loss would not be noticed
            self->hurt(member, StopAt::lost);
            result = {.kind = MemberAnswer::Kind::failed, .error = Errc::unreachable};
        }
        answer(member, result);
    };
    LockAccess::acquireForGroup(members_->locks[member], wait, lease,
                                LockHandler(boost::asio::bind_cancellation_slot(attempt->slot(), std::move(arrival))));
}

/// The attempt at a member is over.
void GroupHold::arrived(std::size_t index, LockGuard guard)
{
    const std::stop_token lost = guard.stopToken(StopAt::lost);
    const std::stop_token atRisk = guard.stopToken(StopAt::atRisk);
    const bool granted = static_cast<bool>(guard);
    std::shared_ptr<boost::asio::cancellation_signal> over;
    HoldRef late;
    {
        const std::lock_guard lock(mutex_);
        if (standing_.isOpen()) {
            over = std::move(held_[index].attempt);
        }
        if (!granted || !standing_.granted(index)) {
            return; // too late: the guard gives the member back
        }
        held_[index].guard = std::move(guard);
        if (standing_.isHeld()) {
            late = LockAccess::hold(held_[index].guard);
        }
    }
    isKnown(late);
    const auto tellOf = [this, index](StopAt how) {
        return [weak = weak_from_this(), index, how] {
            if (const auto self = weak.lock()) {
                self->hurt(index, how);
            }
        };
    };
    // without the mutex: the member may be lost already, and then this calls back at once
    auto onRisk = std::make_unique<OnStop>(atRisk, tellOf(StopAt::atRisk));
    auto onLoss = std::make_unique<OnStop>(lost, tellOf(StopAt::lost));
    const std::lock_guard lock(mutex_);
    if (!held_.empty()) {
        held_[index].onRisk.swap(onRisk);
        held_[index].onLoss.swap(onLoss);
    }
}

void GroupHold::keep()
{
    std::unique_lock lock(mutex_);
    keptAt_ = BootClock::now();
    const auto verdict = standing_.keep();
    std::vector<HoldRef> kept;
    for (const auto& member : held_) {
        kept.push_back(LockAccess::hold(member.guard));
    }
    lock.unlock();
    std::ranges::for_each(kept, isKnown);
    follow(verdict, 0);
}

/// A member is lost, or at risk. Called on the background thread of its client.
void GroupHold::hurt(std::size_t index, StopAt how)
{
    std::unique_lock lock(mutex_);
    const auto verdict = standing_.hurt(index, how);
    lock.unlock();
    follow(verdict, index);
}

/// Reports what has become of the group, and ends a group that is lost. @param index the member whose client's thread
/// calls the stop callbacks.
void GroupHold::follow(GroupStanding::Verdict verdict, std::size_t index)
{
    if (verdict == GroupStanding::Verdict::asBefore) {
        return;
    }
    if (members_->isObserved()) {
        tellOf(verdict, index);
    }
    stop(index, atRisk_);
    if (verdict == GroupStanding::Verdict::lost) {
        std::vector<Member> taken;
        {
            const std::lock_guard lock(mutex_);
            taken.swap(held_);
        }
        stop(index, lost_);
        withdraw(taken);
    }
}

void GroupHold::tellOf(GroupStanding::Verdict verdict, std::size_t index)
{
    std::unique_lock lock(mutex_);
    const bool isRisk = verdict == GroupStanding::Verdict::atRisk;
    if (isRisk && std::exchange(isRiskTold_, true)) {
        return;
    }
    const auto left = standing_.validUntil(deadlines()) - BootClock::now();
    const HoldRef hold = held_.empty() ? nullptr : LockAccess::hold(held_[index].guard);
    lock.unlock();
    if (hold == nullptr) {
        return; // the hold was ended meanwhile
    }
    Engine& engine = LockAccess::engine(members_->locks[index]);
    const auto reason = [&] {
        const auto inside = engine.lock();
        return isRisk ? engine.core(inside).reasonOfEnd(*hold) : hold->reason;
    }();
    members_->tell([isRisk, left, reason](Observer& observer, const LockEvent& event) {
        isRisk ? observer.atRisk(event, left, reason) : observer.lost(event, reason);
    });
}

/// The callbacks do not run in here: a thread that ends the hold meanwhile waits for the callbacks of the members, and
/// must not wait for those of the user.
void GroupHold::stop(std::size_t index, const std::stop_source& source) const
{
    Engine& engine = LockAccess::engine(members_->locks[index]);
    const auto request = [copy = source]() mutable { copy.request_stop(); };
    if (engine.background().isOwnThread()) {
        engine.post(request); // called even if the client ends
    } else if (!engine.doAt(BootClock::now(), request)) {
        std::stop_source(source).request_stop();
    }
}

std::vector<GroupHold::Member> GroupHold::take() noexcept
{
    std::vector<Member> taken;
    const std::lock_guard lock(mutex_);
    if (standing_.end()) {
        taken.swap(held_);
    }
    return taken;
}

/// Ends the members' callbacks, and the attempts under way. What is granted all the same is given back as it arrives.
void GroupHold::withdraw(std::vector<Member>& taken) noexcept
{
    for (std::size_t i = 0; i < taken.size(); ++i) {
        taken[i].onRisk.reset();
        taken[i].onLoss.reset();
        Engine& engine = LockAccess::engine(members_->locks[i]);
        if (taken[i].attempt && !engine.isForked()) {
            engine.post([weak = std::weak_ptr(taken[i].attempt)] {
                if (const auto attempt = weak.lock()) {
                    attempt->emit(boost::asio::cancellation_type::terminal);
                }
            });
        }
    }
}

void GroupHold::end() noexcept
{
    if (members_->isForked()) {
        return; // a thread of the parent may hold the mutex
    }
    auto taken = take();
    withdraw(taken);
    if (!taken.empty() && members_->isObserved()) {
        try {
            giveBack(taken, nullptr); // to report how it ended
        } catch (...) {               // out of memory: the guards give the rest back
        }
    }
}

void GroupHold::release(const std::function<void(Unlocked)>& whenReleased)
{
    if (members_->isForked()) {
        return whenReleased(Unlocked::alreadyLost);
    }
    auto taken = take();
    withdraw(taken);
    giveBack(taken, whenReleased);
}

/// Releases what was granted. @param whenReleased gets how that ended; null: only observers do
void GroupHold::giveBack(std::vector<Member>& taken, const std::function<void(Unlocked)>& whenReleased)
{
    std::vector<LockGuard> guards;
    for (std::size_t i = 0; i < taken.size(); ++i) {
        if (standing_.isGranted(i)) {
            guards.push_back(std::move(taken[i].guard));
        }
    }
    if (guards.empty()) {
        return whenReleased ? whenReleased(Unlocked::alreadyLost) : void();
    }
    auto over = [whenReleased, members = members_, keptAt = keptAt_, ended = BootClock::now()](Unlocked how) {
        if (keptAt != TimePoint{}) {
            members->tell([how, held = ended - keptAt](Observer& observer, const LockEvent& event) {
                observer.released(event, how, held);
                if (how == Unlocked::unconfirmed) {
                    observer.unconfirmed(event);
                }
            });
        }
        if (whenReleased) {
            whenReleased(how);
        }
    };
    const auto tally = std::make_shared<ReleaseTally>(guards.size(), members_->needed(), std::move(over));
    for (auto& guard : guards) {
        guard.asyncRelease(
            [tally](boost::system::error_code ec, Unlocked how) { tally->count(ec ? Unlocked::alreadyLost : how); });
    }
}

Unlocked GroupHold::release()
{
    if (members_->isForked()) {
        return Unlocked::alreadyLost;
    }
    if (members_->isOwnThread()) {
        const bool wasHeld = BootClock::now() < validUntil();
        end();
        return wasHeld ? Unlocked::unconfirmed : Unlocked::alreadyLost;
    }
    struct Ending {
        std::mutex mutex;
        std::condition_variable told;
        std::optional<Unlocked> how;
    };
    const Uncancelled held;
    const auto ending = std::make_shared<Ending>();
    release([ending](Unlocked how) {
        const std::lock_guard lock(ending->mutex);
        ending->how = how;
        ending->told.notify_one();
    });
    std::unique_lock lock(ending->mutex);
    ending->told.wait(lock, [&] { return ending->how.has_value(); });
    return *ending->how;
}

/// The deadlines of the members that are held.
std::vector<TimePoint>& GroupHold::deadlines() const noexcept
{
    auto& deadlines = deadlines_;
    deadlines.clear();
    const TimePoint now = BootClock::now();
    for (std::size_t i = 0; i < held_.size(); ++i) {
        if (const auto left = held_[i].guard.validFor(); left > left.zero() && !standing_.isLost(i)) {
            deadlines.push_back(now + left); // the room is reserved
        }
    }
    return deadlines;
}

TimePoint GroupHold::validUntil() const
{
    if (members_->isForked()) {
        return {}; // a thread of the parent may hold the mutex
    }
    const std::lock_guard lock(mutex_);
    return standing_.validUntil(deadlines());
}

std::size_t GroupHold::heldMembers() const
{
    if (members_->isForked()) {
        return 0;
    }
    const std::lock_guard lock(mutex_);
    return standing_.isHeld() ? deadlines().size() : 0;
}

std::stop_token GroupHold::stopToken(StopAt when) const
{
    if (members_->isForked()) {
        return Core::stoppedToken();
    }
    const std::lock_guard lock(mutex_);
    if (!standing_.isHeld()) {
        return Core::stoppedToken();
    }
    return (when == StopAt::lost ? lost_ : atRisk_).get_token();
}

} // namespace redislock::detail
