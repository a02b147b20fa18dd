/// @file
/// A thread of a program.
#pragma once

#include "simulation/faults.hpp"
#include "simulation/host.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace redislock::simulation {

/// A call of a thread under way: a blocking function of the client, cut at the places where it waits. advance()
/// continues from there; it may be called at any time, as a thread may wake for nothing.
class ThreadCall {
public:
    ThreadCall() = default;
    ThreadCall(const ThreadCall&) = delete;
    ThreadCall& operator=(const ThreadCall&) = delete;
    virtual ~ThreadCall() = default;

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
    void finish() noexcept { done_ = true; }

private:
    bool done_ = false;
};

/// Runs one call at a time, and sleeps in between.
class SimThread {
public:
    explicit SimThread(Host& host) noexcept : host_(host) {}
    SimThread(const SimThread&) = delete;
    SimThread& operator=(const SimThread&) = delete;

    void sleep(std::chrono::nanoseconds span, std::function<void()> then);
    /// Begins a call.
    /// @param then is called when the call has ended; the call exists until it is forgotten, or another one begins.
    void run(std::unique_ptr<ThreadCall> call, std::function<void()> then);
    void forget() noexcept { call_.reset(); }

    /// The call that is under way, or that has just ended; null: none.
    [[nodiscard]] ThreadCall* call() const noexcept { return call_.get(); }

private:
    void advance();

    Host& host_;
    std::unique_ptr<ThreadCall> call_;
    std::function<void()> then_;
    bool wakePending_ = false;
    std::uint64_t alarms_ = 0;
};

} // namespace redislock::simulation
