#include "core/group/group_flow.hpp"

#include "core/order.hpp"

#include <algorithm>

namespace redislock::detail {

GroupMachine::Settings settingsFor(const GroupOrder& order)
{
    GroupMachine::Settings settings;
    settings.members = order.members.size();
    settings.needed = order.needed;
    settings.wait = order.wait;
    settings.byPolicy = order.byPolicy;
    settings.began = order.began;
    settings.memberTimeout = settings.unreachableAfter = std::chrono::milliseconds(0);
    auto shortest = maxLease;
    for (const Config* config : order.members) {
        shortest = std::min(shortest, leaseTime(*config, order.lease));
        settings.memberTimeout = std::max(settings.memberTimeout, config->commandTimeout);
        settings.unreachableAfter = std::max(settings.unreachableAfter, config->unreachableAfter);
    }
    if (order.isMajority) {
        settings.memberTimeout = memberTimeoutOf(shortest, settings.memberTimeout);
    }
    return settings;
}

WaitStep GroupFlow::step(const GroupMachine::Event& event)
{
    const auto action = machine_.resume(event);
    if (const auto* done = std::get_if<Done<GroupResult>>(&action)) {
        result_ = done->result;
        if (result_.kind == GroupResult::Kind::granted) {
            const auto refused = rounds_.keep();
            return refused ? fail(*refused) : WaitStep{};
        }
        rounds_.giveUp();
        return {};
    }
    if (const auto* ask = std::get_if<AskMembers>(&action)) {
        return begin(ask->round, std::nullopt, ask->until);
    }
    if (const auto* await = std::get_if<AwaitMember>(&action)) {
        rounds_.giveUp();
        return begin(await->round, await->member, await->until);
    }
    if (const auto* others = std::get_if<AskOthers>(&action)) {
        for (std::size_t i = 0; i < members_; ++i) {
            if (i != others->member) {
                rounds_.ask(others->round, i, others->wait);
            }
        }
        return {.kind = WaitStep::Kind::sleep, .until = others->until};
    }
    if (const auto* retreat = std::get_if<Retreat>(&action)) {
        rounds_.giveUp();
        return {.kind = WaitStep::Kind::askPolicy, .refusals = retreat->attempt};
    }
    const auto* sleep = std::get_if<SleepUntil>(&action);
    return {.kind = WaitStep::Kind::sleep,
            .until = sleep != nullptr ? sleep->until : std::get<AwaitMembers>(action).until};
}

/// @param awaited the only member to ask at first, with a wait; nothing: asks all of them once.
WaitStep GroupFlow::begin(std::uint32_t round, std::optional<std::size_t> awaited, TimePoint until)
{
    if (const auto refused = rounds_.begin()) {
        return fail(*refused);
    }
    for (std::size_t i = 0; i < members_; ++i) {
        if (i == awaited.value_or(i)) {
            rounds_.ask(round, i, awaited ? waitForever : oneAttempt);
        }
    }
    return {.kind = WaitStep::Kind::sleep, .until = until};
}

WaitStep GroupFlow::fail(Reason why)
{
    rounds_.giveUp();
    result_ = {.kind = GroupResult::Kind::failed, .error = why, .rounds = result_.rounds};
    return {};
}

} // namespace redislock::detail
