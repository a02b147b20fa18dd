/// @file
/// An acquire of an outermost hold, step by step.
#pragma once

#include "core/confirming.hpp"
#include "core/core.hpp"
#include "core/operation/operation.hpp"
#include "link/request/calls.hpp"

#include <cstdint>
#include <optional>
#include <system_error>
#include <variant>

namespace redislock::detail {

/// The answer to an acquire. @param outcome as for eventOf().
inline AcquireMachine::Event lockEventOf(const HoldCall& call, const Outcome& outcome, TimePoint now)
{
    return eventOf<AcquireMachine::Event, LockAnswer>(call, outcome, now, call.hold().lock->traits().tokens,
                                                      call.level());
}

/// An acquire under way: the waiter, its place in a queue, the machine. Whoever runs it keeps the AcquireOrder alive,
/// and has another reference to the hold.
class AcquireFlow final : public Operation {
public:
    /// Joins the queue.
    AcquireFlow(Core& core, NamedLock& named, HoldRef hold, const AcquireOrder& order, BackgroundRun* run);
    /// Leaves the queue, and wakes the next waiter.
    ~AcquireFlow() override;

    WaitStep look() override;
    WaitStep answered(const Outcome& outcome) override;
    WaitStep paused(const std::variant<Pause, Cancelled>& answer) override;
    /// What Redis may have granted is to be given back.
    WaitStep cancel() override;

    [[nodiscard]] HoldCall& call() const noexcept override { return *waiter.call; }
    /// Only when done: the result. @param acquired what was granted
    std::error_code conclude(Acquired& acquired);

    NamedLock& named;
    HoldRef hold;
    const AcquireOrder& order;
    Waiter waiter;
    const bool asksForItself; ///< stands behind nobody and before nobody, neither here nor in a queue in Redis
    std::uint32_t level = 0;

    /// The machine's state; nothing before its turn.
    [[nodiscard]] std::optional<AcquireMachine::State> state() const noexcept
    {
        return machine_ ? std::optional(machine_->state()) : std::nullopt;
    }

    static constexpr int placesKept = 5; ///< polls that may fail before a waiter loses its place
    static constexpr std::chrono::milliseconds shortestPlace{500}; ///< the client's own thread may be late, too

private:
    enum class Stage : std::uint8_t {
        awaitingTurn,   ///< others of this client are before it
        asking,         ///< a request is under way
        behindReleases, ///< refused, perhaps only because a hold of this client is being released
        choosing,       ///< its policy is asked for a pause
        sleeping,       ///< until woken, or `until_`
        confirming,     ///< granted, and others are asked whether they have the grant
        pausing,        ///< a grant was not durable; out of the queue until `until_`
        done,
    };
    using Event = AcquireMachine::Event;

    WaitStep judgeTurn();
    WaitStep judgeAsking();
    WaitStep judgeReleases();
    WaitStep judgeSleep();
    WaitStep step(const Event& event);
    WaitStep send();
    WaitStep granted(const AcquireResult& result);
    WaitStep judgeConfirmation();
    WaitStep notDurable(Reason why);
    WaitStep judgePause();
    void beginAgain();
    WaitStep giveUpGrant(Reason why) noexcept;
    void letNext() const noexcept;
    bool takesPassed();
    void endPassed() noexcept;
    WaitStep sleepUntil(TimePoint until) noexcept;
    WaitStep finish(const AcquireResult& result) noexcept;
    AcquireMachine::Settings settings(TimePoint now) const noexcept;
    [[nodiscard]] bool wasContended(TimePoint now) const noexcept;
    [[nodiscard]] AcquireResult withoutTurn(AcquireResult result) const noexcept;
    void noteAnswer(const Event& event) noexcept;
    void noteBlocker(const LockAnswer& busy);
    void tellContended() const;
    [[nodiscard]] TimePoint asideUntil(bool isFirst) const noexcept;
    [[nodiscard]] TimePoint gapUntil() const noexcept;
    /// When a wait for its turn is over; a single attempt has none.
    [[nodiscard]] TimePoint waitEnd() const noexcept
    {
        return order.wait.isOneAttempt() ? TimePoint::max() : deadline_;
    }
    /// Whether this waiter, once it has asked, has a place to give up if it is not granted the lock.
    [[nodiscard]] bool hasPlace() const noexcept { return waiter.call->place.count() > 0; }
    /// Whether its last request took a place to which a release may grant the lock: a message tells of each such grant.
    [[nodiscard]] bool isQueued() const noexcept { return waiter.call->isHeard; }
    [[nodiscard]] Event eventOfGrant(const Grant& grant, TimePoint now) const noexcept;

    WaiterQueue<Waiter>& queue_;
    const TimePoint deadline_;
    std::optional<AcquireMachine> machine_; ///< from its turn on
    Stage stage_ = Stage::awaitingTurn;
    TimePoint until_{};            ///< end of the stage, as the machine said
    TimePoint unheardUntil_{};     ///< end of the sleep of a waiter that no message will wake
    std::optional<Event> refusal_; ///< refusal of the request that is repeated after the releases
    Confirmation confirmation_;
    TimePoint notDurableSince_{}; ///< the first grant that was not; 0: there was none
    AcquireResult result_;
};

} // namespace redislock::detail
