// The members of a group that are held, as in src/runtime/group_hold.cpp.
#include "simulation/group_actor.hpp"

#include <algorithm>
#include <utility>

namespace redislock::simulation {

using detail::MemberAnswer;

GroupTry::GroupTry(const Group& group, const std::vector<SimClient*>& clients, std::uint64_t owner)
    : group_(group), owner_(owner)
{
    for (const auto& member : group.members) {
        members_.emplace_back().client = clients[member.server];
    }
}

void GroupTry::ask(Lease lease, const Answer& answer)
{
    answer_ = answer;
    for (std::size_t i = 0; i < members_.size(); ++i) {
        Member& member = members_[i];
        member.attempt =
            std::make_unique<OutermostAcquire>(*member.client, member.client->named(group_.members[i].view), owner_,
                                               Wait(std::chrono::milliseconds(0)), lease, detail::EndedBy::guard);
        drive(i, *member.attempt, &GroupTry::arrived);
    }
}

/// Runs an operation on its process' background thread.
void GroupTry::drive(std::size_t index, Operation& operation, void (GroupTry::*over)(std::size_t))
{
    // what comes after its end finds another number
    const auto run = [weak = weak_from_this(), index, &operation, over, alarm = members_[index].alarms] {
        const auto self = weak.lock();
        if (self == nullptr || alarm != self->members_[index].alarms) {
            return;
        }
        operation.advance();
        if (operation.isDone()) {
            ++self->members_[index].alarms;
            (self.get()->*over)(index);
        }
    };
    Host& host = members_[index].client->host();
    operation.wake = [&host, run] { host.soon(run); };
    operation.alarm = [&host, run](TimePoint until) { host.at(until, run); };
    run();
}

/// An attempt is over.
void GroupTry::arrived(std::size_t index)
{
    Member& member = members_[index];
    const auto attempt = std::move(member.attempt);
    const AcquireEnd end = attempt->end();
    MemberAnswer answer{.kind = MemberAnswer::Kind::busy};
    if (end.hold != nullptr) {
        member.hold = end.hold;
        member.level = end.level;
        end.hold->whenLost = [weak = weak_from_this()] {
            if (const auto self = weak.lock()) {
                self->memberLost();
            }
        };
        answer = {.kind = MemberAnswer::Kind::granted, .validUntil = end.hold->validUntil()};
        if (phase_ == Phase::ended) {
            giveBack(member);
        }
    } else if (end.kind == detail::AcquireResult::Kind::failed) {
        answer = {.kind = MemberAnswer::Kind::failed, .error = end.error};
    }
    if (phase_ != Phase::ended) {
        answer_(index, answer);
    }
}

void GroupTry::keep()
{
    phase_ = Phase::held;
    memberLost(); // one may have been already
}

/// What is no group any more ends.
void GroupTry::memberLost()
{
    if (phase_ != Phase::held) {
        return;
    }
    const auto left =
        std::ranges::count_if(members_, [](const Member& m) { return m.hold && m.hold->phase == Hold::Phase::held; });
    if (static_cast<std::size_t>(left) < group_.needed()) {
        end();
        lost();
    }
}

void GroupTry::end()
{
    if (std::exchange(phase_, Phase::ended) != Phase::ended) {
        for (auto& member : members_) {
            giveBack(member);
        }
    }
}

/// A guard ends.
void GroupTry::giveBack(Member& member)
{
    const auto hold = std::move(member.hold);
    if (hold == nullptr || hold->phase != Hold::Phase::held) {
        return;
    }
    hold->whenLost = nullptr;
    if (member.client->host().now() >= hold->validUntil()) {
        return member.client->lose(*hold, nullptr);
    }
    member.client->endUnawaited(*hold, member.level);
}

void GroupTry::release(const std::function<void(std::size_t)>& told)
{
    phase_ = Phase::ended;
    whenReleased_ = told;
    open_ = 1;
    for (std::size_t i = 0; i < members_.size(); ++i) {
        open_ += beginRelease(i) ? 1 : 0;
    }
    if (--open_ == 0) {
        std::exchange(whenReleased_, nullptr)(confirmed_);
    }
}

bool GroupTry::beginRelease(std::size_t index)
{
    Member& member = members_[index];
    const auto hold = member.hold;
    if (hold == nullptr || hold->phase != Hold::Phase::held || member.client->host().now() >= hold->validUntil()) {
        giveBack(member);
        return false;
    }
    member.hold = nullptr;
    hold->whenLost = nullptr;
    member.release = std::make_unique<AwaitedRelease>(*member.client, *hold, member.level);
    drive(index, *member.release, &GroupTry::released);
    return true;
}

void GroupTry::released(std::size_t index)
{
    const auto release = std::move(members_[index].release);
    confirmed_ += release->how() == Unlocked::released ? 1 : 0;
    if (--open_ == 0) {
        std::exchange(whenReleased_, nullptr)(confirmed_);
    }
}

std::vector<TimePoint> GroupTry::deadlines() const
{
    std::vector<TimePoint> deadlines;
    for (const auto& member : members_) {
        if (member.hold && member.client->host().now() < member.hold->validUntil()) {
            deadlines.push_back(member.hold->validUntil());
        }
    }
    return deadlines;
}

TimePoint GroupTry::validUntil() const
{
    return phase_ == Phase::held ? detail::validityOf(deadlines(), group_.needed()) : TimePoint{};
}

std::vector<HeldMember> GroupTry::members() const
{
    std::vector<HeldMember> held;
    for (std::size_t i = 0; i < members_.size(); ++i) {
        const auto& hold = members_[i].hold;
        if (hold && members_[i].client->host().now() < hold->validUntil()) {
            held.push_back({group_.members[i].server, hold->lock->name, hold->holder});
        }
    }
    return held;
}

bool GroupTry::isUnderWay() const
{
    return std::ranges::any_of(members_, [](const Member& m) { return m.attempt || m.release; });
}

void GroupTry::tellSituations(std::size_t server, const std::function<void(Situation)>& tell) const
{
    for (std::size_t i = 0; i < members_.size(); ++i) {
        const Operation* operation =
            members_[i].attempt ? static_cast<const Operation*>(members_[i].attempt.get()) : members_[i].release.get();
        if (group_.members[i].server == server && operation != nullptr && operation->situation()) {
            tell(*operation->situation());
        }
    }
}

} // namespace redislock::simulation
