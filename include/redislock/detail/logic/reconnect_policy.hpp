/// @file
/// When to connect again.
#pragma once

#include "redislock/clock.hpp"
#include "redislock/detail/logic/backoff.hpp"

#include <algorithm>

namespace redislock::detail {

/// Decides when the next attempt to connect may start: at once after a connection that served at least one command, otherwise
/// after a growing pause. A server that accepts and closes at once is thereby not stormed.
class ReconnectPolicy {
public:
    /// A command was answered on the connection.
    void served() noexcept
    {
        backoff_.reset();
        notBefore_ = TimePoint{};
        soonest_ = TimePoint{};
        served_ = true;
    }

    /// The connection ended or could not be made.
    void ended(TimePoint now, Random& random) noexcept
    {
        soonest_ = served_ ? now : now + Backoff::first;
        notBefore_ = served_ ? now : now + backoff_.next(random);
        served_ = false;
    }

    /// The earliest moment of the next attempt; in the past when it may start now.
    [[nodiscard]] TimePoint notBefore() const noexcept { return notBefore_; }

    /// The same for somebody who does not wait: a short pause after the last attempt, however many there were.
    [[nodiscard]] TimePoint soonest() const noexcept { return std::min(soonest_, notBefore_); }

private:
    Backoff backoff_;
    TimePoint notBefore_{};
    TimePoint soonest_{};
    bool served_ = false;
};

} // namespace redislock::detail
