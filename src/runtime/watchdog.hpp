/// @file
/// Keeps leases alive and judges when they are over.
#pragma once

#include "redislock/clock.hpp"
#include "redislock/detail/logic/due_heap.hpp"
#include "runtime/hold.hpp"
#include "transport/alarm.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <memory>

namespace redislock::detail {

class Engine;

/// The renewal schedule and the schedule of deadlines of one client, with one timer on the background thread. It is of the boot
/// clock: what became due during a suspend is done when that ends.
///
/// **Thread safety**: the schedule functions are called under the engine's mutex, by any thread; the rest is the background
/// thread's.
class Watchdog {
public:
    static constexpr std::size_t batch = 128; ///< renewals sent in one go

    Watchdog(boost::asio::io_context& io, Engine& engine);

    /// A hold was granted, or its deadline changed: watches it until forget(), and renews it if it asks for that.
    void watch(Hold& hold, TimePoint sentAt);
    void forget(Hold& hold) noexcept;
    [[nodiscard]] std::size_t watched() const noexcept { return deadlines_.size(); }

    /// The end of a renewal call. Background thread.
    void renewed(HoldCall& call);

    /// Arms the timer again, after an exception. Background thread.
    void recover();
    /// Lets the background thread run out of work. Background thread.
    void close();

private:
    void judgeRenewal(HoldCall& call);
    void setDeadline(Hold& hold);
    void apply(Hold& hold, const RenewMachine::Action& action, std::shared_ptr<HoldCall>& send);
    void arm() noexcept;
    void doDue();
    void judge(TimePoint now);
    bool overstays(Hold& hold, TimePoint now);
    [[nodiscard]] bool mustRenew(const Hold& hold, TimePoint now) const;

    Engine& engine_;
    Alarm timer_;
    DueHeap<Hold, &Hold::renewalSlot> renewals_;
    DueHeap<Hold, &Hold::deadlineSlot> deadlines_;
    TimePoint armed_ = TimePoint::max();
};

} // namespace redislock::detail
