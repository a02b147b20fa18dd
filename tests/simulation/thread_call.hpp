/// @file
/// The calls of a program's thread into the library.
#pragma once

#include "core/operation/query_flow.hpp"
#include "core/operation/release_flow.hpp"
#include "core/operation/thread_acquire.hpp"
#include "core/operation/thread_run.hpp"
#include "simulation/sim_client.hpp"
#include "simulation/sim_run.hpp"
#include "simulation/sim_thread.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace redislock::simulation {

/// A call of a thread that runs an operation of the library by its ThreadRun, as `detail::drive()` does.
template <class Flow>
class FlowCall : public ThreadCall {
public:
    void advance() override
    {
        if (!run_) {
            run_.emplace(flow_);
            took();
        } else if (sleeps()) {
            run_->woke(calledOff_);
            took();
        }
        while (!isDone() && !sleeps()) {
            const auto& next = run_->next();
            if (next.kind == detail::WaitStep::Kind::askPolicy) {
                run_->paused(detail::pauseOf(*next.order->retry, next.refusals, client_.core().random, nullptr));
            } else if (calledOff_ && flow_.call().pending) {
                run_->answered({.fault = {}, .calledOff = true});
            } else if (const auto answer = outcome()) {
                run_->answered(*answer);
            } else {
                return;
            }
            took();
        }
        if (calledOff_ && !isDone()) {
            run_->woke(true);
            took();
        }
    }

    void callOff() override
    {
        calledOff_ = true;
        wake();
    }

protected:
    template <class... Arguments>
    explicit FlowCall(SimClient& client, Arguments&&... arguments)
        : client_(client), flow_(std::forward<Arguments>(arguments)...)
    {
    }
    ~FlowCall() override { sleepOn(nullptr); }

    /// The operation is done.
    virtual void conclude() = 0;
    [[nodiscard]] bool isAsking() const noexcept
    {
        return run_ && run_->next().kind == detail::WaitStep::Kind::awaitAnswer;
    }
    [[nodiscard]] bool isCalledOff() const noexcept { return run_ && run_->isCalledOff(); }
    [[nodiscard]] TimePoint now() const noexcept { return client_.now(); }

    SimClient& client_;
    Flow flow_;

private:
    [[nodiscard]] bool sleeps() const noexcept { return run_->next().kind == detail::WaitStep::Kind::sleep; }

    void took()
    {
        if (run_->isDone()) {
            sleepOn(nullptr);
            conclude();
            finish();
        } else if (run_->next().kind != detail::WaitStep::Kind::askPolicy) {
            sleepOn(&flow_.call());
            stoodBefore_ = client_.host().stood();
            lookedAgain_ = false;
            alarm(run_->next().until);
        }
        client_.observe();
    }

    /// The outcome of the awaited request, which may be that its time is over; nothing: it has none yet.
    std::optional<detail::Outcome> outcome()
    {
        detail::Call& call = flow_.call();
        detail::Outcome outcome = call.outcome;
        outcome.stood = client_.host().stood() - stoodBefore_;
        if (!call.pending) {
            return outcome;
        }
        if (now() < run_->next().until) {
            return std::nullopt;
        }
        if (outcome.stood > outcome.stood.zero() && !std::exchange(lookedAgain_, true)) {
            alarm(now()); // answers that came meanwhile are read first
            return std::nullopt;
        }
        outcome.replied = false;
        outcome.fault = client_.giveUp(detail::Lane::commands, call);
        if (call.pending) { // the call stays on the connection, and cannot be used again
            outcome.stood = outcome.stood.zero();
        }
        return outcome;
    }

    /// @param call the call on whose signal the thread sleeps; null: it no longer sleeps
    void sleepOn(detail::Call* call)
    {
        if (sleeper_ != nullptr) {
            client_.wakesNoMore(*sleeper_);
        }
        sleeper_ = call;
        if (call != nullptr) {
            client_.sleeps(*call, *this);
        }
    }

    std::optional<detail::ThreadRun<Flow>> run_; ///< from the first step on
    detail::Call* sleeper_ = nullptr;
    VirtualTime stoodBefore_{0};
    bool lookedAgain_ = false;
    bool calledOff_ = false;
};

/// The result of an acquire.
class Acquiring {
public:
    [[nodiscard]] virtual std::error_code error() const noexcept = 0;
    /// Without a hold: the lock was not acquired.
    [[nodiscard]] virtual const detail::Acquired& acquired() const noexcept = 0;
    [[nodiscard]] virtual bool isNested() const noexcept = 0;

protected:
    ~Acquiring() = default;
};

/// An acquire of a hold, or of another level of a hold.
class Acquire final : public FlowCall<detail::ThreadAcquire>, public Acquiring {
public:
    Acquire(SimClient& client, NamedLock& named, std::uint64_t owner, detail::AcquireOrder order);

    [[nodiscard]] std::optional<Situation> situation() const override;
    [[nodiscard]] std::error_code error() const noexcept override { return error_; }
    [[nodiscard]] const detail::Acquired& acquired() const noexcept override { return acquired_; }
    [[nodiscard]] bool isNested() const noexcept override { return flow_.isNested(); }

private:
    Acquire(SimClient& client, NamedLock& named, std::uint64_t owner,
            std::shared_ptr<const detail::AcquireOrder> order);
    void conclude() override;

    const std::shared_ptr<const detail::AcquireOrder> order_;
    std::error_code error_;
    detail::Acquired acquired_;
};

/// An acquire that a thread starts without waiting; the thread does nothing else until the acquire has ended.
class StartedAcquire final : public ThreadCall, public Acquiring {
public:
    StartedAcquire(SimClient& client, NamedLock& named, const detail::AcquireOrder& order);
    ~StartedAcquire() override { attempt_->leave(); }

    void advance() override;
    [[nodiscard]] std::optional<Situation> situation() const override { return situationOf(*attempt_); }
    [[nodiscard]] std::error_code error() const noexcept override { return error_; }
    [[nodiscard]] const detail::Acquired& acquired() const noexcept override { return acquired_; }
    [[nodiscard]] bool isNested() const noexcept override { return false; }

private:
    SimClient& client_;
    const std::shared_ptr<SimAcquire> attempt_;
    bool begun_ = false;
    bool ended_ = false;
    std::error_code error_;
    detail::Acquired acquired_;
};

/// The end of a level of a valid hold; the thread waits for the answer.
class AwaitedRelease final : public FlowCall<detail::ReleaseFlow> {
public:
    AwaitedRelease(SimClient& client, const detail::Acquired& acquired);

    [[nodiscard]] std::optional<Situation> situation() const override;
    [[nodiscard]] Unlocked how() const noexcept { return flow_.result(); }

private:
    /// @param validUntil the deadline of the hold before the call
    AwaitedRelease(SimClient& client, const detail::Acquired& acquired, TimePoint validUntil);
    void conclude() override;

    HoldRef hold_;
    const TimePoint validUntil_;
};

/// A question, which may change something.
template <class Flow>
class Asking : public FlowCall<Flow> {
public:
    template <class... Arguments>
    explicit Asking(SimClient& client, Arguments&&... arguments)
        : FlowCall<Flow>(client, client.core(), std::forward<Arguments>(arguments)..., nullptr)
    {
    }

    [[nodiscard]] std::optional<Situation> situation() const override
    {
        return this->isAsking() ? Situation::queryAsking : Situation::queryBackingOff;
    }
    [[nodiscard]] const Flow& flow() const noexcept { return this->flow_; }

protected:
    void conclude() override {}
};

using Question = Asking<detail::QueryFlow>;
using Forcing = Asking<detail::ForceFlow>;

} // namespace redislock::simulation
