/// @file
/// An acquire of a group, step by step.
#pragma once

#include "logic/flow/waiting.hpp"
#include "redislock/config.hpp"
#include "redislock/detail/logic/group_machine.hpp"
#include "redislock/lease_time.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace redislock::detail {

/// What an acquire of a group asks of whoever runs it: rounds of tries at its members.
class GroupRounds {
public:
    /// A round begins. @return why it cannot.
    virtual std::optional<Errc> begin() = 0;
    /// Tries a member. @param wait for its holder, until that is given up
    virtual void ask(std::uint32_t round, std::size_t member, Wait wait) = 0;
    /// Gives back what the round was granted, and what it still will be. There may have been no round.
    virtual void giveUp() = 0;
    /// Keeps what the round was granted. @return why it cannot.
    virtual std::optional<Errc> keep() = 0;

protected:
    GroupRounds() = default;
    ~GroupRounds() = default;
};

/// The settings of an acquire.
struct GroupOrder {
    std::vector<const Config*> members; ///< the configurations of their clients
    std::size_t needed;                 ///< of the members
    bool isMajority;                    ///< of servers, one of which may be slow
    bool byPolicy;                      ///< of the caller's
    Wait wait;
    Lease lease;
    TimePoint began; ///< when the wait did
};
GroupMachine::Settings settingsFor(const GroupOrder& order);

/// Carries out what a GroupMachine decides. Whoever drives it gives it the events, one at a time.
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
    /// Of one that is done.
    [[nodiscard]] const GroupResult& result() const noexcept { return result_; }

private:
    WaitStep begin(std::uint32_t round, std::optional<std::size_t> awaited, TimePoint until);
    WaitStep fail(Errc why);

    const std::size_t members_;
    GroupMachine machine_;
    GroupRounds& rounds_;
    GroupResult result_;
};

} // namespace redislock::detail
