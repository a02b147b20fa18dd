/// @file
/// Acquiring several locks as one, step by step.
#pragma once

#include "link/request/event.hpp"
#include "redislock/clock.hpp"
#include "redislock/error.hpp"
#include "redislock/lease_time.hpp"
#include "wire/assert.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

namespace redislock::detail {

/// Until when at least @p needed of the members are valid: the needed-th latest of their deadlines; long ago if there
/// are fewer members. @param deadlines are put into another order.
inline TimePoint validityOf(std::span<TimePoint> deadlines, std::size_t needed) noexcept
{
    if (needed == 0 || deadlines.size() < needed) {
        return {};
    }
    const auto nth = deadlines.begin() + static_cast<std::ptrdiff_t>(needed - 1);
    std::ranges::nth_element(deadlines, nth, std::greater());
    return *nth;
}

inline TimePoint validityOf(std::vector<TimePoint> deadlines, std::size_t needed)
{
    return validityOf(std::span(deadlines), needed);
}

/// How long one of several servers may take to answer: far less than the lease, so that a slow server uses up little of
/// it.
constexpr std::chrono::milliseconds memberTimeoutOf(std::chrono::milliseconds lease,
                                                    std::chrono::milliseconds commandTimeout) noexcept
{
    return std::min(commandTimeout, std::max(lease / 20, std::chrono::milliseconds(50)));
}

/// What one member answered to an attempt.
struct MemberAnswer {
    enum class Kind : std::uint8_t { granted, busy, failed };
    Kind kind = Kind::busy;
    TimePoint validUntil{}; ///< for granted; drift is taken off already
    Reason error{};         ///< for failed; the member itself gives back what may have been granted all the same
};

/// A member's answer in a round.
struct MemberAnswered {
    TimePoint now;
    std::uint32_t round;
    std::size_t member;
    MemberAnswer answer;
};

/// Try all members at once; report the answers that come until @p until.
struct AskMembers {
    std::uint32_t round;
    TimePoint until;
};

/// Give back all open members, then try only this one, and wait for its holder.
struct AwaitMember {
    std::uint32_t round;
    std::size_t member;
    TimePoint until;
};

/// The member that was waited for was granted: try all others at once, each with that wait for its holder; report the
/// answers that come until @p until.
struct AskOthers {
    std::uint32_t round;
    std::size_t member;
    Wait wait;
    TimePoint until;
};

/// Go on waiting for answers.
struct AwaitMembers {
    TimePoint until;
};

/// Give back all open members, then ask the policy how long to pause after this round, as for AskPolicy.
struct Retreat {
    std::uint32_t attempt; ///< the round
};

/// How the acquire of a group ended.
struct GroupResult {
    enum class Kind : std::uint8_t { granted, contended, failed };
    Kind kind = Kind::failed;
    Reason error{};         ///< for failed
    TimePoint validUntil{}; ///< for granted
    std::uint32_t rounds = 0;
};

/// The protocol of acquiring all, or enough, of several locks. It tries all at once, without waiting for any holder; if
/// too few are granted, or too late, it gives everything back. Then it waits for the first member that another held, as
/// any waiter of that lock does, and tries the others when that member is granted. If that is not enough either,
/// everything is given back again, and a random pause comes before the next wait, so that two callers that took each
/// other's members do not collide again. With a policy of the caller's there are only pauses, each followed by a try at
/// all members. A caller that waits without limit holds nothing: there is no deadlock, whatever the order. After some
/// rounds in vain it keeps what it has for a few ms while it waits for the rest: beside others that do so without limit
/// it would hardly ever meet all members free. Pure: no I/O, no clock, no random numbers of its own.
///
/// The wait for one member before the others are tried is what Howard E. Hinnant calls smart and polite in "Dining
/// Philosophers Rebooted".
class GroupMachine {
public:
    struct Settings {
        std::size_t members = 0;
        std::size_t needed = 0; ///< 1 … members
        Wait wait = waitForever;
        bool byPolicy = false;                         ///< tries when a policy says so, and waits for no member
        std::chrono::milliseconds memberTimeout{3000}; ///< after this a silent member counts as unreachable
        std::chrono::milliseconds unreachableAfter{10000};
        std::optional<TimePoint> began{}; ///< when the wait began, if not at the start
    };
    using Event = std::variant<Start, MemberAnswered, TimerFired, Pause, Cancelled>;
    using Action =
        std::variant<AskMembers, AwaitMember, AskOthers, AwaitMembers, Retreat, SleepUntil, Done<GroupResult>>;

    enum class State : std::uint8_t {
        idle,     ///< not started
        asking,   ///< a round is under way
        awaiting, ///< a round begins with the wait for one member, while nothing is held
        choosing, ///< between rounds, while nothing is held: the policy is being asked for a pause
        pausing,  ///< asleep between rounds, while nothing is held
        done,
    };

    explicit GroupMachine(const Settings& settings) : settings_(settings), answers_(settings.members) {}

    Action resume(const Event& event);

    [[nodiscard]] State state() const noexcept { return state_; }
    /// The members of the last round that were granted, or may still be. They must be given back when the round ends
    /// without a grant of the group.
    [[nodiscard]] std::vector<std::size_t> open() const;

    /// The longest pause: a shutdown, or a lock that becomes free, does not end a pause early.
    static constexpr std::chrono::milliseconds longestPause{1000};
    /// After so many rounds a group waits for several members at a time,
    static constexpr std::uint32_t politeRounds = 4;
    /// for so long.
    static constexpr std::chrono::milliseconds waitForOthers{2};

private:
    Action answered(const MemberAnswered& event);
    Action timerFired(TimePoint now);
    Action paused(const Pause& event);
    void beginRound(State state, TimePoint now);
    Action ask(TimePoint now);
    Action awaitMember(TimePoint now);
    Action memberCame(const MemberAnswered& event);
    Action judge(TimePoint now);
    Action failRound(TimePoint now);
    Action done(GroupResult result);
    Action giveUp();

    [[nodiscard]] std::size_t count(MemberAnswer::Kind kind) const;
    [[nodiscard]] std::size_t pending() const;
    [[nodiscard]] TimePoint validity() const;
    /// Whether enough members are left without this number of them.
    [[nodiscard]] bool enoughWithout(std::size_t lost) const { return settings_.members - lost >= settings_.needed; }

    Settings settings_;
    State state_ = State::idle;
    TimePoint deadline_{};   ///< end of the wait
    TimePoint enoughSeen_{}; ///< when as many members as are needed last answered; the start if they have not yet
    TimePoint roundBegan_{};
    TimePoint until_{}; ///< end of the round, or of the pause
    std::uint32_t round_ = 0;
    std::optional<std::size_t> held_;                  ///< the first member that was held by another in the last round
    bool awaited_ = false;                             ///< the round began with the wait for a member
    std::vector<std::optional<MemberAnswer>> answers_; ///< of this round; nothing: no answer yet
    std::optional<Reason> obstacle_; ///< why too few members answered in the last round; nothing: others held members
};

inline GroupMachine::Action GroupMachine::resume(const Event& event)
{
    if (const auto* e = std::get_if<Start>(&event)) {
        REDISLOCK_ASSERT(state_ == State::idle);
        enoughSeen_ = e->now;
        deadline_ = saturatingAdd(settings_.began.value_or(e->now), settings_.wait.span());
        return ask(e->now);
    }
    if (const auto* e = std::get_if<MemberAnswered>(&event)) {
        REDISLOCK_ASSERT(state_ != State::idle && e->member < settings_.members && e->round <= round_);
        return answered(*e);
    }
    if (const auto* e = std::get_if<TimerFired>(&event)) {
        REDISLOCK_ASSERT(state_ != State::idle);
        return timerFired(e->now);
    }
    if (const auto* e = std::get_if<Pause>(&event)) {
        REDISLOCK_ASSERT(state_ == State::choosing);
        return paused(*e);
    }
    REDISLOCK_ASSERT(state_ != State::done);
    return done({.kind = GroupResult::Kind::failed, .error = std::get<Cancelled>(event).reason});
}

inline GroupMachine::Action GroupMachine::answered(const MemberAnswered& event)
{
    const bool isUnderWay = state_ == State::asking || state_ == State::awaiting;
    if (!isUnderWay || event.round != round_ || answers_[event.member]) {
        return AwaitMembers{until_}; // the answer to an attempt that was given up already
    }
    answers_[event.member] = event.answer;
    return state_ == State::awaiting ? memberCame(event) : judge(event.now);
}

/// The member that was waited for was granted, or cannot be acquired.
inline GroupMachine::Action GroupMachine::memberCame(const MemberAnswered& event)
{
    state_ = State::asking;
    roundBegan_ = event.now;
    if (event.answer.kind != MemberAnswer::Kind::granted) {
        return failRound(event.now);
    }
    enoughSeen_ = event.now; // the time until now was spent waiting for a holder
    until_ = std::min(saturatingAdd(event.now, settings_.memberTimeout), deadline_);
    if (event.now < validity()) {
        return judge(event.now);
    }
    const Wait wait = round_ > politeRounds ? Wait(waitForOthers) : oneAttempt;
    return AskOthers{round_, event.member, wait, until_};
}

inline GroupMachine::Action GroupMachine::timerFired(TimePoint now)
{
    if (now < until_) {
        return AwaitMembers{until_};
    }
    if (state_ == State::asking) {
        return failRound(now);
    }
    return now >= deadline_ ? giveUp() : held_ && !settings_.byPolicy ? awaitMember(now) : ask(now);
}

inline void GroupMachine::beginRound(State state, TimePoint now)
{
    state_ = state;
    awaited_ = state == State::awaiting;
    ++round_;
    roundBegan_ = now;
    answers_.assign(settings_.members, std::nullopt);
}

inline GroupMachine::Action GroupMachine::ask(TimePoint now)
{
    beginRound(State::asking, now);
    until_ = saturatingAdd(now, settings_.memberTimeout);
    if (round_ > 1 || !settings_.wait.isOneAttempt()) {
        until_ = std::min(until_, deadline_);
    }
    return AskMembers{round_, until_};
}

inline GroupMachine::Action GroupMachine::awaitMember(TimePoint now)
{
    beginRound(State::awaiting, now);
    until_ = deadline_;
    return AwaitMember{round_, *held_, until_};
}

/// Ends the round as soon as its result is certain.
inline GroupMachine::Action GroupMachine::judge(TimePoint now)
{
    const TimePoint validUntil = validity();
    if (now < validUntil) {
        return done({.kind = GroupResult::Kind::granted, .validUntil = validUntil});
    }
    if (count(MemberAnswer::Kind::granted) + pending() < settings_.needed || pending() == 0) {
        return failRound(now);
    }
    return AwaitMembers{until_};
}

inline GroupMachine::Action GroupMachine::failRound(TimePoint now)
{
    const bool timedOut = now >= saturatingAdd(roundBegan_, settings_.memberTimeout);
    const bool firstCutShort = round_ == 1 && now >= until_;
    std::size_t lost = timedOut || firstCutShort ? pending() : 0; // out of reach in this round
    std::size_t hopeless = 0;                                     // and in any other
    std::optional<Reason> error = lost > 0 ? std::optional<Reason>(Cause::silent) : std::nullopt;
    std::optional<Reason> worst;
    for (const auto& answer : answers_) {
        if (answer && answer->kind == MemberAnswer::Kind::failed) {
            ++lost;
            error = error.value_or(answer->error);
            if (answer->error != Errc::unreachable && answer->error != Errc::serverRefused) {
                ++hopeless;
                worst = worst.value_or(answer->error);
            }
        }
    }
    if (!enoughWithout(hopeless)) {
        return done({.kind = GroupResult::Kind::failed, .error = *worst});
    }
    const bool late = count(MemberAnswer::Kind::granted) >= settings_.needed; // the way outlasts the lease
    const bool cutShort =
        now >= until_ && !timedOut && !firstCutShort; // by the end of the wait: the round before says more
    if (late) {
        obstacle_ = Cause::answeredTooLate;
    } else if (!enoughWithout(lost)) {
        obstacle_ = error;
    } else if (!cutShort) {
        obstacle_ = std::nullopt;
        enoughSeen_ = now;
    }
    if (now >= deadline_ || now >= saturatingAdd(enoughSeen_, settings_.unreachableAfter)) {
        return giveUp();
    }
    const auto isBusy = [](const auto& answer) { return answer && answer->kind == MemberAnswer::Kind::busy; };
    const auto busy = std::ranges::find_if(answers_, isBusy);
    held_ = busy == answers_.end() ? std::nullopt : std::optional(static_cast<std::size_t>(busy - answers_.begin()));
    if (held_ && !awaited_ && !settings_.byPolicy) {
        return awaitMember(now);
    }
    state_ = State::choosing;
    until_ = TimePoint::max();
    return Retreat{round_};
}

inline GroupMachine::Action GroupMachine::paused(const Pause& event)
{
    if (!event.span) {
        return giveUp();
    }
    state_ = State::pausing;
    until_ =
        std::min(saturatingAdd(event.now, std::min<std::chrono::nanoseconds>(*event.span, longestPause)), deadline_);
    return SleepUntil{until_};
}

/// The time of the wait, or for servers that do not answer, is over.
inline GroupMachine::Action GroupMachine::giveUp()
{
    return obstacle_ ? done({.kind = GroupResult::Kind::failed, .error = *obstacle_})
                     : done({.kind = GroupResult::Kind::contended});
}

inline GroupMachine::Action GroupMachine::done(GroupResult result)
{
    result.rounds = round_;
    state_ = State::done;
    return Done<GroupResult>{result};
}

inline std::vector<std::size_t> GroupMachine::open() const
{
    std::vector<std::size_t> members;
    for (std::size_t i = 0; round_ > 0 && i < answers_.size(); ++i) {
        if (!answers_[i] || answers_[i]->kind == MemberAnswer::Kind::granted) {
            members.push_back(i);
        }
    }
    return members;
}

inline std::size_t GroupMachine::count(MemberAnswer::Kind kind) const
{
    return static_cast<std::size_t>(
        std::ranges::count_if(answers_, [kind](const auto& answer) { return answer && answer->kind == kind; }));
}

inline std::size_t GroupMachine::pending() const
{
    return static_cast<std::size_t>(std::ranges::count_if(answers_, [](const auto& answer) { return !answer; }));
}

inline TimePoint GroupMachine::validity() const
{
    std::vector<TimePoint> deadlines;
    for (const auto& answer : answers_) {
        if (answer && answer->kind == MemberAnswer::Kind::granted) {
            deadlines.push_back(answer->validUntil);
        }
    }
    return validityOf(std::move(deadlines), settings_.needed);
}

} // namespace redislock::detail
