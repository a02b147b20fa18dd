#include "runtime/group/group_hold.hpp"

#include "redislock/detail/protocol/printable.hpp"
#include "runtime/lock/lock_access.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>

#include <algorithm>
#include <condition_variable>
#include <utility>

namespace redislock::detail {

namespace {

MemberAnswer answerOf(const boost::system::error_code& ec, const LockGuard& guard)
{
    if (ec) {
        const std::error_code code = ec;
        const bool ours = code.category() == errorCategory();
        return {.kind = MemberAnswer::Kind::failed,
                .error = ours ? static_cast<Errc>(code.value()) : Errc::unreachable};
    }
    if (guard) {
        return {.kind = MemberAnswer::Kind::granted, .validUntil = BootClock::now() + guard.validFor()};
    }
    return {.kind = MemberAnswer::Kind::busy};
}

/// Counts the releases of the members of one group. It is told as soon as it is certain.
class ReleaseTally {
public:
    ReleaseTally(std::size_t asked, std::size_t needed, std::function<void(Unlocked)> whenReleased)
        : open_(asked), needed_(needed), whenReleased_(std::move(whenReleased))
    {
    }

    void count(Unlocked how)
    {
        std::function<void(Unlocked)> tell;
        Unlocked result{};
        {
            const std::lock_guard lock(mutex_);
            --open_;
            released_ += how == Unlocked::released ? 1U : 0U;
            unconfirmed_ += how == Unlocked::unconfirmed ? 1U : 0U;
            if (released_ < needed_ && open_ > 0) {
                return;
            }
            result = released_ >= needed_                  ? Unlocked::released
                     : released_ + unconfirmed_ >= needed_ ? Unlocked::unconfirmed
                                                           : Unlocked::alreadyLost;
            tell = std::exchange(whenReleased_, nullptr);
        }
        if (tell) {
            tell(result);
        }
    }

private:
    std::mutex mutex_;
    std::size_t open_;
    const std::size_t needed_;
    std::size_t released_ = 0;
    std::size_t unconfirmed_ = 0;
    std::function<void(Unlocked)> whenReleased_;
};

} // namespace

bool GroupMembers::isForked() const noexcept
{
    return std::ranges::any_of(locks, [](const Lock& lock) { return LockAccess::engine(lock).isForked(); });
}

boost::asio::any_completion_executor GroupMembers::handlerExecutor() const
{
    return LockAccess::engine(locks.front()).handlerExecutor();
}

bool GroupMembers::isOwnThread() const noexcept
{
    return std::ranges::any_of(locks, [](const Lock& lock) { return LockAccess::engine(lock).onOwnThread(); });
}

std::string GroupMembers::str() const
{
    std::string names = rule == Rule::all ? "MultiLock of" : "RedLock of";
    constexpr std::size_t shown = 5;
    for (std::size_t i = 0; i < locks.size() && i < shown; ++i) {
        names += (i == 0 ? " \"" : ", \"") + printable(locks[i].name()) + "\" on " +
                 LockAccess::engine(locks[i]).config().endpoint.str();
    }
    return locks.size() > shown ? names + ", …" : names;
}

GroupHold::GroupHold(std::shared_ptr<const GroupMembers> members)
    : members_(std::move(members)), held_(members_->locks.size())
{
}

GroupHold::~GroupHold()
{
    end();
}

void GroupHold::ask(Lease lease, const Answer& answer)
{
    for (std::size_t i = 0; i < members_->locks.size(); ++i) {
        const auto attempt = std::make_shared<boost::asio::cancellation_signal>();
        {
            const std::lock_guard lock(mutex_);
            if (held_.empty()) {
                return;
            }
            held_[i].attempt = attempt;
        }
        // its executor is the client's own: there the slot is cleared, and there abandon() uses it
        members_->locks[i].asyncTryLock(
            oneAttempt, lease,
            boost::asio::bind_cancellation_slot(attempt->slot(), [self = shared_from_this(), attempt, answer,
                                                                  i](boost::system::error_code ec, LockGuard guard) {
                const MemberAnswer result = answerOf(ec, guard);
                self->arrived(i, std::move(guard));
                answer(i, result);
            }));
    }
}

/// An attempt is over.
void GroupHold::arrived(std::size_t index, LockGuard guard)
{
    const std::stop_token lost = guard.stopToken(StopAt::lost);
    const std::stop_token atRisk = guard.stopToken(StopAt::atRisk);
    const bool granted = static_cast<bool>(guard);
    std::shared_ptr<boost::asio::cancellation_signal> over;
    {
        const std::lock_guard lock(mutex_);
        if (held_.empty()) {
            return; // too late: the guard gives it back
        }
        over = std::move(held_[index].attempt);
        if (!granted) {
            return;
        }
        held_[index].guard = std::move(guard);
        held_[index].isGranted = true;
    }
    const auto tellOf = [this, index](StopAt how) {
        return [weak = weak_from_this(), index, how] {
            if (const auto self = weak.lock()) {
                self->hurt(index, how);
            }
        };
    };
    // made without the mutex: it may be lost already, and calls at once
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
    {
        const std::lock_guard lock(mutex_);
        if (phase_ == Phase::trying) {
            phase_ = Phase::held;
        }
    }
    judge(0); // one may have been lost already
}

/// A member is lost, or at risk. On the background thread of its client.
void GroupHold::hurt(std::size_t index, StopAt how)
{
    {
        const std::lock_guard lock(mutex_);
        if (held_.empty()) {
            return;
        }
        (how == StopAt::lost ? held_[index].isLost : held_[index].isAtRisk) = true;
    }
    judge(index);
}

/// Ends what is no group any more. @param index whose client's thread calls the stop callbacks.
void GroupHold::judge(std::size_t index)
{
    std::vector<Member> taken;
    {
        const std::lock_guard lock(mutex_);
        if (phase_ != Phase::held || isEnough(StopAt::atRisk)) {
            return;
        }
        if (!isEnough(StopAt::lost)) {
            phase_ = Phase::lost;
            taken.swap(held_);
        }
    }
    stop(index, atRisk_);
    if (!taken.empty()) {
        stop(index, lost_);
        withdraw(taken);
    }
}

/// Whether enough members are left when those that are lost, or at risk, do not count. Expects the mutex.
bool GroupHold::isEnough(StopAt without) const
{
    const auto left = std::ranges::count_if(held_, [without](const Member& member) {
        return member.guard && !member.isLost && (without == StopAt::lost || !member.isAtRisk);
    });
    return static_cast<std::size_t>(left) >= members_->needed();
}

/// Not in here: who ends the hold meanwhile waits for the callbacks of its members, and must not wait for those of the user.
void GroupHold::stop(std::size_t index, const std::stop_source& source) const
{
    Engine& engine = LockAccess::engine(members_->locks[index]);
    const auto request = [copy = source]() mutable { copy.request_stop(); };
    if (engine.onOwnThread()) {
        engine.post(request); // done even when the client ends
    } else if (!engine.doAt(BootClock::now(), request)) {
        std::stop_source(source).request_stop();
    }
}

std::vector<GroupHold::Member> GroupHold::take() noexcept
{
    std::vector<Member> taken;
    const std::lock_guard lock(mutex_);
    if (!held_.empty()) {
        phase_ = Phase::ended;
        taken.swap(held_);
    }
    return taken;
}

/// Ends what does not wait: callbacks, and attempts under way. What is granted all the same is given back as it arrives.
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
        return; // the mutex may be locked by a thread that is not here
    }
    auto taken = take();
    withdraw(taken);
}

void GroupHold::release(const std::function<void(Unlocked)>& whenReleased)
{
    if (members_->isForked()) {
        return whenReleased(Unlocked::alreadyLost);
    }
    auto taken = take();
    withdraw(taken);
    std::erase_if(taken, [](const Member& member) { return !member.isGranted; });
    if (taken.empty()) {
        return whenReleased(Unlocked::alreadyLost);
    }
    const auto tally = std::make_shared<ReleaseTally>(taken.size(), members_->needed(), whenReleased);
    for (auto& member : taken) {
        member.guard.asyncRelease(
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

/// Those of the members that are held.
std::vector<TimePoint> GroupHold::deadlines() const
{
    std::vector<TimePoint> deadlines;
    const TimePoint now = BootClock::now();
    for (const auto& member : held_) {
        if (const auto left = member.guard.validFor(); left > left.zero() && !member.isLost) {
            deadlines.push_back(now + left);
        }
    }
    return deadlines;
}

TimePoint GroupHold::validUntil() const
{
    if (members_->isForked()) {
        return {}; // the mutex may be locked by a thread that is not here
    }
    const std::lock_guard lock(mutex_);
    return phase_ == Phase::held ? validityOf(deadlines(), members_->needed()) : TimePoint{};
}

std::size_t GroupHold::heldMembers() const
{
    if (members_->isForked()) {
        return 0;
    }
    const std::lock_guard lock(mutex_);
    return phase_ == Phase::held ? deadlines().size() : 0;
}

std::stop_token GroupHold::stopToken(StopAt when) const
{
    if (members_->isForked()) {
        return Engine::stoppedToken();
    }
    const std::lock_guard lock(mutex_);
    if (phase_ != Phase::held) {
        return Engine::stoppedToken();
    }
    return (when == StopAt::lost ? lost_ : atRisk_).get_token();
}

} // namespace redislock::detail
