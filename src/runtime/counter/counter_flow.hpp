/// @file
/// A wait for a counter and its place among those of its client.
#pragma once

#include "logic/flow/waiting.hpp"
#include "redislock/detail/logic/acquire_machine.hpp"
#include "runtime/counter/counter.hpp"
#include "runtime/engine/engine.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace redislock::detail {

/// Something is being given back while whoever had it goes on.
class NamedCounter::Giving {
public:
    /// Expects the engine's mutex to be free, as the destructor does.
    explicit Giving(std::shared_ptr<NamedCounter> counter) : counter_(std::move(counter))
    {
        const Lock lock(counter_->engine->mutex_);
        counter_->releases_.begin();
    }
    Giving(const Giving&) = delete;
    Giving& operator=(const Giving&) = delete;
    ~Giving()
    {
        const Lock lock(counter_->engine->mutex_);
        counter_->releases_.end();
        counter_->waiters_.forEach([](CounterWaiter& waiter) {
            if (waiter.refusals.isOpen()) {
                waiter.look();
            }
        });
    }

private:
    const std::shared_ptr<NamedCounter> counter_;
};

/// A wait for a grant, step by step; see WaitStep.
class NamedCounter::Flow {
public:
    /// Joins the waiters.
    Flow(NamedCounter& counter, CounterOrder order, AsyncWaiter* operation);
    Flow(const Flow&) = delete;
    Flow& operator=(const Flow&) = delete;
    ~Flow();

    WaitStep look();
    WaitStep answered(const Outcome& outcome);
    /// What may have been granted is to be taken back.
    WaitStep cancel();

    [[nodiscard]] Call& call() const noexcept { return *waiter.call; }
    /// Of one that is done.
    Ending takeEnding() noexcept;
    /// Nobody waits for the answer to the request under way any more. @return whether it may have been sent
    bool withdraw();

    CounterWaiter waiter;

private:
    enum class Stage : std::uint8_t {
        idle,
        asking,         ///< a request is under way
        behindReleases, ///< refused perhaps only because of what this client gives back just now
        sleeping,       ///< until told, or `until_`
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
    Engine& engine_;
    Ending ending_;
    AcquireMachine machine_;
    Stage stage_ = Stage::idle;
    TimePoint until_{};            ///< of the stage, as the machine said
    std::optional<Event> refusal_; ///< of the request that is repeated behind releases
    bool underWay_ = false;        ///< may have been granted something, or may soon be: the client's end waits
};

} // namespace redislock::detail
