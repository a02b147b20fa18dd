/// @file
/// Something that waits for answers and for time.
#pragma once

#include "simulation/sim_connection.hpp"

#include <functional>
#include <memory>
#include <optional>

namespace redislock::simulation {

/// A call of a thread under way: a blocking function of the runtime, cut at the places where it waits. advance() goes on
/// from there; it may be called at any time, like a thread that wakes for nothing.
class Awaiting {
public:
    Awaiting(Host& host, SimConnection& commands) noexcept : host_(host), commands_(commands) {}
    Awaiting(const Awaiting&) = delete;
    Awaiting& operator=(const Awaiting&) = delete;
    virtual ~Awaiting() = default;

    virtual void advance() = 0;
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
    /// Waits for a call: alarms at the end of its time.
    void send(const std::shared_ptr<Call>& call, TimePoint until, std::shared_ptr<Call> behind = nullptr);
    void awaitAnswer(const std::shared_ptr<Call>& call, TimePoint until);
    /// Whether the awaited call has ended, if need be because its time is over.
    bool answered();

    std::shared_ptr<Call> call_; ///< awaited
    TimePoint until_{};

private:
    VirtualTime stoodBefore_{0};
    bool lookedAgain_ = false;
    Host& host_;
    SimConnection& commands_;
    bool done_ = false;
};

} // namespace redislock::simulation
