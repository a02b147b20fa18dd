#include "core/releasing.hpp"

#include "core/core.hpp"
#include "core/operation/background_run.hpp"
#include "core/operation/release_flow.hpp"
#include "link/request/calls.hpp"
#include "wire/assert.hpp"

#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace redislock::detail {

/// A release that nobody waits for. Used again, so that no end of a guard takes memory.
class Releasing::Run final : public BackgroundRun, public std::enable_shared_from_this<Run> {
public:
    explicit Run(Core& core) : BackgroundRun(core) {}

    std::shared_ptr<BackgroundRun> keep() override { return shared_from_this(); }

    /// @param what as for ReleaseFlow. @return what is known before the answer
    template <class... What>
    Unlocked start(Hold& hold, What... what)
    {
        flow_.emplace(core_, hold, what..., this);
        hold_ = &hold;
        self_ = shared_from_this();
        const Unlocked how = flow_->result();
        begin();
        return how;
    }

private:
    Operation* operation() noexcept override { return flow_ ? &*flow_ : nullptr; }
    Rest finish() override { return failed(); }
    Rest failed() noexcept override
    {
        flow_.reset();
        Rest rest{.hold = std::move(hold_)};
        rest.named = core_.recycle(rest.hold);
        auto& idle = core_.releasing.idle_;
        if (idle.size() < maxIdle) {
            idle.push_back(std::move(self_)); // does not throw: the capacity is reserved
        }
        rest.self = std::move(self_);
        return rest;
    }

    std::optional<ReleaseFlow> flow_;
    HoldRef hold_;
    std::shared_ptr<Run> self_; ///< while a release is under way
};

Releasing::Releasing(Core& core) : core_(core)
{
    idle_.reserve(maxIdle);
}

template <class... What>
Unlocked Releasing::start(Hold& hold, What... what)
{
    std::shared_ptr<Run> run;
    if (idle_.empty()) {
        run = patiently([this] { return std::make_shared<Run>(core_); });
    } else {
        run = std::move(idle_.back());
        idle_.pop_back();
    }
    return run->start(hold, what...);
}

Unlocked Releasing::endLevel(Hold& hold, std::uint32_t level)
{
    REDISLOCK_ASSERT(hold.phase == Hold::Phase::held && level != 0);
    if (core_.inheritance.letInherit(hold, level)) {
        return Unlocked::passedOn;
    }
    return start(hold, level, Asker::background);
}

void Releasing::levelEnded(Hold& hold)
{
    hold.levelHasEnded = true;
    hold.updateDeadline();
    core_.renewing.watch(hold, core_.port.now());
}

void Releasing::correctCount(Hold& hold, bool unknown)
{
    if (hold.levels.count() == 0) {
        const TimePoint validUntil = hold.validUntil();
        giveUp(hold);
        return startRest(hold, ReleaseMachine::unawaited(validUntil), true);
    }
    if (unknown) {
        start(hold, ReleaseFlow::Count());
    }
}

void Releasing::giveUp(Hold& hold)
{
    REDISLOCK_ASSERT(hold.phase == Hold::Phase::acquiring || hold.phase == Hold::Phase::held ||
                     hold.phase == Hold::Phase::ended);
    hold.phase.store(Hold::Phase::ended, std::memory_order_release);
    core_.renewing.forget(hold);
    begins(hold);
    // not the last reference: the caller has another
    (void)hold.lock->local.remove(hold);
}

void Releasing::begins(Hold& hold) noexcept
{
    hold.lock->forEachKind([](NamedLock& named) { named.releases.begin(); });
    core_.begins();
}

void Releasing::takeBack(Hold& hold, TimePoint until)
{
    REDISLOCK_ASSERT(hold.phase == Hold::Phase::lost);
    hold.grantedAt = TimePoint{}; // over() then reports nothing
    begins(hold);
    startRest(hold, ReleaseMachine::unawaited(until), false);
}

void Releasing::giveBack(Hold& hold, TimePoint until)
{
    giveUp(hold);
    startRest(hold, ReleaseMachine::unawaited(until), false);
}

void Releasing::goOn(Hold& hold, ReleaseMachine machine)
{
    machine.goOnInBackground();
    startRest(hold, machine, false);
}

/// @param machine not started yet. @param letsFollow whether the next waiter may follow
void Releasing::startRest(Hold& hold, const ReleaseMachine& machine, bool letsFollow) noexcept
{
    try {
        start(hold, ReleaseFlow::Rest{machine, letsFollow});
    } catch (const std::bad_alloc&) { // the lease ends the hold
        over(hold, Unlocked::unconfirmed);
    }
}

std::shared_ptr<HoldCall> Releasing::takeCall(Hold& hold) noexcept
{
    try {
        auto call = core_.takeCall(hold);
        call->echoes = hold.lock->listening != Listening::no;
        return call;
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

void Releasing::over(Hold& hold, Unlocked how)
{
    NamedLock& named = *hold.lock;
    core_.ends();
    if (std::exchange(named.race, false)) {
        Waking::wakeNext(named);
    }
    named.forEachKind([](NamedLock& each) {
        each.releases.end();
        if (each.releasesWatched && !each.releases.underWay()) {
            each.releasesWatched = false;
            const auto look = [](Waiter& waiter) { waiter.look(); };
            each.waiters.forEach(look);
            each.askers.forEach(look);
        }
    });
    if (hold.grantedAt == TimePoint{}) {
        return; // never held: this ended what an unanswered acquire may have left
    }
    const auto held = core_.port.now() - std::exchange(hold.grantedAt, TimePoint{});
    core_.tellOfWhole(hold, [how, held](Observer& observer, const LockEvent& event) {
        observer.released(event, how, held);
        if (how == Unlocked::unconfirmed) {
            observer.unconfirmed(event);
        }
    });
}

void Releasing::tellAtSource(NamedLock& named) noexcept
try {
    if (core_.channelMark.empty() || named.traits().asking != Asking::first || named.traits().channelPrefix.empty()) {
        return; // classic channels are heard everywhere
    }
    const auto channel = named.channel().substr(core_.channelMark.size());
    auto call = std::make_shared<CommandCall>(std::vector<std::string>{"SPUBLISH", channel, "0"}, named.slot);
    call->mode = Call::Mode::detached;
    (void)core_.port.submit(Lane::background, std::move(call));
} catch (const std::bad_alloc&) { // they poll
}

} // namespace redislock::detail
