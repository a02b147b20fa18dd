/// @file
/// Questions to Redis.
#pragma once

#include "core/core.hpp"
#include "core/machine/query_machine.hpp"
#include "core/name_call.hpp"
#include "core/operation/operation.hpp"
#include "link/request/calls.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

namespace redislock::detail {

/// A question that is asked until it is answered. The reply is in the call.
class QueryFlow final : public Operation {
public:
    QueryFlow(Core& core, std::shared_ptr<Call> call, BackgroundRun* run)
        : QueryFlow(core, std::move(call), run, QueryMachine(core.config.unreachableAfter))
    {
    }
    QueryFlow(Core& core, std::shared_ptr<Call> call, BackgroundRun* run, const QueryMachine& machine)
        : Operation(core, run), call_(std::move(call)), machine_(machine)
    {
    }

    WaitStep look() override
    {
        const TimePoint now = core_.port.now();
        switch (machine_.state()) {
        case QueryMachine::State::idle:
            return step(Start{now});
        case QueryMachine::State::backingOff:
            return now < until_ ? sleep(until_) : step(TimerFired{now});
        case QueryMachine::State::asking:
            return awaitAnswer(until_);
        case QueryMachine::State::done:
            break;
        }
        return {};
    }

    WaitStep answered(const Outcome& outcome) override
    {
        return step(eventOf<QueryMachine::Event, Answered>(*call_, outcome, core_.port.now()));
    }

    WaitStep cancel() override
    {
        if (machine_.state() == QueryMachine::State::done) {
            return {};
        }
        (void)takesBack();
        return step(Cancelled{core_.port.now(), Errc::shutdown});
    }

    [[nodiscard]] Call& call() const noexcept override { return *call_; }
    [[nodiscard]] const Reply& reply() const noexcept { return call_->reply; }
    /// Only when done: why there is no answer; nothing: there is one.
    [[nodiscard]] std::error_code error() const noexcept
    {
        return error_ ? std::error_code(*error_) : std::error_code();
    }
    /// Whether an earlier try may have been executed too.
    [[nodiscard]] bool repeated() const noexcept { return machine_.repeated(); }

private:
    WaitStep step(const QueryMachine::Event& event)
    {
        const auto action = machine_.resume(event, core_.random);
        if (const auto* done = std::get_if<Done<std::optional<Reason>>>(&action)) {
            error_ = done->result;
            return {};
        }
        if (const auto* pause = std::get_if<SleepUntil>(&action)) {
            until_ = pause->until;
            return sleep(until_);
        }
        until_ = std::get<Send>(action).until;
        if (!submit(call_) && run_ != nullptr) {
            return step(Failed{core_.port.now(), {Failure::fatal, Errc::shutdown}});
        }
        return awaitAnswer(until_);
    }

    const std::shared_ptr<Call> call_;
    QueryMachine machine_;
    TimePoint until_{}; ///< end of the stage, as the machine said
    std::optional<Reason> error_;
};

/// Asks who has a lock, then ends that holder: in two steps, so that a try whose reply was lost can be repeated without
/// ending the next holder.
class ForceFlow final : public Operation {
public:
    ForceFlow(Core& core, std::shared_ptr<NamedLock> named, BackgroundRun* run)
        : Operation(core, run), named_(std::move(named))
    {
        query_.emplace(core, nameCall(*named_, named_->traits().holder), run);
    }

    WaitStep look() override { return follow(query_->look()); }
    WaitStep answered(const Outcome& outcome) override { return follow(query_->answered(outcome)); }
    WaitStep cancel() override
    {
        const auto end = query_->cancel();
        error_ = query_->error();
        return end;
    }

    [[nodiscard]] Call& call() const noexcept override { return query_->call(); }
    // only when done
    [[nodiscard]] std::error_code error() const noexcept { return error_; }
    [[nodiscard]] bool wasFreed() const noexcept { return wasFreed_; }
    /// The holder that was found; empty: none.
    [[nodiscard]] const std::string& holder() const noexcept { return holder_; }

private:
    WaitStep follow(const WaitStep& next)
    {
        if (next.kind != WaitStep::Kind::done) {
            return next;
        }
        error_ = query_->error();
        return error_ ? WaitStep{} : holder_.empty() ? holderFound() : holderEnded();
    }

    WaitStep holderFound()
    {
        const auto found = holderOf(query_->reply(), error_);
        if (!found) {
            noteUnfit(core_.port, error_, query_->reply());
            return {};
        }
        holder_ = *found;
        core_.forces(*named_, holder_);
        query_.emplace(core_, nameCall(*named_, named_->traits().forceUnlock, {holder_, named_->channel()}), run_);
        return follow(query_->look());
    }

    WaitStep holderEnded()
    {
        wasFreed_ = detail::wasFreed(query_->reply(), query_->repeated(), error_) && !error_;
        noteUnfit(core_.port, error_, query_->reply());
        if (wasFreed_) {
            core_.loseForced(*named_, holder_, query_->call());
            if (query_->call().isAsking) {
                core_.releasing.tellAtSource(*named_);
            }
        }
        return {};
    }

    const std::shared_ptr<NamedLock> named_;
    std::optional<QueryFlow> query_;
    std::string holder_;
    std::error_code error_;
    bool wasFreed_ = false;
};

/// A PING, for which a connection is made if there is none.
class ConnectFlow final : public Operation {
public:
    ConnectFlow(Core& core, BackgroundRun* run)
        : Operation(core, run), until_(core.port.now() + core.config.connectTimeout + std::chrono::milliseconds(100))
    {
        ping_->isHurried = true;
    }

    WaitStep look() override { return std::exchange(begun_, true) ? awaitAnswer(until_) : ask(); }

    /// Asks again in other words, of another node, or if this process stood still meanwhile; but not once more what is
    /// still on a connection: its time is over.
    WaitStep answered(const Outcome& outcome) override
    {
        until_ += outcome.stood;
        const bool stood = !outcome.replied && outcome.fault.failure != Failure::fatal && outcome.stood.count() > 0;
        const bool isMoved = !outcome.replied && outcome.fault.failure == Failure::moved && core_.port.now() < until_;
        if (!ping_->pending && (isMoved || ping_->asksAgain(outcome) || stood)) {
            return ask();
        }
        error_ = ping_->obstacle(outcome);
        return {};
    }

    WaitStep cancel() override
    {
        (void)takesBack();
        error_ = Errc::shutdown;
        return {};
    }

    [[nodiscard]] Call& call() const noexcept override { return *ping_; }
    /// Only when done.
    [[nodiscard]] std::error_code error() const noexcept { return error_; }

private:
    WaitStep ask()
    {
        if (!submit(ping_) && run_ != nullptr) {
            error_ = Errc::shutdown;
            return {};
        }
        return awaitAnswer(until_);
    }

    const std::shared_ptr<PingCall> ping_ = std::make_shared<PingCall>();
    TimePoint until_;
    bool begun_ = false;
    std::error_code error_;
};

} // namespace redislock::detail
