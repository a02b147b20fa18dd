/// @file
/// Ending a hold, step by step.
#pragma once

#include "link/request/backoff.hpp"
#include "link/request/event.hpp"
#include "redislock/clock.hpp"
#include "redislock/random.hpp"
#include "redislock/unlocked.hpp"
#include "wire/assert.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

namespace redislock::detail {

/// What Redis answered to a release.
struct UnlockAnswer {
    enum class Kind : std::uint8_t { freed, stillHeld, absent };
    Kind kind = Kind::absent;

    /// The answer of an unlock script: nil; 1 and more, of the outermost level; 0, of a nested one.
    static std::optional<UnlockAnswer> from(const Reply& reply, Level level) noexcept
    {
        if (reply.kind == Reply::Kind::nil) {
            return UnlockAnswer{Kind::absent};
        }
        const bool possible = level == Level::nested ? reply.integer == 0 : reply.integer >= 1;
        if (reply.kind != Reply::Kind::integer || !possible) {
            return std::nullopt;
        }
        return UnlockAnswer{level == Level::nested ? Kind::stillHeld : Kind::freed};
    }
};

/// The protocol of one release: repeated, always to the same state, until answered or until the lease is over. Pure: no
/// I/O, no clock, no random numbers of its own.
class ReleaseMachine {
public:
    struct Settings {
        TimePoint validUntil{};  ///< end of the hold; Redis frees the lock by itself soon after
        TimePoint giveUpAfter{}; ///< no tries after this, even if the lease lasts longer
        Level level = Level::outermost;
        Asker asker = Asker::caller;
    };
    using Event = std::variant<Start, Replied<UnlockAnswer>, Failed, TimerFired, Cancelled>;
    using Action = std::variant<Send, SleepUntil, Done<Unlocked>>;

    enum class State : std::uint8_t {
        idle,       ///< not started
        asking,     ///< a request is under way
        backingOff, ///< the server refuses for now; asleep
        done,
    };

    ReleaseMachine() = default;
    explicit ReleaseMachine(const Settings& settings) noexcept : settings_(settings)
    {
        tries_.end = settings.giveUpAfter;
    }
    /// Of a release that nobody waits for.
    static ReleaseMachine unawaited(TimePoint validUntil) noexcept
    {
        return ReleaseMachine({.validUntil = validUntil, .giveUpAfter = TimePoint::max(), .asker = Asker::background});
    }

    Action resume(const Event& event, Random& random);

    /// The caller stops waiting: the release can be started again, and goes on until the lease is over.
    void goOnInBackground() noexcept
    {
        tries_.end = TimePoint::max();
        settings_.asker = Asker::background;
        tries_.backoff.reset();
        state_ = State::idle;
    }

    [[nodiscard]] State state() const noexcept { return state_; }

private:
    Action replied(const Replied<UnlockAnswer>& event);
    Action failed(const Failed& event, Random& random);
    Action ask();
    Action done(Unlocked how);

    [[nodiscard]] TimePoint end() const noexcept { return std::min(settings_.validUntil, tries_.end); }

    Settings settings_;
    Tries tries_;
    State state_ = State::idle;
};

inline ReleaseMachine::Action ReleaseMachine::resume(const Event& event, Random& random)
{
    if (const auto* e = std::get_if<Replied<UnlockAnswer>>(&event)) {
        REDISLOCK_ASSERT(state_ == State::asking);
        return replied(*e);
    }
    if (const auto* e = std::get_if<Failed>(&event)) {
        REDISLOCK_ASSERT(state_ == State::asking);
        return failed(*e, random);
    }
    if (const auto* e = std::get_if<TimerFired>(&event)) {
        REDISLOCK_ASSERT(state_ == State::backingOff);
        return e->now < end() ? ask() : done(Unlocked::unconfirmed);
    }
    if (std::holds_alternative<Start>(event)) {
        REDISLOCK_ASSERT(state_ == State::idle);
        return ask();
    }
    REDISLOCK_ASSERT(state_ != State::done);
    return done(Unlocked::unconfirmed);
}

inline ReleaseMachine::Action ReleaseMachine::replied(const Replied<UnlockAnswer>& event)
{
    switch (event.answer.kind) {
    case UnlockAnswer::Kind::freed:
        return done(Unlocked::released);
    case UnlockAnswer::Kind::stillHeld:
        return done(Unlocked::stillHeld);
    case UnlockAnswer::Kind::absent:
        break;
    }
    // An earlier try of this release did it, unless the lease ran out first. A nested release removes no field.
    const bool ours = tries_.mayBeDone && settings_.level == Level::outermost && event.now < settings_.validUntil;
    return done(ours ? Unlocked::released : Unlocked::alreadyLost);
}

inline ReleaseMachine::Action ReleaseMachine::failed(const Failed& event, Random& random)
{
    if (event.fault.error == Errc::wrongType) {
        return done(Unlocked::alreadyLost); // another key took the name: our lock is gone
    }
    const bool pauses = tries_.failed(event);
    if (isFinal(event.fault, settings_.asker) || event.now >= end()) {
        return done(Unlocked::unconfirmed);
    }
    if (!pauses) {
        return ask();
    }
    state_ = State::backingOff;
    return SleepUntil{std::min(end(), event.now + tries_.pause(random))};
}

inline ReleaseMachine::Action ReleaseMachine::ask()
{
    state_ = State::asking;
    return Send{end()};
}

inline ReleaseMachine::Action ReleaseMachine::done(Unlocked how)
{
    state_ = State::done;
    return Done<Unlocked>{how};
}

} // namespace redislock::detail
