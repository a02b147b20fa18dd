/// @file
/// Acquiring a lock, step by step.
#pragma once

#include "core/machine/lock_answer.hpp"
#include "link/request/backoff.hpp"
#include "link/request/event.hpp"
#include "redislock/clock.hpp"
#include "redislock/error.hpp"
#include "redislock/lease_time.hpp"
#include "redislock/random.hpp"
#include "wire/assert.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <system_error>
#include <utility>
#include <variant>

namespace redislock::detail {

/// How an acquire ended.
struct AcquireResult {
    enum class Kind : std::uint8_t { granted, contended, lost, failed };
    Kind kind = Kind::failed;
    Reason error{};          ///< for failed
    TimePoint sentAt{};      ///< for granted: when the request that won was sent
    TimePoint validUntil{};  ///< for granted
    std::uint64_t token = 0; ///< for granted, by a fenced lock
    bool isGiven = false;    ///< for granted: by another's release, for less than the lease, which is yet to be sent
    bool mayBeHeld = false;  ///< not granted, but Redis may have granted it: it must be released
    bool pushMissed = false; ///< granted by the periodic check
    std::uint32_t attempts = 0;
};

/// The protocol of one acquire: try; subscribe; try again; sleep until a message comes, the holder's time is over or
/// the poll is due. Pure: no I/O, no clock, no random numbers of its own.
class AcquireMachine {
public:
    struct Settings {
        std::chrono::milliseconds lease{}; ///< sent to Redis
        Wait wait = waitForever;
        TimePoint holdDeadline = TimePoint::max(); ///< nested: the enclosing hold's, which ends the wait too
        std::optional<TimePoint> silentSince{};    ///< no answer to others since then; if not given: the start
        bool contended = false; ///< another is known to hold the lock, or to have held it a moment ago
        bool byPolicy = false;  ///< asks again when a policy says so; otherwise at a message, else after pollInterval
        std::chrono::milliseconds pollInterval{1000};
        std::chrono::milliseconds commandTimeout{3000};
        std::chrono::milliseconds unreachableAfter{10000};
    };
    using Event = std::variant<Start, Replied<LockAnswer>, Failed, Notified, GrantHeard, TimerFired, Pause, Cancelled>;
    using Action = std::variant<Send, Subscribe, AskPolicy, SleepUntil, Done<AcquireResult>>;

    enum class State : std::uint8_t {
        idle,       ///< not started
        asking,     ///< a request is under way
        choosing,   ///< others hold the lock; the policy is being asked for a pause
        waiting,    ///< others hold the lock; asleep
        backingOff, ///< the server refuses for now; asleep
        done,
    };

    explicit AcquireMachine(const Settings& settings) noexcept : settings_(settings) {}

    Action resume(const Event& event, Random& random);

    [[nodiscard]] State state() const noexcept { return state_; }
    /// How many requests it has asked for.
    [[nodiscard]] std::uint32_t attempts() const noexcept { return attempts_; }
    /// Whether Redis may have granted a request before the one under way, or before the sleep.
    [[nodiscard]] bool mayBeHeld() const noexcept { return tries_.mayBeDone; }
    /// When the server last answered; the start (or silentSince) if it has not.
    [[nodiscard]] TimePoint lastAnswer() const noexcept { return lastAnswer_; }

private:
    Action started(TimePoint now);
    Action replied(const Replied<LockAnswer>& event);
    Action busy(TimePoint now, const LockAnswer& answer);
    Action paused(const Pause& event);
    Action grantHeard(const GrantHeard& event);
    Action failed(const Failed& event, Random& random);
    Action refused(const Failed& event, Random& random);
    Action woken(TimePoint now, bool byTimer);
    Action ask();
    Action done(AcquireResult result);
    Action fail(Reason error) { return done({.kind = AcquireResult::Kind::failed, .error = error}); }

    [[nodiscard]] TimePoint answerDeadline() const noexcept;
    [[nodiscard]] TimePoint patienceEnd() const noexcept;
    [[nodiscard]] TimePoint refusalEnd() const noexcept;

    static constexpr std::uint32_t mostLateGrants = 10; ///< a lease shorter than the way to the server cannot be held

    Settings settings_;
    State state_ = State::idle;
    TimePoint start_{};       ///< moved by the times in which this process stood still
    TimePoint deadline_{};    ///< end of the wait
    TimePoint lastAnswer_{};  ///< or the start; moved likewise
    TimePoint silentSince_{}; ///< since then the server has been asked, without an answer; moved likewise
    std::optional<TimePoint> refusedSince_;
    Tries tries_;
    std::uint32_t attempts_ = 0;
    std::uint32_t refusals_ = 0;    ///< how often the lock was held by others; for the policy
    bool contended_ = false;        ///< Redis said at least once that another holds the lock
    bool refusedToConnect_ = false; ///< at least once, no connection could be made
    std::uint32_t lateGrants_ = 0;
    bool subscribed_ = false;
    bool polled_ = false;     ///< the attempt under way was started by the poll alone
    bool pollIsNext_ = false; ///< the sleep ends with the poll, not with the holder's time
};

inline AcquireMachine::Action AcquireMachine::resume(const Event& event, Random& random)
{
    [[maybe_unused]] const bool isAsleep = state_ == State::waiting || state_ == State::backingOff;
    if (const auto* e = std::get_if<Start>(&event)) {
        REDISLOCK_ASSERT(state_ == State::idle);
        return started(e->now);
    }
    if (const auto* e = std::get_if<Replied<LockAnswer>>(&event)) {
        REDISLOCK_ASSERT(state_ == State::asking);
        return replied(*e);
    }
    if (const auto* e = std::get_if<Failed>(&event)) {
        REDISLOCK_ASSERT(state_ == State::asking);
        return failed(*e, random);
    }
    if (const auto* e = std::get_if<Pause>(&event)) {
        REDISLOCK_ASSERT(state_ == State::choosing);
        return paused(*e);
    }
    if (const auto* e = std::get_if<Notified>(&event)) {
        REDISLOCK_ASSERT(isAsleep);
        return woken(e->now, false);
    }
    if (const auto* e = std::get_if<GrantHeard>(&event)) {
        REDISLOCK_ASSERT(isAsleep);
        return grantHeard(*e);
    }
    if (const auto* e = std::get_if<TimerFired>(&event)) {
        REDISLOCK_ASSERT(isAsleep);
        return woken(e->now, true);
    }
    REDISLOCK_ASSERT(state_ != State::idle && state_ != State::done);
    tries_.mayBeDone = tries_.mayBeDone || state_ == State::asking;
    return fail(std::get<Cancelled>(event).reason);
}

inline AcquireMachine::Action AcquireMachine::started(TimePoint now)
{
    start_ = now;
    lastAnswer_ = settings_.silentSince.value_or(now);
    contended_ = settings_.contended;
    deadline_ = std::min(saturatingAdd(now, settings_.wait.span()), settings_.holdDeadline);
    return ask();
}

inline AcquireMachine::Action AcquireMachine::replied(const Replied<LockAnswer>& event)
{
    lastAnswer_ = event.now;
    refusedSince_.reset();
    tries_.answered();
    if (event.answer.kind == LockAnswer::Kind::gone) {
        return done({.kind = AcquireResult::Kind::lost});
    }
    if (event.answer.kind == LockAnswer::Kind::busy) {
        return busy(event.now, event.answer);
    }
    const TimePoint validUntil = deadlineOf(event.sentAt, settings_.lease);
    if (event.now < validUntil) {
        return done({.kind = AcquireResult::Kind::granted,
                     .sentAt = event.sentAt,
                     .validUntil = validUntil,
                     .token = event.answer.token,
                     .pushMissed = polled_});
    }
    tries_.mayBeDone = true; // the grant came when its lease was over already
    return event.now < deadline_ && ++lateGrants_ < mostLateGrants ? ask() : fail(Cause::answeredTooLate);
}

inline AcquireMachine::Action AcquireMachine::busy(TimePoint now, const LockAnswer& answer)
{
    contended_ = true;
    if (now >= deadline_) {
        return done({.kind = AcquireResult::Kind::contended});
    }
    if (settings_.byPolicy) {
        state_ = State::choosing;
        return AskPolicy{++refusals_};
    }
    const TimePoint poll = saturatingAdd(now, settings_.pollInterval);
    // one millisecond more: Redis keeps a key to the end of its last millisecond
    const TimePoint free =
        answer.timeToLive ? saturatingAdd(now, *answer.timeToLive + std::chrono::milliseconds(1)) : TimePoint::max();
    pollIsNext_ = poll < free && subscribed_;
    const TimePoint until = std::min({poll, free, deadline_});
    state_ = State::waiting;
    if (!subscribed_) {
        subscribed_ = true;
        return Subscribe{until};
    }
    return SleepUntil{until};
}

/// Sleeps for as long as the policy says.
inline AcquireMachine::Action AcquireMachine::paused(const Pause& event)
{
    if (!event.span || event.now >= deadline_) {
        return done({.kind = AcquireResult::Kind::contended});
    }
    state_ = State::waiting;
    return SleepUntil{std::min(saturatingAdd(event.now, *event.span), deadline_)};
}

/// Believes the grant if at least half of it is left, counted from before the grant was made. Otherwise it asks: the
/// answer says whether it has the lock, and then for the whole lease.
inline AcquireMachine::Action AcquireMachine::grantHeard(const GrantHeard& event)
{
    const TimePoint validUntil = deadlineOf(event.sentAt, event.lasts);
    if (state_ != State::waiting || saturatingAdd(event.now, event.lasts / 2) > validUntil) {
        return woken(event.now, false);
    }
    return done(
        {.kind = AcquireResult::Kind::granted, .sentAt = event.sentAt, .validUntil = validUntil, .isGiven = true});
}

inline AcquireMachine::Action AcquireMachine::failed(const Failed& event, Random& random)
{
    if (event.fault.failure == Failure::refused || event.fault.failure == Failure::demoted ||
        event.fault.failure == Failure::moved) {
        return refused(event, random);
    }
    tries_.failed(event);
    if (event.fault.failure == Failure::fatal) {
        return fail(event.fault.error);
    }
    start_ = saturatingAdd(start_, event.stood);
    lastAnswer_ = saturatingAdd(lastAnswer_, event.stood);
    silentSince_ = saturatingAdd(silentSince_, event.stood);
    refusedToConnect_ = refusedToConnect_ || event.fault.failure == Failure::notConnected;
    const bool firstTryRefused = settings_.wait.isOneAttempt() && event.fault.failure == Failure::notConnected;
    if (!firstTryRefused && event.now < patienceEnd()) {
        return ask();
    }
    if (tries_.demoted && event.fault.error == Errc::unreachable) {
        return fail(tries_.refusal); // no server was found that would not refuse
    }
    // a wait that ends while an answer is due ends as the last answer said, if the server was there a moment ago
    const bool wasThere = event.now < saturatingAdd(std::max(lastAnswer_, silentSince_), settings_.commandTimeout);
    if (wasThere && refusedSince_) {
        return fail(tries_.refusal);
    }
    if (wasThere && contended_ && event.now >= deadline_) {
        return done({.kind = AcquireResult::Kind::contended});
    }
    return fail(event.fault.error);
}

inline AcquireMachine::Action AcquireMachine::refused(const Failed& event, Random& random)
{
    lastAnswer_ = event.now;
    refusedSince_ = refusedSince_.value_or(event.now);
    if (!tries_.failed(event) && event.now < patienceEnd()) {
        return ask();
    }
    // a script that was killed half-way is refused too
    tries_.mayBeDone = tries_.mayBeDone || !isBeforeExecution(event.fault);
    if (event.now >= refusalEnd()) {
        return fail(tries_.refusal);
    }
    state_ = State::backingOff;
    return SleepUntil{std::min(refusalEnd(), event.now + tries_.pause(random))};
}

inline AcquireMachine::Action AcquireMachine::woken(TimePoint now, bool byTimer)
{
    if (state_ == State::waiting && byTimer && now >= deadline_) {
        return done({.kind = AcquireResult::Kind::contended});
    }
    if (state_ == State::backingOff && now >= refusalEnd()) {
        return fail(tries_.refusal);
    }
    if (now - lastAnswer_ > settings_.unreachableAfter / 2) {
        lastAnswer_ = now; // a long time without a question is no silence of the server
    }
    silentSince_ = now;
    polled_ = byTimer && pollIsNext_;
    return ask();
}

inline AcquireMachine::Action AcquireMachine::ask()
{
    state_ = State::asking;
    ++attempts_;
    return Send{answerDeadline()};
}

inline AcquireMachine::Action AcquireMachine::done(AcquireResult result)
{
    state_ = State::done;
    result.mayBeHeld = tries_.mayBeDone && result.kind != AcquireResult::Kind::granted;
    result.attempts = attempts_;
    return Done<AcquireResult>{result};
}

/// Until when to wait for the answer to the request under way. A single attempt gets the time of a command, unless it
/// is known that no server listens.
inline TimePoint AcquireMachine::answerDeadline() const noexcept
{
    const bool once = settings_.wait.isOneAttempt() && !contended_ && !refusedToConnect_;
    const TimePoint end = once ? saturatingAdd(start_, settings_.commandTimeout) : deadline_;
    return std::min({end, saturatingAdd(lastAnswer_, settings_.unreachableAfter), settings_.holdDeadline});
}

/// Until when to go on after refusals.
inline TimePoint AcquireMachine::refusalEnd() const noexcept
{
    return std::min(deadline_, saturatingAdd(refusedSince_.value_or(lastAnswer_), settings_.unreachableAfter));
}

/// Until when to repeat an attempt whose request failed.
inline TimePoint AcquireMachine::patienceEnd() const noexcept
{
    const TimePoint end = settings_.wait.isOneAttempt() ? saturatingAdd(start_, settings_.commandTimeout) : deadline_;
    return std::min({end, saturatingAdd(lastAnswer_, settings_.unreachableAfter), settings_.holdDeadline});
}

/// The answer that another holds the lock; null for any other event.
inline const LockAnswer* busyAnswer(const AcquireMachine::Event& event)
{
    const auto* replied = std::get_if<Replied<LockAnswer>>(&event);
    return replied != nullptr && replied->answer.kind == LockAnswer::Kind::busy ? &replied->answer : nullptr;
}

} // namespace redislock::detail
