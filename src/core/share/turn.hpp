/// @file
/// How a client shares one name with other clients.
#pragma once

#include "core/share/gaps.hpp"
#include "redislock/clock.hpp"
#include "redislock/random.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

namespace redislock::detail {

/// The turns of one client at one name that other clients want too.
///
/// A client that gets the name keeps it for a turn: meanwhile its waiters inherit or follow, and its threads lock
/// again as they like, before all other clients, which would get it later than the client's next request. The release
/// that ends a turn is published to all listeners, and then the client stands aside, for about a turn for each listener
/// and the time that they need to wake up: none of its waiters asks. If a part of that time was not used, the client
/// stands aside for fewer listeners for a while, so that listeners that never ask cost little. Listeners that come
/// meanwhile count, and so do those that come and go: a client that locks now and then is not taken for one that never
/// does.
///
/// Who does not listen is not forgotten: see Gaps.
///
/// Pure; not thread-safe. Knows no hold and no waiter: its owner reports when holds begin and end.
class Turn {
public:
    enum class Audience : std::uint8_t { none, listeners };

    /// The time for a listener to wake up and ask.
    static constexpr std::chrono::microseconds wakeUp{500};
    /// The number of listeners for which a client stands aside at most.
    static constexpr std::int64_t most = 32;
    /// The time for which it stands aside at most because holds are long, until it asks whether others have the lock.
    static constexpr std::chrono::milliseconds longest{50};
    /// After standing aside for listeners that did not use the time, the client does not repeat that for so many times
    /// as long; the last number holds from the fourth time on that as many others used theirs.
    static constexpr int rests[] = {4, 20, 60, 180};
    /// So many asides in a row must be used in full before the next unused one counts as the first again: the time of a
    /// listener that never asks may have been used by another client that stood aside for fewer.
    static constexpr int enoughUses{4};
    /// Of so many turns at least the client remembers how many listened.
    static constexpr int remembered{16};
    /// For so long after a refusal, a client assumes that another one wants the name, even if none is known to listen.
    static constexpr std::chrono::milliseconds lately{1000};

    /// @param audience whether there are turns, with those who listen to this client's releases; if not, only gaps
    explicit Turn(std::chrono::nanoseconds turn, Audience audience = Audience::listeners) noexcept
        : turn_(turn), audience_(audience), gaps_(turn)
    {
    }

    /// A request was answered: notes how long that took. A single slow answer says little.
    void answered(std::chrono::nanoseconds roundTrip) noexcept
    {
        const auto known = roundTrip_ == roundTrip_.zero() ? roundTrip : roundTrip_;
        roundTrip_ = roundTrip < known ? roundTrip : known + std::min(roundTrip - known, known) / 16;
    }

    /// A hold of this client begins. @param sent when its request was sent
    void granted(TimePoint now, TimePoint sent) noexcept
    {
        gaps_.begin(sent, now, roundTrip_);
        if (asideUntil_ != TimePoint{}) {
            endAside(now);
            begin(now);
        } else if (began_ == TimePoint{} || (freeSince_ != TimePoint{} && now - freeSince_ > span() + 2 * roundTrip_)) {
            begin(now); // other clients had their chance: a release and an acquire alone take two round trips
        }
        freeSince_ = othersUntil_ = TimePoint{};
    }

    /// Another client holds the lock.
    void refused(TimePoint now) noexcept
    {
        refusedAt_ = audience_ == Audience::listeners ? now : TimePoint{};
        usedAt_ = now;
        began_ = TimePoint{};
        gaps_.nameTaken();
        const TimePoint others = othersUntil_;
        if (asideUntil_ != TimePoint{}) {
            endAside(now);
        }
        freeSince_ = TimePoint{};
        othersUntil_ = now < others ? others : TimePoint{};
    }

    /// A message on the channel told of a release. A client that listens gets the messages of its own releases too.
    void messageHeard(TimePoint now) noexcept
    {
        if (ownMessages_ > 0) {
            --ownMessages_;
        } else {
            usedAt_ = now;
            gaps_.nameTaken();
            if (now - turnHeardAt_ >= 2 * span()) { // a turn of short holds has many messages, but is over by then
                turnHeardAt_ = now;
                othersUntil_ = ++turnsHeard_ >= asideFor_ ? std::min(othersUntil_, now) : othersUntil_;
            }
            if (std::exchange(isInDoubt_, false)) { // this client had the lock again before it heard of that release
                inVain_ = 0;
                restsUntil_ = TimePoint{};
            }
        }
    }
    /// The client listens from now on: the messages of its earlier releases will not come.
    void listens() noexcept { ownMessages_ = 0; }

    /// A hold ends. @return whether it may be followed by the next one of this client at once.
    [[nodiscard]] bool mayFollow(TimePoint now) noexcept
    {
        noteEnd(now);
        return !gaps_.isDue(now) && (!isOver(now) || sharers(now) == 0);
    }
    /// Whether the release then need not be published.
    [[nodiscard]] bool isQuiet(TimePoint now) const noexcept { return !isOver(now); }

    /// A hold ended, and this client's next request goes right behind a release that is not published.
    void releaseFollowed(TimePoint now) noexcept { gaps_.follow(now); }
    /// A hold ended, and its release is published. @param follows this client's next request goes right behind it
    /// @param listens this client gets the message too
    void releasePublished(TimePoint now, bool follows, bool listens, Random& random) noexcept
    {
        ownMessages_ += listens ? 1 : 0;
        const bool over = isOver(now);
        freeSince_ = turnHeardAt_ = now;
        wasOver_ = over && !follows;
        turnsHeard_ = 0;
        usedAt_ = TimePoint{};
        isInDoubt_ = stoodAside_ = false;
        if (over) {
            noteEnd(now);
            began_ = TimePoint{};
        }
        standAside(now);
        follows ? gaps_.follow(now) : gaps_.end(now, roundTrip_, now < asideUntil_, random);
    }
    /// The server said how many others heard of that release. @return whether the client stands aside for less time
    /// than before.
    bool othersListen(std::int64_t count, TimePoint now) noexcept
    {
        others_ = audience_ == Audience::listeners ? std::clamp<std::int64_t>(count, 0, most) : 0;
        if (!wasOver_ || freeSince_ == TimePoint{}) {
            return false; // the lock has been taken again since
        }
        noteListeners();
        const TimePoint before = asideUntil_;
        standAside(now);
        return asideUntil_ < before;
    }

    /// That release found nothing to end: it was not published, and no other client uses the time. @param listens as in
    /// releasePublished() @return whether the client has stopped standing aside.
    bool toldNobody(bool listens) noexcept
    {
        ownMessages_ -= listens && ownMessages_ > 0 ? 1 : 0;
        othersUntil_ = TimePoint{};
        return std::exchange(asideUntil_, TimePoint{}) != TimePoint{};
    }

    /// Until when none of this client's waiters asks; in the past, or 0: they may ask.
    [[nodiscard]] TimePoint asideUntil() const noexcept { return std::max(asideUntil_, gaps_.until()); }
    /// Until when it leaves the name free whatever it hears, and nobody of this client asks who would ask again.
    [[nodiscard]] TimePoint gapUntil() const noexcept { return gaps_.until(); }
    /// Until when no caller may join those who have the name: see Gaps.
    [[nodiscard]] TimePoint closedUntil(TimePoint now) const noexcept { return gaps_.closedUntil(now); }
    /// Whether it stands aside for those who listen, and not just for a gap.
    [[nodiscard]] bool isAside(TimePoint now) const noexcept { return now < asideUntil_; }
    /// Whether the message that just came ends the standing aside: the others had their time, and only the time to wake
    /// up is left.
    [[nodiscard]] bool endsWithMessage(TimePoint now) const noexcept { return now >= othersUntil_ - wakeUp; }
    /// Whether the client, which was refused while it stood aside, lets the others in before itself at the release of
    /// which a message just came.
    [[nodiscard]] bool defers(TimePoint now) const noexcept
    {
        // standing aside is over, and yet the others' time is known: only a refusal leaves that
        return asideUntil_ == TimePoint{} && !endsWithMessage(now);
    }
    /// Then it asks so much later: the others come first, but if none does, the lock is not left idle.
    [[nodiscard]] std::chrono::nanoseconds grace() const noexcept { return wakeUp + 2 * roundTrip_; }
    /// Whether others seem not to have used their time in the last aside: the message of a release may still come.
    [[nodiscard]] bool isInDoubt() const noexcept { return isInDoubt_; }
    /// A waiter sleeps until the client has stood aside.
    void standsAside() noexcept { stoodAside_ = true; }

    /// How long a request takes; 0: not known.
    [[nodiscard]] std::chrono::nanoseconds roundTrip() const noexcept { return roundTrip_; }
    /// How long a turn is: as configured, but long enough for one to follow.
    [[nodiscard]] std::chrono::nanoseconds span() const noexcept { return std::max(turn_, 2 * roundTrip_); }

private:
    [[nodiscard]] bool isOver(TimePoint now) const noexcept { return began_ == TimePoint{} || now - began_ >= span(); }
    [[nodiscard]] std::int64_t listeners(TimePoint now) const noexcept
    {
        const bool refusedLately = refusedAt_ != TimePoint{} && now - refusedAt_ < lately;
        return std::max<std::int64_t>(others_, refusedLately ? 1 : 0);
    }
    /// For how many others the client stands aside: after an aside that was not used in full, for so many of them less,
    /// but for those that used it.
    [[nodiscard]] std::int64_t sharers(TimePoint now) const noexcept
    {
        const std::int64_t all = listeners(now);
        return now >= restsUntil_ ? all : std::max(all - std::min(silent_, mostSilent()), std::min(all, users_));
    }
    /// How many listeners may be silent: not those that come and go, since they do ask, and not all of the others if
    /// any of them used its time.
    [[nodiscard]] std::int64_t mostSilent() const noexcept
    {
        return std::max<std::int64_t>(0, std::min(fewest_, fewestBefore_) - (users_ > 0 ? 1 : 0));
    }
    void noteListeners() noexcept
    {
        fewest_ = std::min(fewest_, others_);
        if (++counted_ == remembered) {
            counted_ = 0;
            fewestBefore_ = std::exchange(fewest_, others_);
        }
    }

    void begin(TimePoint now) noexcept
    {
        began_ = now;
        lasted_ = lasted_.zero();
        wasOver_ = false;
    }

    /// Notes how long the turn took until it was over, though the client may go on while it does not stand aside.
    void noteEnd(TimePoint now) noexcept
    {
        if (began_ == TimePoint{}) {
            lasted_ = span();
        } else if (isOver(now) && lasted_ == lasted_.zero()) {
            lasted_ = now - began_;
        }
    }

    void standAside(TimePoint now) noexcept
    {
        asideUntil_ = othersUntil_ = TimePoint{};
        asideFor_ = wasOver_ ? sharers(now) : 0;
        if (asideFor_ > 0) {
            // The others' turns may take as long as this client's turn did, which was at least one hold. Before each of
            // them a message and a request are under way, and behind it an answer and a release.
            const auto underWay = std::max<std::chrono::nanoseconds>(asideFor_ * 2 * roundTrip_, wakeUp);
            othersUntil_ = freeSince_ + asideFor_ * turnOfOthers() + underWay;
            asideUntil_ = freeSince_ + std::max(asideFor_ * span(), beforeAsking()) + underWay;
            asideUntil_ = std::min(asideUntil_, othersUntil_);
            isShort_ = asideFor_ < listeners(now);
        }
    }

    /// How long another's turn may take; not 0.
    [[nodiscard]] std::chrono::nanoseconds turnOfOthers() const noexcept
    {
        return std::max({lasted_, span(), std::chrono::nanoseconds(1)});
    }

    /// The longest time in which the client does not ask: it ends in the middle of another's turn if that is as long as
    /// its own, since a client that asks just when the lock becomes free would be let in before its time.
    [[nodiscard]] std::chrono::nanoseconds beforeAsking() const noexcept
    {
        if (lasted_ == lasted_.zero() || lasted_ > 2 * longest) {
            return longest;
        }
        return lasted_ / 2 + (longest - lasted_ / 2) / lasted_ * lasted_;
    }

    void endAside(TimePoint now) noexcept
    {
        const auto took = asideUntil_ - freeSince_;
        asideUntil_ = othersUntil_ = TimePoint{};
        if (isShort_) {
            return; // says little: others may stand aside for longer
        }
        const std::int64_t unused = unusedTurns(now);
        if (unused == 0) {
            inVain_ = ++usedInRow_ < enoughUses ? inVain_ : 0;
        } else if (stoodAside_) {
            usedInRow_ = 0;
            isInDoubt_ = true;
            const std::int64_t before = std::exchange(users_, asideFor_ - unused);
            inVain_ = users_ == before ? inVain_ : 0; // who was late once is not left out for long
            silent_ = listeners(now) - users_;
            restsUntil_ = now + took * rests[inVain_];
            inVain_ = std::min(inVain_ + 1, std::size(rests) - 1);
        }
    }
    /// For how many others the client stood aside in vain: nobody had the lock since the last message came.
    [[nodiscard]] std::int64_t unusedTurns(TimePoint now) const noexcept
    {
        if (usedAt_ == TimePoint{}) {
            return asideFor_;
        }
        const auto free = now - usedAt_ - roundTrip_;
        const std::int64_t turns = (free + turnOfOthers() / 2) / turnOfOthers(); // they are seldom exactly as long
        return std::clamp<std::int64_t>(turns, 0, asideFor_ - 1);
    }

    std::chrono::nanoseconds turn_;
    Audience audience_;
    Gaps gaps_;
    std::chrono::nanoseconds roundTrip_{0};
    TimePoint began_{};     ///< when the turn began; 0: there is none
    TimePoint freeSince_{}; ///< when the last published release was, until the next hold; otherwise 0
    TimePoint asideUntil_{};
    TimePoint othersUntil_{}; ///< until when the others' turns last after that release, if all of them take one; else 0
    TimePoint restsUntil_{};  ///< until when the client does not stand aside for silent listeners
    TimePoint refusedAt_{};
    std::chrono::nanoseconds lasted_{0}; ///< how long the turn was at the first end of a hold after its time; else 0
    std::int64_t others_ = 0;            ///< how many listened to the last published release
    std::int64_t turnsHeard_ = 0;        ///< turns of others since that release that ended with a message
    TimePoint turnHeardAt_{};            ///< when the last of them ended; without one, that release
    TimePoint usedAt_{};                 ///< when another client was last known to have had the lock since then; else 0
    std::uint32_t ownMessages_ = 0;      ///< messages of own releases that are yet to come
    bool wasOver_ = false;               ///< that release ended the turn, and nobody of this client followed
    std::int64_t asideFor_ = 0;          ///< for how many others the client stands aside
    bool isShort_ = false;               ///< there are more
    bool stoodAside_ = false;            ///< a waiter slept because of it
    bool isInDoubt_ = false;             ///< see isInDoubt()
    std::int64_t users_ = 0;             ///< how many others used the last aside that was for all
    std::int64_t silent_ = 0;            ///< how many listeners did not
    std::int64_t fewest_ = most;         ///< how many listened at least at the ends of the last `counted_` turns
    std::int64_t fewestBefore_ = most;   ///< the same for the `remembered` turns before them
    int counted_ = 0;
    std::size_t inVain_ = 0; ///< how many times in a row as many did not, at most the last of `rests`
    int usedInRow_ = 0;      ///< how many asides for all were used in full since then
};

} // namespace redislock::detail
