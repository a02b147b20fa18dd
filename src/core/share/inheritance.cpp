#include "core/share/inheritance.hpp"

#include "core/core.hpp"
#include "core/machine/lock_answer.hpp"
#include "core/share/handoff.hpp"

namespace redislock::detail {

bool Inheritance::letInherit(Hold& hold, std::uint32_t level)
{
    NamedLock& named = *hold.lock;
    Waiter* const next = named.traits().inherits ? Waking::nextOf(named) : nullptr;
    if (next == nullptr || named.turn == nullptr || core_.isClosing() || !hold.levels.isOnly(level)) {
        return false;
    }
    const TimePoint now = core_.port.now();
    const auto margin = riskMarginOf(core_.config.watchdogTimeout, core_.config.commandTimeout);
    const EndingHold ending{.ownUntil = hold.holderSince + longestInheritance(named.turn->roundTrip()),
                            .atRiskFrom = hold.validUntil() - margin,
                            .isRenewed = hold.levels.isRenewed(),
                            .isHeldTooLong = hold.heldTooLong,
                            .isMember = hold.isMember,
                            .isConfirmed = hold.countsUnderWay == 0 && !hold.unconfirmed,
                            .isAnswered = !hold.unanswered};
    const NextCaller caller{.isRenewed = next->hold->levels.isRenewed(),
                            .isMember = next->hold->isMember,
                            .sleeps = next->parked && !next->submitted && !next->underWay && !next->call->pending,
                            .isDurable = hold.durability().covers(next->durability),
                            .leaves = next->ended.has_value() || next->inherited != nullptr};
    if (!mayInherit(ending, caller, named.turn->mayFollow(now), now)) {
        return false;
    }
    give(hold, *next);
    return true;
}

void Inheritance::give(Hold& hold, Waiter& next)
{
    const TimePoint now = core_.port.now();
    core_.tellOf(hold, [held = now - hold.grantedAt](Observer& observer, const LockEvent& event) {
        observer.released(event, Unlocked::passedOn, held);
    });
    next.inheritedLevel = hold.levels.replaceWith(next.hold->levels);
    hold.owner = next.hold->owner;
    hold.lane = next.hold->lane;
    hold.grantedAt = now;
    hold.stopAtRisk = hold.stopLost = std::stop_source(std::nostopstate);
    next.inherited = &hold;
    core_.tellOf(hold, [waited = now - next.joined, attempts = next.attempts](
                           Observer& observer, const LockEvent& event) { observer.acquired(event, waited, attempts); });
    next.look();
}

} // namespace redislock::detail
