/// @file
/// Keeps leases alive and judges when they are over.
#pragma once

#include "logic/lock/hold.hpp"
#include "redislock/clock.hpp"
#include "redislock/detail/logic/due_heap.hpp"
#include "redislock/detail/logic/renew_machine.hpp"

#include <chrono>
#include <cstddef>
#include <memory>

namespace redislock::detail {

class Core;

/// How long the answer to a renewal is waited for: there shall be several tries before the lease is over.
std::chrono::milliseconds renewalTimeout(std::chrono::nanoseconds lease,
                                         std::chrono::nanoseconds commandTimeout) noexcept;

/// The renewal schedule and the schedule of deadlines of one client, with one alarm for both.
class Renewing {
public:
    static constexpr std::size_t batch = 128; ///< renewals sent in one go

    explicit Renewing(Core& core) noexcept : core_(core) {}

    /// A hold was granted, or its deadline changed: watches it until forget(), and renews it if it asks for that.
    void watch(Hold& hold, TimePoint sentAt);
    void forget(Hold& hold) noexcept;
    [[nodiscard]] std::size_t watched() const noexcept { return deadlines_.size(); }

    /// The alarm goes off: judges the deadlines that have come, then sends the renewals that are due, a batch at a
    /// time: whatever else is ready gets its turn in between.
    void ring();
    /// The end of a renewal's request.
    void answered(HoldCall& call);
    /// Asks for the alarm again, after an exception.
    void recover() noexcept;

private:
    void judgeRenewal(const std::shared_ptr<HoldCall>& call);
    void setDeadline(Hold& hold);
    void apply(Hold& hold, const RenewMachine::Action& action, std::shared_ptr<HoldCall> call);
    void retrySoon(Hold& hold);
    void arm() noexcept;
    void judge(TimePoint now);
    bool overstays(Hold& hold, TimePoint now);
    [[nodiscard]] bool mustRenew(const Hold& hold, TimePoint now) const;

    Core& core_;
    DueHeap<Hold, &Hold::renewalSlot> renewals_;
    DueHeap<Hold, &Hold::deadlineSlot> deadlines_;
    TimePoint armed_ = TimePoint::max();
};

} // namespace redislock::detail
