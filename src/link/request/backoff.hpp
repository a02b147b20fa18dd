/// @file
/// When a request without a useful answer is tried again.
#pragma once

#include "link/request/event.hpp"
#include "redislock/clock.hpp"
#include "redislock/error.hpp"
#include "redislock/random.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ratio>
#include <utility>

namespace redislock::detail {

/// The pause after a waiter's n-th request if nothing wakes it: as a SpinLock's, 1 ms to 128 ms, less up to a half.
inline std::chrono::nanoseconds pollPause(std::uint32_t attempt, Random& random) noexcept
{
    const std::chrono::nanoseconds pause = std::chrono::milliseconds(1) * (1 << std::min(attempt - 1, 7U));
    return pause - std::chrono::nanoseconds(
                       static_cast<std::int64_t>(random.unit() * 0.5 * static_cast<double>(pause.count())));
}

/// Pauses that double from 50 ms to 1 s, each with ± 20 % jitter, so that clients that failed together do not come back
/// together.
class Backoff {
public:
    static constexpr std::chrono::milliseconds first{50};
    static constexpr std::chrono::milliseconds cap{1000};

    /// The next pause.
    std::chrono::nanoseconds next(Random& random) noexcept
    {
        const std::chrono::milliseconds pause = current_;
        current_ = std::min(current_ * 2, Pause(cap));
        return std::chrono::duration_cast<std::chrono::nanoseconds>(pause * random.around(0.2));
    }

    /// Whether no pause was taken since reset().
    [[nodiscard]] bool isFresh() const noexcept { return current_ == Pause(first); }

    /// A try succeeded: starts with small pauses again.
    void reset() noexcept { current_ = Pause(first); }

private:
    using Pause = std::chrono::duration<std::int32_t, std::milli>; // small: each hold has one
    Pause current_{first};
};

/// What the tries of one request have met, and for how long they go on. All machines that repeat a request for a caller
/// share this.
struct Tries {
    static constexpr int mostRedirections = 5;
    static constexpr std::chrono::milliseconds whileSlotsMove{100}; ///< the longest pause then

    /// Notes that a try has failed. @return whether the next one is to come after a pause. After a replica's answer it
    /// comes at once, over the next connection, perhaps to the new master; after a second one in a row it does not.
    /// After a redirection it comes at once too, five times in a row before each pause.
    bool failed(const Failed& event) noexcept
    {
        mayBeDone = mayBeDone || mayBeExecuted(event.fault);
        end = saturatingAdd(end, event.stood);
        if (event.fault.failure == Failure::notConnected || event.fault.failure == Failure::lostReply) {
            return false;
        }
        refusal = event.fault.error;
        if (event.fault.failure == Failure::moved) {
            redirections = (redirections + 1) % (mostRedirections + 1);
            return redirections == 0;
        }
        return event.fault.failure != Failure::demoted || std::exchange(demoted, true);
    }
    /// A try was answered: what it met before does not count any more.
    void answered() noexcept
    {
        demoted = false;
        redirections = 0;
        backoff.reset();
    }

    /// How long to wait before the next try. What concerns a cluster's slots is over soon, and said at once.
    std::chrono::nanoseconds pause(Random& random) noexcept
    {
        const auto usual = backoff.next(random);
        if (refusal != Reason(Cause::clusterDown) && refusal != Reason(Cause::redirected)) {
            return usual;
        }
        return std::min(usual,
                        std::chrono::duration_cast<std::chrono::nanoseconds>(whileSlotsMove * random.around(0.2)));
    }

    TimePoint end = TimePoint::max();     ///< no tries after this; moved by the times in which this process stood still
    Reason refusal = Errc::serverRefused; ///< the last one
    Backoff backoff{};
    int redirections = 0;   ///< in a row, since the last pause
    bool demoted = false;   ///< a replica answered
    bool mayBeDone = false; ///< a try may have been executed
};

} // namespace redislock::detail
