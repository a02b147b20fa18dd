/// @file
/// A wait for a counter and its place among those of its client.
#pragma once

#include "runtime/counter.hpp"
#include "runtime/engine.hpp"
#include "runtime/underway.hpp"

#include <algorithm>
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

/// What a wait consists of, whoever drives it.
class NamedCounter::Attempt {
public:
    Attempt(std::shared_ptr<NamedCounter> c, CounterOrder o)
        : counter(std::move(c)), order(std::move(o)), machine(settings())
    {
        waiter.permits = order.permits;
    }

    Attempt(const Attempt&) = delete;
    Attempt& operator=(const Attempt&) = delete;
    ~Attempt()
    {
        if (waiter.queued) { // out of memory half-way
            const Lock lock(counter->engine->mutex_);
            counter->leave(waiter);
        }
    }

    /// Expects the engine's mutex.
    void join()
    {
        if (counter->engine->closing_) {
            waiter.ended = Errc::shutdown; // too late to be told with the others
        }
        counter->waiters_.join(waiter);
    }

    /// The next request of the machine.
    [[nodiscard]] std::shared_ptr<ScriptCall> call() const
    {
        auto made = std::make_shared<ScriptCall>(*order.script, order.keys, order.arguments);
        made->hurried = order.wait.isOneAttempt();
        return made;
    }

    /// What the machine asks for next.
    AcquireMachine::Action resume(const AcquireMachine::Event& event, Random& random);
    /// The event that an answer is.
    AcquireMachine::Event answered(const Call& call, const Outcome& how, TimePoint now);

    /// The end. Expects the engine's mutex to be free.
    std::error_code conclude(const AcquireResult& result);

    const std::shared_ptr<NamedCounter> counter;
    const CounterOrder order;
    CounterWaiter waiter;
    AcquireMachine machine;
    CounterOutcome outcome;

private:
    [[nodiscard]] AcquireMachine::Settings settings() const noexcept;
};

} // namespace redislock::detail
