// Plays the part of `detail::GroupHold` around the standing of a group.
#include "simulation/group_actor.hpp"

#include <algorithm>
#include <utility>

namespace redislock::simulation {

using detail::MemberAnswer;

GroupTry::GroupTry(const Group& group, const std::vector<SimClient*>& clients)
    : group_(group), standing_(group.members.size(), group.needed())
{
    for (const auto& member : group.members) {
        members_.emplace_back().client = clients[member.server];
    }
}

void GroupTry::ask(std::size_t member, Wait wait, Lease lease, const Answer& answer)
{
    SimClient& client = *members_[member].client;
    const auto attempt = acquireInBackground(
        client, client.named(group_.members[member].view), {wait, lease, detail::EndedBy::group, nullptr, nullptr, {}},
        [self = shared_from_this(), member, answer](std::error_code error, const detail::Acquired& acquired) {
            if (const auto result = self->arrived(member, error, acquired)) {
                answer(member, *result);
            }
        });
    members_[member].attempt = attempt;
    client.post([attempt] { attempt->start(); });
}

/// An attempt for a member is over. @return nothing: the answer came too late.
std::optional<MemberAnswer> GroupTry::arrived(std::size_t index, std::error_code error,
                                              const detail::Acquired& acquired)
{
    Member& member = members_[index];
    member.attempt.reset();
    MemberAnswer answer{.kind = MemberAnswer::Kind::busy};
    if (acquired.hold != nullptr) {
        member.acquired = acquired;
        answer = {.kind = MemberAnswer::Kind::granted, .validUntil = acquired.hold->validUntil()};
        if (!standing_.granted(index)) {
            giveBack(member);
            return std::nullopt;
        }
        member.onLoss = std::make_unique<OnStop>(member.client->core().stopToken(*acquired.hold, StopAt::lost),
                                                 [weak = weak_from_this(), index] {
                                                     if (const auto self = weak.lock()) {
                                                         self->follow(self->standing_.hurt(index, StopAt::lost));
                                                     }
                                                 });
    } else if (error) {
        answer = {.kind = MemberAnswer::Kind::failed, .error = detail::Reason::of(error, Errc::unreachable)};
    }
    return standing_.isOpen() ? std::optional(answer) : std::nullopt;
}

void GroupTry::keep()
{
    for (const auto& member : members_) {
        if (member.acquired.hold != nullptr) {
            member.acquired.hold->isTentative = false;
        }
    }
    follow(standing_.keep());
}

/// Ends the hold if the group no longer has enough members.
void GroupTry::follow(detail::GroupStanding::Verdict verdict)
{
    if (verdict == detail::GroupStanding::Verdict::lost) {
        giveAllBack();
        lost();
    }
}

void GroupTry::end()
{
    if (standing_.end()) {
        giveAllBack();
    }
}

void GroupTry::giveAllBack()
{
    withdraw();
    for (auto& member : members_) {
        giveBack(member);
    }
}

/// Ends callbacks, and attempts under way, without waiting.
void GroupTry::withdraw()
{
    for (auto& member : members_) {
        member.onLoss.reset();
        if (member.attempt) { // as through its cancellation slot
            member.attempt->cancel();
        }
    }
}

/// Does what the end of a guard does.
void GroupTry::giveBack(Member& member)
{
    member.onLoss.reset();
    const auto acquired = std::exchange(member.acquired, {});
    if (acquired.hold != nullptr && member.client->core().isHeld(acquired)) {
        member.client->core().releasing.endLevel(*acquired.hold, acquired.level);
    }
    member.client->observe();
}

void GroupTry::release(const std::function<void(Unlocked)>& told)
{
    std::vector<std::size_t> granted;
    for (std::size_t i = 0; i < members_.size(); ++i) {
        if (members_[i].acquired.hold != nullptr) {
            granted.push_back(i);
        }
    }
    if (!standing_.end() || granted.empty()) {
        return told(Unlocked::alreadyLost);
    }
    withdraw();
    whenReleased_ = told;
    release_.emplace(granted.size(), group_.needed());
    for (const auto index : granted) {
        beginRelease(index);
    }
}

/// As `detail::AsyncCalls::release()`.
void GroupTry::beginRelease(std::size_t index)
{
    Member& member = members_[index];
    const auto acquired = std::exchange(member.acquired, {});
    SimClient& client = *member.client;
    const bool isHeld = acquired.hold != nullptr && client.core().isHeld(acquired);
    if (!isHeld) {
        return count(Unlocked::alreadyLost);
    }
    const auto holder = client.holderOf(*acquired.hold);
    member.release = std::make_shared<SimRelease>(
        client,
        [acquired](std::optional<detail::ReleaseFlow>& flow, detail::BackgroundRun* run) {
            flow.emplace(run->core(), *acquired.hold, acquired.level, detail::Asker::caller, run);
        },
        [self = shared_from_this(), index, holder](std::optional<detail::ReleaseFlow>& flow) {
            return [self, index, holder, how = flow->result()] { self->released(index, how, holder); };
        });
    member.release->start();
}

void GroupTry::released(std::size_t index, Unlocked how, const std::string& holder)
{
    Member& member = members_[index];
    member.release = nullptr;
    if (how == Unlocked::released) {
        member.client->checker().expectGone(member.client->named(group_.members[index].view).name, holder,
                                            member.client->trueTime());
    }
    count(how);
}

void GroupTry::count(Unlocked how)
{
    if (const auto result = release_->count(how)) {
        std::exchange(whenReleased_, nullptr)(*result);
    }
}

void GroupTry::drop()
{
    for (auto& member : members_) {
        if (const auto attempt = std::exchange(member.attempt, nullptr)) {
            attempt->leave();
        }
        if (const auto release = std::exchange(member.release, nullptr)) {
            release->leave();
        }
    }
}

std::vector<TimePoint> GroupTry::deadlines() const
{
    std::vector<TimePoint> deadlines;
    for (const auto& member : members_) {
        const auto& hold = member.acquired.hold;
        if (hold && member.client->now() < hold->validUntil()) {
            deadlines.push_back(hold->validUntil());
        }
    }
    return deadlines;
}

TimePoint GroupTry::validUntil() const
{
    auto all = deadlines();
    return standing_.validUntil(all);
}

std::vector<HeldMember> GroupTry::members() const
{
    std::vector<HeldMember> held;
    for (std::size_t i = 0; i < members_.size(); ++i) {
        const auto& hold = members_[i].acquired.hold;
        if (hold && members_[i].client->now() < hold->validUntil()) {
            held.push_back({group_.members[i].server, hold->lock->name, members_[i].client->holderOf(*hold)});
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
        const auto& attempt = members_[i].attempt;
        if (group_.members[i].server == server && attempt && situationOf(*attempt)) {
            tell(*situationOf(*attempt));
        }
    }
}

} // namespace redislock::simulation
