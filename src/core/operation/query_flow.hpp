/// @file
/// A question for whose answer a thread waits.
#pragma once

#include "core/machine/query_machine.hpp"
#include "core/operation/waiting.hpp"
#include "core/port.hpp"
#include "link/request/calls.hpp"
#include "redislock/random.hpp"

#include <memory>
#include <optional>
#include <utility>
#include <variant>

namespace redislock::detail {

/// A question that a thread asks, step by step; see WaitStep. The reply is in the call.
class QueryFlow {
public:
    /// @param machine says how the question ended.
    QueryFlow(Port& port, Random& random, std::shared_ptr<Call> call, QueryMachine& machine)
        : port_(port), random_(random), call_(std::move(call)), machine_(machine)
    {
    }
    QueryFlow(const QueryFlow&) = delete;
    QueryFlow& operator=(const QueryFlow&) = delete;

    WaitStep look()
    {
        const TimePoint now = port_.now();
        if (machine_.state() == QueryMachine::State::idle) {
            return step(Start{now});
        }
        return now < until_ ? WaitStep{.kind = WaitStep::Kind::sleep, .until = until_} : step(TimerFired{now});
    }

    WaitStep answered(const Outcome& outcome)
    {
        return step(eventOf<QueryMachine::Event, Answered>(*call_, outcome, port_.now()));
    }

    [[nodiscard]] Call& call() const noexcept { return *call_; }
    /// Only when done: why there is no answer; nothing: there is one.
    [[nodiscard]] std::optional<Reason> error() const noexcept { return error_; }

private:
    WaitStep step(const QueryMachine::Event& event)
    {
        const auto action = machine_.resume(event, random_);
        if (const auto* done = std::get_if<Done<std::optional<Reason>>>(&action)) {
            error_ = done->result;
            return {};
        }
        if (const auto* send = std::get_if<Send>(&action)) {
            port_.submit(Lane::commands, call_); // if it is refused, its outcome says so
            return {.kind = WaitStep::Kind::awaitAnswer, .until = send->until};
        }
        until_ = std::get<SleepUntil>(action).until;
        return {.kind = WaitStep::Kind::sleep, .until = until_};
    }

    Port& port_;
    Random& random_;
    const std::shared_ptr<Call> call_;
    QueryMachine& machine_;
    TimePoint until_{}; ///< end of the pause, as the machine said
    std::optional<Reason> error_;
};

} // namespace redislock::detail
