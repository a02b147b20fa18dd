/// @file
/// What a thread of a program does with semaphores and latches.
#pragma once

#include "simulation/awaiting.hpp"
#include "simulation/counter_client.hpp"

#include <optional>
#include <string>

namespace redislock::simulation {

/// As `detail::CounterOrder`: what somebody waits for.
struct CounterOrder {
    CounterScript script{};
    std::optional<detail::LockAnswer> (*meaning)(const Reply&) = nullptr;
    std::int64_t permits = 0;
    std::chrono::milliseconds lease{};
    Wait wait = waitForever;
    std::string record{};
    std::optional<CounterScript> undo{};
};

/// A wait for a counter, as `detail::NamedCounter::acquire()`.
class CounterWait final : public Awaiting {
public:
    CounterWait(CounterClient& client, Counter& counter, CounterOrder order);
    ~CounterWait() override;

    void advance() override;
    [[nodiscard]] std::optional<Situation> situation() const override;
    /// The client ends.
    void cancel();

    [[nodiscard]] const detail::AcquireResult& result() const noexcept { return result_; }
    [[nodiscard]] bool granted() const noexcept { return result_.kind == detail::AcquireResult::Kind::granted; }
    [[nodiscard]] bool repeated() const noexcept { return repeated_; }
    [[nodiscard]] TimePoint began() const noexcept { return began_; }

private:
    std::optional<detail::AcquireMachine::Event> nextEvent();
    detail::AcquireMachine::Event eventOf(const detail::Outcome& outcome);
    void conclude(const detail::AcquireResult& result);

    CounterClient& client_;
    Counter& counter_;
    const CounterOrder order_;
    CounterWaiter waiter_;
    detail::AcquireMachine machine_;
    std::optional<detail::AcquireMachine::Event> event_;
    const TimePoint began_;
    std::shared_ptr<RequestCall> call_;
    TimePoint sleepUntil_{};
    bool repeated_ = false;
    detail::AcquireResult result_;
};

/// A request that is repeated until answered, as `detail::NamedCounter::ask()`.
class CounterQuestion final : public Awaiting {
public:
    /// @param record where its answer is kept; empty: nowhere. @param afterwards asked in the background where this stays
    /// unanswered.
    CounterQuestion(CounterClient& client, Counter& counter, const CounterScript& script, std::string record = {},
                    std::optional<CounterScript> afterwards = {}, Situation asking = Situation::queryAsking);

    void advance() override;
    [[nodiscard]] std::optional<Situation> situation() const override;
    [[nodiscard]] std::optional<Errc> error() const noexcept { return error_; }
    [[nodiscard]] const Reply& reply() const noexcept { return command_->reply; }
    [[nodiscard]] TimePoint sentAt() const noexcept { return command_->sentAt; }
    [[nodiscard]] bool repeated() const noexcept { return machine_.repeated(); }

private:
    void conclude(std::optional<Errc> error);

    CounterClient& client_;
    Counter& counter_;
    const std::string record_;
    const std::optional<CounterScript> afterwards_;
    const TimePoint began_;
    std::shared_ptr<RequestCall> command_;
    detail::QueryMachine machine_;
    std::optional<detail::QueryMachine::Event> event_;
    TimePoint sleepUntil_{};
    std::optional<Errc> error_;
};

} // namespace redislock::simulation
