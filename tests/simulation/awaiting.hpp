/// @file
/// Something that waits for answers and for time.
#pragma once

#include "link/request/call.hpp"
#include "simulation/carrier.hpp"
#include "simulation/faults.hpp"
#include "simulation/host.hpp"

#include <functional>
#include <memory>
#include <optional>

namespace redislock::simulation {

/// A call of a thread under way: a blocking function of the client, cut at the places where it waits. advance()
/// continues from there; it may be called at any time, as a thread may wake for nothing.
class Awaiting {
public:
    Awaiting(Host& host, RequestCarrier& commands) noexcept : host_(host), commands_(commands) {}
    Awaiting(const Awaiting&) = delete;
    Awaiting& operator=(const Awaiting&) = delete;
    virtual ~Awaiting() = default;

    virtual void advance() = 0;
    /// Acts as a stop token: wakes the thread, which ends the call at its present point.
    virtual void callOff() {}
    /// The state of the call's machine; nothing while the call waits for its turn.
    [[nodiscard]] virtual std::optional<Situation> situation() const = 0;
    [[nodiscard]] bool isDone() const noexcept { return done_; }

    /// Wakes the thread that runs the call.
    std::function<void()> wake;
    /// Wakes the thread at that time, if nothing else does so before.
    std::function<void(TimePoint)> alarm;

protected:
    void finishOperation() noexcept { done_ = true; }
    [[nodiscard]] TimePoint now() const noexcept { return host_.now(); }
    /// Waits for a queued call: sets an alarm for the end of its time.
    void awaitAnswer(detail::Call& call, TimePoint until);
    /// The outcome of the awaited call, which may be that its time is over; nothing: it has none yet.
    std::optional<detail::Outcome> outcome();

    Host& host_;
    RequestCarrier& commands_;

private:
    detail::Call* call_ = nullptr; ///< awaited
    TimePoint until_{};
    VirtualTime stoodBefore_{0};
    bool lookedAgain_ = false;
    bool done_ = false;
};

} // namespace redislock::simulation
