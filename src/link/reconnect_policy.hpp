/// @file
/// When to connect again.
#pragma once

#include "link/request/backoff.hpp"
#include "redislock/clock.hpp"

#include <algorithm>

namespace redislock::detail {

/// Decides when the next attempt to connect may start: at once after a connection that did what it was asked, otherwise
/// after a growing pause. So a server that accepts and closes at once is not flooded with attempts; nor is one that
/// does a part of what it is asked for a long time: one that takes no writes though it answers questions, or one that
/// ends each connection at the same request.
class ReconnectPolicy {
public:
    /// A command was executed on the connection.
    void served() noexcept
    {
        backoff_.reset();
        notBefore_ = TimePoint{};
        soonest_ = TimePoint{};
        served_ = true;
    }

    /// The connection ended, or could not be made. @param owing it ended before it had done what it was asked
    void ended(TimePoint now, Random& random, bool owing) noexcept
    {
        if (served_ && owing) {
            return failedAgain(now, random);
        }
        pauseUnless(served_, backoff_, now, random);
    }

    /// The connection was given up because its server takes no writes. The next server may take them, so it is tried at
    /// once, unless a connection failed a moment ago.
    void demoted(TimePoint now, Random& random) noexcept { failedAgain(now, random); }

    /// The earliest moment of the next attempt; in the past when it may start now.
    [[nodiscard]] TimePoint notBefore() const noexcept { return notBefore_; }

    /// The same for a caller that does not wait: a short pause after the last attempt, however many there were.
    [[nodiscard]] TimePoint soonest() const noexcept { return std::min(soonest_, notBefore_); }

private:
    /// The connection worked, but not for all that was asked: what it served does not make the pauses small.
    void failedAgain(TimePoint now, Random& random) noexcept
    {
        const bool isFirst = now >= saturatingAdd(lastFailed_, 2 * Backoff::cap);
        if (isFirst) {
            failures_.reset();
        }
        lastFailed_ = now;
        pauseUnless(isFirst, failures_, now, random);
    }

    void pauseUnless(bool atOnce, Backoff& backoff, TimePoint now, Random& random) noexcept
    {
        soonest_ = atOnce ? now : now + Backoff::first;
        notBefore_ = atOnce ? now : now + backoff.next(random);
        served_ = false;
    }

    Backoff backoff_;
    Backoff failures_; ///< of connections that worked
    TimePoint lastFailed_ = TimePoint::min();
    TimePoint notBefore_{};
    TimePoint soonest_{};
    bool served_ = false;
};

} // namespace redislock::detail
