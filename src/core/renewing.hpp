/// @file
/// Keeps leases alive and judges when they are over.
#pragma once

#include "core/due_heap.hpp"
#include "core/hold.hpp"
#include "core/machine/renew_machine.hpp"
#include "core/renewal_call.hpp"
#include "redislock/clock.hpp"
#include "wire/slot.hpp"

#include <chrono>
#include <cstddef>
#include <memory>

namespace redislock::detail {

class Core;

constexpr std::chrono::milliseconds whileOutOfMemory{10}; ///< between two tries

/// How long to wait for the answer to a renewal: there must be time for several tries before the lease is over.
std::chrono::milliseconds renewalTimeout(std::chrono::nanoseconds lease,
                                         std::chrono::nanoseconds commandTimeout) noexcept;

/// The renewal schedule and the schedule of deadlines of one client, both by the core's alarm.
/// Renewals that are due within a tenth of the lease go together with those due now, and one request follows the answer
/// to the one before. So they never keep the server or this client from other work for long.
///
/// After unsettle() the server is asked for every hold, for those with fixed leases with what is left of them: the
/// script never shortens a time to live, so the server that granted them keeps what it gave.
class Renewing {
public:
    static constexpr std::size_t mostAtOnce = 100; ///< renewals in one request

    explicit Renewing(Core& core) noexcept : core_(core) {}

    /// A hold was granted, or its deadline changed: watches it until forget(), and renews it if its lease asks for
    /// that.
    void watch(Hold& hold, TimePoint sentAt);
    void forget(Hold& hold) noexcept;
    /// Whether Redis may keep a hold, lost for that reason, for longer than its deadline says.
    static bool mayOutlive(const Hold& hold, LossReason reason) noexcept;
    [[nodiscard]] std::size_t watched() const noexcept { return deadlines_.size(); }
    /// Whether there have been holds for a second without a pause: then a connection is to be there, on which one
    /// hears of the server's end.
    [[nodiscard]] bool lasts() const noexcept { return isLasting_ && !deadlines_.empty(); }

    /// The server may be another one, or may have lost what it had: has all holds confirmed soon, those of a slot at
    /// most once a second. @param isLikely holds without an answer are reported as at risk. @param where only holds of
    /// names in these slots; null: all
    void unsettle(TimePoint now, bool isLikely = true, const SlotSet* where = nullptr);

    /// When the next deadline comes, or the next request is due.
    [[nodiscard]] TimePoint due() const noexcept;
    /// Judges the deadlines that have come, then sends the renewals that are due.
    void ring(TimePoint now);
    /// A request has ended. Called without the mutex.
    void finished(RenewalCall& call) noexcept;

private:
    struct News {
        TimePoint at;
        std::unique_ptr<SlotSet> where; ///< null: all
    };

    void send(TimePoint now);
    bool sends(Hold& hold, TimePoint now);
    void answered(const RenewalCall::Item& item, const RenewalCall& call, std::size_t count, std::size_t which,
                  TimePoint now) noexcept;
    void setDeadline(Hold& hold);
    void apply(Hold& hold, const RenewMachine::Event& event, std::chrono::milliseconds sent);
    void apply(Hold& hold, const RenewMachine::Action& action);
    void schedule(Hold& hold, TimePoint due);
    void retrySoon(Hold& hold);
    [[nodiscard]] TimePoint nextRequest() const noexcept;
    [[nodiscard]] std::unique_ptr<SlotSet> putOff(const SlotSet* where);
    void askAbout(TimePoint now, bool isLikely, const SlotSet* where);
    void tellUnconfirmed();
    void tellRisk(Hold& hold, std::chrono::nanoseconds left, LossReason reason);
    void tellHeldTooLong(Hold& hold, TimePoint now);
    void judge(TimePoint now);
    [[nodiscard]] bool overstays(const Hold& hold, TimePoint now) const;
    [[nodiscard]] bool mustRenew(const Hold& hold, TimePoint now) const;
    [[nodiscard]] std::chrono::milliseconds owedLease(const Hold& hold) const;
    [[nodiscard]] std::chrono::milliseconds leaseFor(const Hold& hold, TimePoint now) const;

    Core& core_;
    DueHeap<Hold, &Hold::renewalSlot> renewals_;
    DueHeap<Hold, &Hold::deadlineSlot> deadlines_;
    TimePoint lastingFrom_ = TimePoint::max(); ///< when the holds of now will have lasted; max(): no, or they have
    bool isLasting_ = false;
    std::size_t underWay_ = 0;                   ///< requests without an answer
    TimePoint unsettledAt_ = TimePoint::min();   ///< a request sent before this confirms nothing
    News later_{TimePoint::max(), {}};           ///< what was put off; max(): nothing
    News asked_{TimePoint::min(), {}};           ///< when the last second began, and what was asked about in it
    TimePoint unconfirmedAt_ = TimePoint::max(); ///< when holds without an answer are reported as at risk
    TimePoint oneByOneUntil_{}; ///< until then, one hold a request: denying one must not fail the others
};

} // namespace redislock::detail
