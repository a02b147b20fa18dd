/// @file
/// When a client leaves a name free, whoever may want it.
#pragma once

#include "redislock/clock.hpp"
#include "redislock/random.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace redislock::detail {

/// The gaps in which one client leaves a name free for a twentieth of the time for which it has the name.
///
/// A client whose waiters inherit or follow does not show the name free in Redis: a hold goes on without a request, or
/// a release and the next acquire arrive in one packet. Others who ask now and then would never meet a free name. So
/// the client releases the name now and then, and lets nobody ask who waits in it. That needs no knowledge of who else
/// wants the name. Gaps come at random moments: at regular ones, a caller that asks at regular intervals might never
/// meet one. Time in which the name was free anyway counts.
///
/// Pure; not thread-safe.
class Gaps {
public:
    /// Nineteen parts of the time are the client's, one is everybody's.
    static constexpr std::int64_t own = 19;
    /// The shortest gap; two round trips, if those take longer.
    static constexpr std::chrono::microseconds shortest{500};
    /// After a long hold, or far from the server, a gap is longer, but not longer than this: a server that stood still
    /// looks as if it were far away.
    static constexpr std::chrono::milliseconds longest{50};
    /// A hold counts from this time after its request was sent, if the name was free before: the name is often still
    /// free while the request is under way.
    static constexpr std::chrono::microseconds uncounted{50};

    /// @param turn how long the client keeps the name for its own callers: about as long as between two gaps, or less
    explicit Gaps(std::chrono::nanoseconds turn) noexcept
        : least_(std::max<std::chrono::nanoseconds>(shortest, turn / own)), left_(own * least_)
    {
    }

    /// A hold begins. @param sent when its request was sent
    void begin(TimePoint sent, TimePoint now, std::chrono::nanoseconds roundTrip) noexcept
    {
        if (freeSince_ == TimePoint{}) {
            began_ = sent;
            return;
        }
        const auto free = sent - freeSince_;
        if (free >= roundTrip) { // else the release and this request may have arrived together
            left_ = std::min(left_ + std::min<std::chrono::nanoseconds>(free, longest) * own, mostBetween(roundTrip));
        }
        began_ = std::min(now, sent + uncounted);
        freeSince_ = TimePoint{};
    }

    /// Whether a hold that ends now must be followed by a gap.
    [[nodiscard]] bool isDue(TimePoint now) const noexcept { return began_ != TimePoint{} && now - began_ >= left_; }

    /// Of a name that several callers of a client have at the same time: until when no other may get it, so that all of
    /// them come to an end; in the past, or 0: others may. That is given up after 50 ms, and tried again each second:
    /// who has the name may wait for one who wants it.
    [[nodiscard]] TimePoint closedUntil(TimePoint now) const noexcept
    {
        const auto late = now - began_ - left_;
        return isDue(now) && late % (20 * longest) < longest ? now - late % longest + longest : TimePoint{};
    }

    /// A hold ends, and the client's next request goes right behind the release.
    void follow(TimePoint now) noexcept
    {
        count(now);
        began_ = now;
    }

    /// A hold ends. @param isLeft the client leaves the name to others for some time in any case
    void end(TimePoint now, std::chrono::nanoseconds roundTrip, bool isLeft, Random& random) noexcept
    {
        count(now);
        began_ = TimePoint{};
        freeSince_ = now;
        if (left_ <= left_.zero()) {
            if (!isLeft) { // the gap itself is not counted twice
                freeSince_ = until_ =
                    now + std::min<std::chrono::nanoseconds>(lengthFor(roundTrip) - left_ / own, longest);
            }
            const double chosen = random.unit() * static_cast<double>(mostBetween(roundTrip).count());
            left_ = std::chrono::nanoseconds(static_cast<std::int64_t>(chosen));
        }
    }

    /// Another client has had the name since this client's last hold.
    void nameTaken() noexcept { freeSince_ = TimePoint{}; }

    /// Until when none of the client's waiters asks; in the past, or 0: there is no gap.
    [[nodiscard]] TimePoint until() const noexcept { return until_; }

private:
    [[nodiscard]] std::chrono::nanoseconds lengthFor(std::chrono::nanoseconds roundTrip) const noexcept
    {
        return std::clamp<std::chrono::nanoseconds>(2 * roundTrip, least_, longest);
    }
    /// The longest time between two gaps; it is half of this on average.
    [[nodiscard]] std::chrono::nanoseconds mostBetween(std::chrono::nanoseconds roundTrip) const noexcept
    {
        return 2 * own * lengthFor(roundTrip);
    }
    void count(TimePoint now) noexcept
    {
        if (began_ != TimePoint{}) {
            left_ -= now - began_;
        }
    }

    std::chrono::nanoseconds least_; ///< of a gap
    std::chrono::nanoseconds left_;  ///< how much longer the client may have the name until a gap
    TimePoint began_{};              ///< since when the client has the name; 0: it does not
    TimePoint freeSince_{};          ///< its last release or gap, if nobody is known to have had the name since
    TimePoint until_{};
};

} // namespace redislock::detail
