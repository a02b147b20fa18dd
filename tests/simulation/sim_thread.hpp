/// @file
/// A thread of a program.
#pragma once

#include "simulation/awaiting.hpp"
#include "simulation/host.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

namespace redislock::simulation {

/// Runs one call at a time, and sleeps in between.
class SimThread {
public:
    explicit SimThread(Host& host) noexcept : host_(host) {}
    SimThread(const SimThread&) = delete;
    SimThread& operator=(const SimThread&) = delete;

    void sleep(std::chrono::nanoseconds span, std::function<void()> then);
    /// Begins a call.
    /// @param then is called when the call has ended; the call exists until it is forgotten, or another one begins.
    void run(std::unique_ptr<Awaiting> call, std::function<void()> then);
    void forget() noexcept { call_.reset(); }

    /// The call that is under way, or that has just ended; null: none.
    [[nodiscard]] Awaiting* call() const noexcept { return call_.get(); }

private:
    void advance();

    Host& host_;
    std::unique_ptr<Awaiting> call_;
    std::function<void()> then_;
    bool wakePending_ = false;
    std::uint64_t alarms_ = 0;
};

} // namespace redislock::simulation
