/// @file
/// The calls of a thread on semaphores and latches.
#pragma once

#include "core/counter/counter.hpp"
#include "core/counter/counter_flow.hpp"
#include "simulation/thread_call.hpp"

#include <memory>
#include <optional>
#include <system_error>
#include <utility>

namespace redislock::simulation {

using detail::CounterKind;
using detail::NamedCounter;

/// A wait for a semaphore, a permit or a latch.
class CounterWait final : public FlowCall<detail::CounterFlow> {
public:
    CounterWait(SimClient& client, std::shared_ptr<NamedCounter> counter, detail::CounterOrder order);

    [[nodiscard]] std::optional<Situation> situation() const override;
    /// The client ends.
    void cancel();
    /// Whether this call waits for that counter.
    [[nodiscard]] bool waitsFor(const std::string& name) const noexcept;

    [[nodiscard]] const NamedCounter& counter() const noexcept { return *counter_; }
    [[nodiscard]] std::int64_t permits() const noexcept { return flow_.waiter.permits; }
    [[nodiscard]] const detail::CounterOutcome& end() const noexcept { return end_; }
    [[nodiscard]] TimePoint began() const noexcept { return began_; }

private:
    void conclude() override;

    const std::shared_ptr<NamedCounter> counter_;
    const bool isLatch_;
    const TimePoint began_;
    detail::CounterOutcome end_;
};

/// A request that is repeated until it is answered.
template <class Result>
class CounterQuestion final : public Question {
public:
    CounterQuestion(SimClient& client, std::shared_ptr<NamedCounter> counter, detail::CounterRequest<Result> request)
        : Question(client, request.call), counter_(std::move(counter)), request_(std::move(request)), began_(now())
    {
    }

    [[nodiscard]] std::optional<Situation> situation() const override
    {
        if (request_.afterwards == nullptr) {
            return Question::situation();
        }
        return isAsking() ? Situation::releaseAsking : Situation::releaseBackingOff;
    }
    /// The error of the ended call; result() has its result.
    [[nodiscard]] std::error_code ended() const noexcept { return ended_; }
    [[nodiscard]] const Result& result() const noexcept { return result_; }

private:
    void conclude() override
    {
        ended_ = flow_.error();
        result_ = counter_->conclude(request_, began_, flow_.repeated(), ended_);
    }

    const std::shared_ptr<NamedCounter> counter_;
    const detail::CounterRequest<Result> request_;
    const TimePoint began_;
    std::error_code ended_;
    Result result_{};
};

} // namespace redislock::simulation
