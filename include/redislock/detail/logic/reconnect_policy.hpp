/// @file
/// When to connect again.
#pragma once

#include "redislock/clock.hpp"
#include "redislock/detail/logic/backoff.hpp"

#include <algorithm>

namespace redislock::detail {

/// Decides when the next attempt to connect may start: at once after a connection that served at least one command,
/// otherwise after a growing pause. So a server that accepts and closes at once is not flooded with attempts; nor is
/// one that takes no writes for a long time, though it answers questions.
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
    void ended(TimePoint now, Random& random) noexcept { pauseUnless(served_, backoff_, now, random); }

    /// The connection was given up because its server takes no writes. The next server may take them, so it is tried at
    /// once, unless the same happened a moment ago.
    void demoted(TimePoint now, Random& random) noexcept
    {
        const bool isFirst = now >= saturatingAdd(lastDemoted_, 2 * Backoff::cap);
        if (isFirst) {
            demotions_.reset();
        }
        lastDemoted_ = now;
        pauseUnless(isFirst, demotions_, now, random);
    }

    /// The earliest moment of the next attempt; in the past when it may start now.
    [[nodiscard]] TimePoint notBefore() const noexcept { return notBefore_; }

    /// The same for a caller that does not wait: a short pause after the last attempt, however many there were.
    [[nodiscard]] TimePoint soonest() const noexcept { return std::min(soonest_, notBefore_); }

private:
    void pauseUnless(bool atOnce, Backoff& backoff, TimePoint now, Random& random) noexcept
    {
        soonest_ = atOnce ? now : now + Backoff::first;
        notBefore_ = atOnce ? now : now + backoff.next(random);
        served_ = false;
    }

    Backoff backoff_;
    Backoff demotions_;
    TimePoint lastDemoted_ = TimePoint::min();
    TimePoint notBefore_{};
    TimePoint soonest_{};
    bool served_ = false;
};

} // namespace redislock::detail
