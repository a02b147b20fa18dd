/// @file
/// Keeping a lease alive, step by step.
#pragma once

#include "link/request/backoff.hpp"
#include "link/request/event.hpp"
#include "redislock/clock.hpp"
#include "redislock/random.hpp"
#include "wire/assert.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>

namespace redislock::detail {

/// What Redis answered to a renewal.
struct RenewAnswer {
    enum class Kind : std::uint8_t {
        renewed,
        gone,
        wrongType, ///< another key took the name: our lock is gone
    };
    Kind kind = Kind::gone;

    /// The answer of the renew scripts: a character for each of several renewals. @param count how many were asked for.
    /// @param which the renewal that is meant, from 0 on
    static std::optional<RenewAnswer> from(const Reply& reply, std::size_t count, std::size_t which) noexcept
    {
        if (reply.kind != Reply::Kind::text || reply.text.size() != count) {
            return std::nullopt;
        }
        switch (reply.text[which]) {
        case '1':
            return RenewAnswer{Kind::renewed};
        case '0':
            return RenewAnswer{Kind::gone};
        case 'w':
            return RenewAnswer{Kind::wrongType};
        default:
            return std::nullopt;
        }
    }
};

/// Why renewal ended.
enum class RenewalEnd : std::uint8_t {
    lost,      ///< Redis no longer has the hold
    cancelled, ///< the hold ended, or was lost by the clock
};

/// The watchdog's protocol for one hold: sleep for a third of the lease (± 5 %; less, if it is renewed together with
/// others), renew, repeat; try again after a failed renewal. It ends only when it learns that the hold is over: the
/// hold's deadline is judged elsewhere, by the clock alone. Pure: no I/O, no clock, no random numbers of its own.
class RenewMachine {
public:
    using Event = std::variant<Start, Replied<RenewAnswer>, Failed, TimerFired, Cancelled>;
    using Action = std::variant<Send, SleepUntil, Done<RenewalEnd>>;

    enum class State : std::uint8_t {
        idle,     ///< not started
        sleeping, ///< until the next renewal, or until the next try of one
        asking,   ///< a renewal is under way
        done,
    };

    Action resume(const Event& event, std::chrono::milliseconds lease, Random& random);

    [[nodiscard]] State state() const noexcept { return state_; }

private:
    Action sleepFrom(TimePoint from, std::chrono::milliseconds lease, Random& random);
    Action failed(const Failed& event, std::chrono::milliseconds lease, Random& random);
    Action ask();
    Action done(RenewalEnd end);

    Backoff backoff_;
    State state_ = State::idle;
};

inline RenewMachine::Action RenewMachine::resume(const Event& event, std::chrono::milliseconds lease, Random& random)
{
    if (const auto* e = std::get_if<Start>(&event)) {
        REDISLOCK_ASSERT(state_ == State::idle);
        return sleepFrom(e->now, lease, random);
    }
    REDISLOCK_ASSERT(state_ != State::done); // an answer may come when another renewal has begun meanwhile
    if (const auto* e = std::get_if<Replied<RenewAnswer>>(&event)) {
        return e->answer.kind == RenewAnswer::Kind::renewed ? sleepFrom(e->sentAt, lease, random)
                                                            : done(RenewalEnd::lost);
    }
    if (const auto* e = std::get_if<Failed>(&event)) {
        return failed(*e, lease, random);
    }
    return std::holds_alternative<TimerFired>(event) ? ask() : done(RenewalEnd::cancelled);
}

/// @param from when the request of the last grant or renewal was sent.
inline RenewMachine::Action RenewMachine::sleepFrom(TimePoint from, std::chrono::milliseconds lease, Random& random)
{
    state_ = State::sleeping;
    backoff_.reset();
    const auto third = std::chrono::duration_cast<std::chrono::nanoseconds>(lease) / 3;
    return SleepUntil{from + std::chrono::duration_cast<std::chrono::nanoseconds>(third * random.around(0.05))};
}

inline RenewMachine::Action RenewMachine::failed(const Failed& event, std::chrono::milliseconds lease, Random& random)
{
    if (event.fault.failure == Failure::lostReply || event.fault.failure == Failure::demoted) {
        return ask(); // on the next connection, as soon as there is one
    }
    if (event.fault.failure == Failure::moved && backoff_.isFresh()) {
        (void)backoff_.next(random);
        return ask(); // of the other node; again only after a pause
    }
    state_ = State::sleeping;
    const auto pause = std::min<std::chrono::nanoseconds>(backoff_.next(random), lease / 20);
    return SleepUntil{event.now + pause};
}

inline RenewMachine::Action RenewMachine::ask()
{
    state_ = State::asking;
    return Send{TimePoint::max()};
}

inline RenewMachine::Action RenewMachine::done(RenewalEnd end)
{
    state_ = State::done;
    return Done<RenewalEnd>{end};
}

} // namespace redislock::detail
