#include "logic/group/group_flow.hpp"

#include "logic/lock/order.hpp"

#include <algorithm>

namespace redislock::detail {

GroupMachine::Settings settingsFor(const GroupOrder& order)
{
    GroupMachine::Settings settings;
    settings.members = order.members.size();
    settings.needed = order.needed;
    settings.wait = order.wait;
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
        const auto refused = rounds_.ask(ask->round);
        return refused ? fail(*refused) : WaitStep{.kind = WaitStep::Kind::sleep, .until = ask->until};
    }
    if (const auto* retreat = std::get_if<Retreat>(&action)) {
        rounds_.giveUp();
        return {.kind = WaitStep::Kind::askPolicy, .refusals = retreat->attempt};
    }
    const auto* sleep = std::get_if<SleepUntil>(&action);
    return {.kind = WaitStep::Kind::sleep,
            .until = sleep != nullptr ? sleep->until : std::get<AwaitMembers>(action).until};
}

WaitStep GroupFlow::fail(Errc why)
{
    rounds_.giveUp();
    result_ = {.kind = GroupResult::Kind::failed, .error = why, .rounds = result_.rounds};
    return {};
}

} // namespace redislock::detail
