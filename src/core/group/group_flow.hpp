/// @file
/// An acquire of a group, step by step.
#pragma once

#include "core/group/group_machine.hpp"
#include "core/operation/operation.hpp"
#include "redislock/config.hpp"
#include "redislock/lease_time.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace redislock::detail {

/// What an acquire of a group asks of its driver: rounds of tries at the members.
class GroupRounds {
public:
    /// Begins a round. @return why that is impossible; nothing: it began.
    virtual std::optional<Reason> begin() = 0;
    /// Tries a member. @param wait how long for its holder, unless the round is given up
    virtual void ask(std::uint32_t round, std::size_t member, Wait wait) = 0;
    /// Gives back what the round was granted, and what it may yet be. There may have been no round.
    virtual void giveUp() = 0;
    /// Keeps what the round was granted. @return why that is impossible; nothing: it is kept.
    virtual std::optional<Reason> keep() = 0;

protected:
    GroupRounds() = default;
    ~GroupRounds() = default;
};

/// What a caller asks an acquire for.
struct GroupOrder {
    std::vector<const Config*> members; ///< the configurations of their clients
    std::size_t needed;                 ///< how many of the members
    bool isMajority;                    ///< the members are servers: a majority is needed, and one may be slow
    bool byPolicy;                      ///< the caller's policy says when to try again
    Wait wait;
    Lease lease;
    TimePoint began; ///< when the wait began
};
GroupMachine::Settings settingsFor(const GroupOrder& order);

/// Carries out what a GroupMachine decides. Its driver gives it the events, one at a time.
class GroupFlow {
public:
    GroupFlow(const GroupOrder& order, GroupRounds& rounds)
        : members_(order.members.size()), machine_(settingsFor(order)), rounds_(rounds)
    {
    }
    GroupFlow(const GroupFlow&) = delete;
    GroupFlow& operator=(const GroupFlow&) = delete;

    /// @return what comes next: to sleep (until something happens, or TimerFired is due), to ask the policy, or
    /// nothing.
    WaitStep step(const GroupMachine::Event& event);

    [[nodiscard]] GroupMachine::State state() const noexcept { return machine_.state(); }
    /// Only when done.
    [[nodiscard]] const GroupResult& result() const noexcept { return result_; }

private:
    WaitStep begin(std::uint32_t round, std::optional<std::size_t> awaited, TimePoint until);
    WaitStep fail(Reason why);

    const std::size_t members_;
    GroupMachine machine_;
    GroupRounds& rounds_;
    GroupResult result_;
};

} // namespace redislock::detail
