/// @file
/// A wait for a counter, and its place among the waits of its client.
#pragma once

#include "core/counter/counter.hpp"
#include "core/machine/acquire_machine.hpp"
#include "core/operation/operation.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace redislock::detail {

/// A wait for a grant.
class CounterFlow final : public Operation {
public:
    /// Joins the waiters.
    CounterFlow(NamedCounter& counter, CounterOrder order, BackgroundRun* run);
    ~CounterFlow() override;

    WaitStep look() override;
    WaitStep answered(const Outcome& outcome) override;
    /// What may have been granted is to be taken back.
    WaitStep cancel() override;

    [[nodiscard]] Call& call() const noexcept override { return *waiter.call; }
    [[nodiscard]] AcquireMachine::State state() const noexcept { return machine_.state(); }
    /// Only when done.
    CounterEnding takeEnding() noexcept;

    CounterWaiter waiter;

private:
    enum class Stage : std::uint8_t {
        idle,
        asking,         ///< a request is under way
        behindReleases, ///< refused, perhaps only because a release of this client is under way
        sleeping,       ///< until woken, or `until_`
        done,
    };
    using Event = AcquireMachine::Event;

    WaitStep judgeAsking();
    WaitStep judgeReleases();
    WaitStep judgeSleep();
    WaitStep step(const Event& event);
    WaitStep send();
    WaitStep finish(const AcquireResult& result) noexcept;
    [[nodiscard]] Event eventOf(const Outcome& outcome);
    void begins() noexcept;
    void ends() noexcept;

    NamedCounter& counter_;
    CounterEnding ending_;
    AcquireMachine machine_;
    Stage stage_ = Stage::idle;
    TimePoint until_{};            ///< end of the stage, as the machine said
    TimePoint unheardUntil_{};     ///< end of the sleep of a waiter that no message will wake
    std::optional<Event> refusal_; ///< refusal of the request that is repeated after the releases
    bool underWay_ = false;        ///< may have been granted something, or may soon be: the client's end waits
};

} // namespace redislock::detail
