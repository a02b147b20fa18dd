/// @file
/// How a client shares one name with others.
#pragma once

#include "redislock/clock.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

namespace redislock::detail {

/// The turns of one client at one name that others want too.
///
/// A client that gets the name keeps it for a turn: meanwhile its threads hand the lock on among themselves and lock
/// again as they like, before all others, who would get it later than its next request. The release that ends a turn is
/// told to all who listen, and then the client stands aside, about a turn for each of those and the time in which they
/// wake up: none of its waiters asks. An aside that nobody used is not repeated for a while, so that listeners who
/// never ask cost little.
///
/// Pure; not thread-safe. Knows no hold and no waiter: it is told when holds begin and end.
class Turn {
public:
    /// For one of those who listen, to wake up and ask.
    static constexpr std::chrono::microseconds wakeUp{500};
    /// More listeners than these are not waited for.
    static constexpr std::int64_t most = 32;
    /// Nor for longer where holds are long.
    static constexpr std::chrono::milliseconds longest{50};
    /// An aside that nobody used is not repeated for so many times as long; the last goes for all after the third.
    static constexpr int rests[] = {4, 20, 60};
    /// For so long who was refused takes it that somebody else wants the name, though nobody here knows who listens.
    static constexpr std::chrono::milliseconds lately{1000};

    explicit Turn(std::chrono::nanoseconds turn) noexcept : turn_(turn) {}

    /// A request was answered: how long that took. A single slow answer says little.
    void answered(std::chrono::nanoseconds roundTrip) noexcept
    {
        const auto known = roundTrip_ == roundTrip_.zero() ? roundTrip : roundTrip_;
        roundTrip_ = roundTrip < known ? roundTrip : known + std::min(roundTrip - known, known) / 16;
    }

    /// A hold of this client begins.
    void granted(TimePoint now) noexcept
    {
        if (asideUntil_ != TimePoint{}) {
            endAside(now);
            begin(now);
        } else if (began_ == TimePoint{} || (freeSince_ != TimePoint{} && now - freeSince_ > span())) {
            begin(now); // others had their chance
        }
        freeSince_ = TimePoint{};
    }

    /// Somebody else holds the lock.
    void refused(TimePoint now) noexcept
    {
        refusedAt_ = now;
        ++othersToldUs_;
        if (asideUntil_ != TimePoint{}) {
            endAside(now);
        }
        began_ = freeSince_ = TimePoint{};
    }

    /// A release was told on the channel. The client's own releases are told to itself too, when it listens.
    void heard() noexcept
    {
        if (ownMessages_ > 0) {
            --ownMessages_;
        } else {
            ++othersToldUs_;
        }
    }
    /// It listens from now on: what its releases told before does not come.
    void listens() noexcept { ownMessages_ = 0; }

    /// Whether a hold that ends now may be followed by the next of this client at once.
    [[nodiscard]] bool mayFollow(TimePoint now) const noexcept { return !isOver(now) || !sharesAt(now); }
    /// Whether then nobody need be told.
    [[nodiscard]] bool isQuiet(TimePoint now) const noexcept { return !isOver(now); }

    /// A hold ended, and others are told. @param follows the next one of this client asks right behind @param listens
    /// this client itself is told as well
    void told(TimePoint now, bool follows, bool listens) noexcept
    {
        ownMessages_ += listens ? 1 : 0;
        const bool over = isOver(now);
        freeSince_ = now;
        wasOver_ = over && !follows;
        othersToldUs_ = 0;
        stoodAside_ = false;
        if (over) {
            lasted_ = began_ == TimePoint{} ? span() : now - began_;
            began_ = TimePoint{};
        }
        standAside(now);
    }
    /// The server says how many others were told of that release. @return whether the client stands aside for less time
    /// than before.
    bool othersListen(std::int64_t count, TimePoint now) noexcept
    {
        others_ = std::clamp<std::int64_t>(count, 0, most);
        if (!wasOver_ || freeSince_ == TimePoint{}) {
            return false; // it has gone on since
        }
        const TimePoint before = asideUntil_;
        standAside(now);
        return asideUntil_ < before;
    }

    /// That release found nothing to end: it was told to nobody, and nobody uses the time. @param listens as in told()
    /// @return whether the client stands aside no more.
    bool toldNobody(bool listens) noexcept
    {
        ownMessages_ -= listens && ownMessages_ > 0 ? 1 : 0;
        return std::exchange(asideUntil_, TimePoint{}) != TimePoint{};
    }

    /// Until when none of this client's waiters asks; in the past, or 0: they may.
    [[nodiscard]] TimePoint asideUntil() const noexcept { return asideUntil_; }
    /// Whether the message that was just heard ends the aside: others had their time, and as many releases as there are
    /// of them were told, or it would end now but for their wake-up.
    [[nodiscard]] bool endsWithMessage(TimePoint now) const noexcept
    {
        const auto others = listeners(freeSince_);
        return now >= asideUntil_ - wakeUp || (now >= freeSince_ + others * span() && othersToldUs_ >= others);
    }
    /// A waiter sleeps until then.
    void standsAside() noexcept { stoodAside_ = true; }

    /// How long a turn is: what is configured, but time enough to hand on once.
    [[nodiscard]] std::chrono::nanoseconds span() const noexcept { return std::max(turn_, 2 * roundTrip_); }

private:
    [[nodiscard]] bool isOver(TimePoint now) const noexcept { return began_ == TimePoint{} || now - began_ >= span(); }
    [[nodiscard]] std::int64_t listeners(TimePoint now) const noexcept
    {
        const bool refusedLately = refusedAt_ != TimePoint{} && now - refusedAt_ < lately;
        return std::max<std::int64_t>(others_, refusedLately ? 1 : 0);
    }
    [[nodiscard]] bool sharesAt(TimePoint now) const noexcept { return listeners(now) > 0 && now >= restsUntil_; }

    void begin(TimePoint now) noexcept
    {
        began_ = now;
        wasOver_ = false;
    }

    void standAside(TimePoint now) noexcept
    {
        asideUntil_ = TimePoint{};
        if (wasOver_ && sharesAt(now)) {
            // the others' turns may take as long as the own one did, which was a hold at least
            const auto asLong = std::min<std::chrono::nanoseconds>(listeners(now) * lasted_, longest);
            asideUntil_ = freeSince_ + std::max(listeners(now) * span(), asLong) + wakeUp;
        }
    }

    void endAside(TimePoint now) noexcept
    {
        const auto took = asideUntil_ - freeSince_;
        asideUntil_ = TimePoint{};
        if (othersToldUs_ > 0) {
            unused_ = 0;
        } else if (stoodAside_) {
            restsUntil_ = now + took * rests[unused_];
            unused_ = std::min(unused_ + 1, std::size(rests) - 1);
        }
    }

    std::chrono::nanoseconds turn_;
    std::chrono::nanoseconds roundTrip_{0};
    TimePoint began_{};     ///< the turn; 0: there is none
    TimePoint freeSince_{}; ///< the last release that was told, until the next hold; otherwise 0
    TimePoint asideUntil_{};
    TimePoint restsUntil_{}; ///< no aside before that
    TimePoint refusedAt_{};
    std::chrono::nanoseconds lasted_{0}; ///< the last turn
    std::int64_t others_ = 0;            ///< who listened to the last release that was told
    std::int64_t othersToldUs_ = 0;      ///< releases, or that one has it, since
    std::uint32_t ownMessages_ = 0;      ///< that are still to come
    bool wasOver_ = false;               ///< the turn, at that release, and nobody of this client followed
    bool stoodAside_ = false;            ///< a waiter did since
    std::size_t unused_ = 0;             ///< in how many asides in a row nobody had
};

} // namespace redislock::detail
