/// @file
/// Something that waits for answers and for time.
#pragma once

#include "logic/call/call.hpp"
#include "simulation/faults.hpp"
#include "simulation/host.hpp"
#include "simulation/sim_connection.hpp"

#include <functional>
#include <memory>
#include <optional>

namespace redislock::simulation {

/// A call of a thread under way: a blocking function of the runtime, cut at the places where it waits. advance() goes
/// on from there; it may be called at any time, like a thread that wakes for nothing.
class Awaiting {
public:
    Awaiting(Host& host, SimConnection& commands) noexcept : host_(host), commands_(commands) {}
    Awaiting(const Awaiting&) = delete;
    Awaiting& operator=(const Awaiting&) = delete;
    virtual ~Awaiting() = default;

    virtual void advance() = 0;
    /// As a stop token does: the thread is woken, and ends the call where it is.
    virtual void callOff() {}
    /// The state of its machine; nothing while it waits for its turn.
    [[nodiscard]] virtual std::optional<Situation> situation() const = 0;
    [[nodiscard]] bool isDone() const noexcept { return done_; }

    /// The thread that runs it is to go on.
    std::function<void()> wake;
    /// It is to go on then, if nothing else comes first.
    std::function<void(TimePoint)> alarm;

protected:
    void finishOperation() noexcept { done_ = true; }
    [[nodiscard]] TimePoint now() const noexcept { return host_.now(); }
    /// Waits for a call that was queued: alarms at the end of its time.
    void awaitAnswer(detail::Call& call, TimePoint until);
    /// What became of the awaited call, if need be because its time is over; nothing yet.
    std::optional<detail::Outcome> outcome();

    Host& host_;
    SimConnection& commands_;

private:
    detail::Call* call_ = nullptr; ///< awaited
    TimePoint until_{};
    VirtualTime stoodBefore_{0};
    bool lookedAgain_ = false;
    bool done_ = false;
};

} // namespace redislock::simulation
