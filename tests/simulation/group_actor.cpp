// Plays the part of `detail::GroupAcquire` around the flow of an acquire. Other tests cover a second acquire by a
// holder.
#include "simulation/group_actor.hpp"

#include "simulation/one_of.hpp"
#include "simulation/safety_checker.hpp"

#include <algorithm>
#include <utility>

namespace redislock::simulation {

using detail::GroupMachine;
using detail::GroupResult;

GroupActor::GroupActor(const World& world, std::shared_ptr<Host> host, std::vector<SimClient*> clients,
                       const Workload& workload, std::uint64_t number, std::uint64_t seed)
    : world_(world),
      host_(std::move(host)),
      clients_(std::move(clients)),
      workload_(workload),
      number_(number),
      chance_(seed),
      retry_(RetryPolicy::exponential(std::chrono::milliseconds(4), std::chrono::milliseconds(256)))
{
    pause(around(workload_.meanThink));
}

/// A process that is gone believes nothing.
GroupActor::~GroupActor()
{
    for (const auto& past : past_) {
        past->drop();
    }
    stopBelieving();
}

bool GroupActor::isIdle() const
{
    return stopping_ && !busy_ && believer_ == 0 &&
           std::ranges::none_of(past_, [](const auto& past) { return past->isUnderWay(); });
}

std::chrono::nanoseconds GroupActor::around(std::chrono::milliseconds mean)
{
    return std::chrono::nanoseconds(
        1 + static_cast<std::int64_t>(static_cast<double>(mean.count()) * 2e6 * chance_.unit()));
}

void GroupActor::pause(std::chrono::nanoseconds span)
{
    host_->at(host_->now() + span, [this] { decide(); });
}

void GroupActor::decide()
{
    if (busy_) {
        return;
    }
    if (believer_ != 0) {
        return giveBack();
    }
    if (stopping_) {
        return;
    }
    const auto& group =
        workload_.groups[static_cast<std::size_t>(chance_.unit() * static_cast<double>(workload_.groups.size()))];
    const double choice = chance_.unit();
    acquire(group,
            choice < 0.4   ? waitForever
            : choice < 0.8 ? Wait(std::chrono::milliseconds(static_cast<int>(1 + chance_.unit() * 3000)))
                           : Wait(std::chrono::milliseconds(0)),
            chance_.unit() < workload_.fixedLease
                ? Lease(std::chrono::milliseconds(oneOf(chance_, {100, 500, 2000, 10000})))
                : keepRenewing);
}

void GroupActor::acquire(const Group& group, Wait wait, Lease lease)
{
    busy_ = true;
    group_ = &group;
    lease_ = lease;
    detail::GroupOrder order{.members = {},
                             .needed = group.needed(),
                             .isMajority = group.isMajority,
                             .byPolicy = chance_.unit() < 0.3,
                             .wait = wait,
                             .lease = lease,
                             .began = host_->now()};
    for (const auto& member : group.members) {
        order.members.push_back(&clients_[member.server]->config());
    }
    flow_ = std::make_unique<detail::GroupFlow>(order, *this);
    ++acquires_;
    if (!probing_ && chance_.unit() < workload_.calledOff) {
        callOffSoon();
    }
    step(detail::Start{host_->now()});
}

/// As `detail::GroupAcquire::cancel()`: the acquire may then be asking, waiting or pausing, or it may have ended.
void GroupActor::callOffSoon()
{
    const auto after = chance_.unit() < 0.5 ? around(std::chrono::milliseconds(2)) : around(workload_.meanHold * 4);
    host_->at(host_->now() + after, [this, number = acquires_] {
        if (number == acquires_ && busy_ && flow_->state() != GroupMachine::State::done) {
            world_.trace(host_->name(), "thread {} calls off", number_);
            step(detail::Cancelled{host_->now(), Errc::shutdown});
        }
    });
}

void GroupActor::step(const GroupMachine::Event& event)
{
    const auto next = flow_->step(event);
    if (next.kind == detail::WaitStep::Kind::done) {
        finish(flow_->result());
    } else if (next.kind == detail::WaitStep::Kind::askPolicy) {
        if (!try_->members().empty()) {
            throw Violation("S13 groups", "who waits for a group holds some of it");
        }
        const auto pause = retry_.pauseAfter(next.refusals, chance_);
        step(detail::Pause{host_->now(), pause ? std::optional(pause->span()) : std::nullopt});
    } else {
        wakeAt(next.until);
    }
}

std::optional<detail::Reason> GroupActor::begin()
{
    std::erase_if(past_, [](const auto& past) { return !past->isUnderWay(); });
    try_ = std::make_shared<GroupTry>(*group_, clients_);
    past_.push_back(try_);
    return std::nullopt;
}

void GroupActor::ask(std::uint32_t round, std::size_t member, Wait wait)
{
    const auto answer = [this, round, of = try_.get()](std::size_t who, const detail::MemberAnswer& what) {
        if (busy_ && try_.get() == of && flow_->state() != GroupMachine::State::done) {
            step(detail::MemberAnswered{host_->now(), round, who, what});
        }
    };
    try_->ask(member, wait, lease_, answer);
}

void GroupActor::giveUp()
{
    if (try_) {
        try_->end();
    }
}

/// From now on the actor believes that it holds the group.
std::optional<detail::Reason> GroupActor::keep()
{
    believer_ = world_.checker.believes(
        group_->name, group_->needed(), [this, held = try_] { return host_->trueTime(held->validUntil()); },
        [held = try_] { return held->members(); });
    try_->lost = [this, of = try_.get()] {
        if (try_.get() == of) {
            world_.trace(host_->name(), "thread {} lost {}", number_, group_->name);
            stopBelieving();
        }
    };
    try_->keep();
    return std::nullopt;
}

void GroupActor::wakeAt(TimePoint when)
{
    host_->at(when, [this, alarm = ++alarms_] {
        if (alarm != alarms_) {
            return;
        }
        if (stopping_ && !probing_ && flow_->state() == GroupMachine::State::pausing) {
            return step(detail::Cancelled{host_->now(), Errc::shutdown});
        }
        step(detail::TimerFired{host_->now()});
    });
}

void GroupActor::finish(const GroupResult& result)
{
    static constexpr const char* kinds[] = {"granted", "contended", "failed"};
    ++alarms_;
    ++world_.statistics.operations;
    busy_ = false;
    world_.trace(host_->name(), "thread {} acquire of {}: {} in {} rounds", number_, group_->name,
                 kinds[static_cast<std::size_t>(result.kind)], result.rounds);
    if (result.kind != GroupResult::Kind::granted) {
        if (probing_) {
            throw Violation("T9 recovery", "a group could not be taken after all faults");
        }
        return pause(around(workload_.meanThink));
    }
    ++world_.statistics.grants;
    if (believer_ == 0) {
        return pause(around(workload_.meanThink));
    }
    world_.checker.check(world_.scheduler.now());
    if (probing_) {
        return giveBack();
    }
    const bool isLong = !stopping_ && chance_.unit() < workload_.longHold;
    pause(isLong ? around(std::chrono::milliseconds(10'000)) : around(workload_.meanHold));
}

void GroupActor::stopBelieving()
{
    if (const auto who = std::exchange(believer_, 0)) {
        world_.checker.ends(who);
    }
}

void GroupActor::giveBack()
{
    stopBelieving();
    if (!probing_ && chance_.unit() < 0.4) { // as the end of its guard
        ++world_.statistics.operations;
        try_->end();
        return pause(around(workload_.meanThink));
    }
    busy_ = true;
    try_->release([this](Unlocked how) { released(how); });
}

void GroupActor::released(Unlocked how)
{
    busy_ = false;
    ++world_.statistics.operations;
    world_.trace(host_->name(), "thread {} releases {}: {}", number_, group_->name, static_cast<int>(how));
    if (std::exchange(probing_, false) && how != Unlocked::released) {
        throw Violation("T9 recovery", "a group that was taken after all faults could not be released");
    }
    pause(around(workload_.meanThink));
}

void GroupActor::probe(std::size_t group)
{
    probing_ = true;
    acquire(workload_.groups[group], waitForever, keepRenewing);
}

void GroupActor::tellSituations(std::size_t server, const std::function<void(Situation)>& tell) const
{
    for (const auto& past : past_) {
        past->tellSituations(server, tell);
    }
}

} // namespace redislock::simulation
