/// @file
/// The surroundings of a core in a test.
#pragma once

#include "core/core.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace redislock::detail {

/// Keeps what it is asked for. Its time moves when the test says so.
class KeepingPort : public Port {
public:
    virtual ~KeepingPort() = default;

    void enter() noexcept override {}
    void exit() noexcept override {}
    [[nodiscard]] TimePoint now() const noexcept override { return time; }
    [[nodiscard]] bool isForked() const noexcept override { return false; }
    HolderId nextHolder() noexcept override { return HolderId{++lastNumber_}; }
    std::uint64_t nextRequest() noexcept override { return ++lastNumber_; }
    bool submit(Lane /*lane*/, std::shared_ptr<Call> call, std::shared_ptr<Call> /*behind*/) override
    {
        sent = std::move(call);
        sent->sentAt = time;
        return true;
    }
    void submitIfConnected(std::vector<std::shared_ptr<Call>> /*calls*/) override {}
    bool withdraw(Call& /*call*/) override { return false; }
    Fault giveUp(Lane /*lane*/, Call& /*call*/) noexcept override { return {Failure::lostReply, Errc::unreachable}; }
    void fail(const std::shared_ptr<Call>& /*call*/, Errc /*why*/) override {}
    void want(std::string channel, ChannelListener by) override
    {
        listened.push_back(std::move(channel));
        listener = std::move(by);
    }
    void drop(std::string channel, ChannelListener /*listener*/) override { std::erase(listened, channel); }
    void wake(Call& /*call*/) noexcept override { ++woken; }
    void alarm(TimePoint when) noexcept override { alarmAt = when; }
    void after(TimePoint when, std::function<void()> what) override { later_.emplace_back(when, std::move(what)); }
    void post(std::function<void()> /*what*/) override {}
    void tell(std::function<void(Observer&)> /*what*/) override
    {
        if (--eventsWithMemory < 0) {
            throw std::bad_alloc();
        }
    }

    /// Time passes, and what is due by then is done.
    void pass(std::chrono::milliseconds span)
    {
        time += span;
        for (auto& [when, what] : std::exchange(later_, {})) {
            if (when <= time) {
                what();
            } else {
                later_.emplace_back(when, std::move(what));
            }
        }
    }

    TimePoint time = TimePoint(std::chrono::hours(1));
    std::shared_ptr<Call> sent;        ///< the last request
    std::vector<std::string> listened; ///< channels
    ChannelListener listener;          ///< the last one
    int woken = 0;                     ///< how often a thread was to look
    TimePoint alarmAt{};               ///< when the last alarm goes off
    int eventsWithMemory = 1'000'000;  ///< for the observer; for those after them there is none

private:
    std::uint64_t lastNumber_ = 0;
    std::vector<std::pair<TimePoint, std::function<void()>>> later_;
};

/// Ends what is under way in the background, and forgets the last request.
inline void dropRuns(Core& core, KeepingPort& port)
{
    while (BackgroundRun* const run = core.runs.popDue(TimePoint::max())) {
        run->drop();
    }
    port.sent = nullptr;
}

} // namespace redislock::detail
