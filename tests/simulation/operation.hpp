/// @file
/// The calls of a program's thread into the library.
#pragma once

#include "core/operation/query_flow.hpp"
#include "core/operation/release_flow.hpp"
#include "core/operation/thread_acquire.hpp"
#include "core/operation/waiting.hpp"
#include "redislock/retry_policy.hpp"
#include "simulation/awaiting.hpp"
#include "simulation/sim_client.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace redislock::simulation {

/// A call of a thread on locks: a flow of the library. The scheduler drives it as `detail::Engine::drive()` drives it
/// with a thread.
template <class Flow>
class Operation : public Awaiting {
public:
    void advance() override
    {
        if (next_.kind == detail::WaitStep::Kind::sleep) {
            take(calledOff_ ? cancel() : flow_.look());
        }
        while (!isDone() && next_.kind != detail::WaitStep::Kind::sleep) {
            if (next_.kind == detail::WaitStep::Kind::askPolicy) {
                take(askPolicy(next_.refusals));
            } else if (calledOff_ && flow_.call().pending) {
                take(cancel());
            } else if (const auto answer = outcome()) {
                take(flow_.answered(*answer));
            } else {
                return;
            }
        }
        if (calledOff_ && !isDone()) {
            take(cancel());
        }
    }

    void callOff() override
    {
        calledOff_ = true;
        wake();
    }

protected:
    template <class... Arguments>
    explicit Operation(SimClient& client, Arguments&&... arguments)
        : Awaiting(client.host(), client.commands()), client_(client), flow_(std::forward<Arguments>(arguments)...)
    {
    }
    ~Operation() override { sleepOn(nullptr); }

    virtual detail::WaitStep askPolicy(std::uint32_t /*refusals*/) { return {}; }
    /// The flow is done.
    virtual void conclude() = 0;
    [[nodiscard]] bool isAsking() const noexcept { return next_.kind == detail::WaitStep::Kind::awaitAnswer; }
    [[nodiscard]] bool isCalledOff() const noexcept { return calledOff_; }

    SimClient& client_;
    Flow flow_;

private:
    detail::WaitStep cancel()
    {
        if constexpr (requires { flow_.cancel(); }) {
            return flow_.cancel();
        } else {
            return {};
        }
    }

    void take(const detail::WaitStep& next)
    {
        next_ = next;
        switch (next.kind) {
        case detail::WaitStep::Kind::awaitAnswer:
            sleepOn(&flow_.call());
            awaitAnswer(flow_.call(), next.until);
            break;
        case detail::WaitStep::Kind::sleep:
            sleepOn(&flow_.call());
            alarm(next.until);
            break;
        case detail::WaitStep::Kind::askPolicy:
            break;
        case detail::WaitStep::Kind::done:
            sleepOn(nullptr);
            conclude();
            finishOperation();
        }
        client_.observe();
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

    detail::WaitStep next_{.kind = detail::WaitStep::Kind::sleep};
    detail::Call* sleeper_ = nullptr;
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
class Acquire final : public Operation<detail::ThreadAcquire>, public Acquiring {
public:
    Acquire(SimClient& client, NamedLock& named, std::uint64_t owner, detail::AcquireOrder order);

    [[nodiscard]] std::optional<Situation> situation() const override;
    [[nodiscard]] std::error_code error() const noexcept override { return error_; }
    [[nodiscard]] const detail::Acquired& acquired() const noexcept override { return acquired_; }
    [[nodiscard]] bool isNested() const noexcept override { return flow_.isNested(); }

private:
    Acquire(SimClient& client, NamedLock& named, std::uint64_t owner,
            std::shared_ptr<const detail::AcquireOrder> order);
    detail::WaitStep askPolicy(std::uint32_t refusals) override;
    void conclude() override;

    const std::shared_ptr<const detail::AcquireOrder> order_;
    std::error_code error_;
    detail::Acquired acquired_;
};

/// The end of a level of a valid hold; the thread waits for the answer.
class AwaitedRelease final : public Operation<detail::ReleaseFlow> {
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

/// The data that a question keeps until its end.
struct Asked {
    std::shared_ptr<detail::Call> call;
    detail::QueryMachine machine;
};

/// A question about a name, or its release by force.
class Question : public Operation<detail::QueryFlow> {
public:
    Question(SimClient& client, NamedLock& named, detail::ScriptUse detail::KindTraits::*use,
             std::vector<std::string> arguments = {});

    [[nodiscard]] std::optional<Situation> situation() const override;
    [[nodiscard]] std::optional<detail::Reason> error() const noexcept { return flow_.error(); }
    [[nodiscard]] const detail::Reply& reply() const noexcept { return asked_->call->reply; }
    [[nodiscard]] const detail::Call& call() const noexcept { return *asked_->call; }
    /// For a release by force: whether it ended the hold.
    [[nodiscard]] bool freed() const;

protected:
    Question(SimClient& client, std::shared_ptr<detail::Call> call);
    void conclude() override {}
    /// Whether an earlier try may have been executed too.
    [[nodiscard]] bool repeated() const noexcept { return asked_->machine.repeated(); }

private:
    Question(SimClient& client, std::unique_ptr<Asked> asked);

    const std::unique_ptr<Asked> asked_;
};

} // namespace redislock::simulation
