/// @file
/// A single question to Redis, step by step.
#pragma once

#include "link/request/backoff.hpp"
#include "link/request/event.hpp"
#include "redislock/clock.hpp"
#include "redislock/random.hpp"
#include "wire/assert.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

namespace redislock::detail {

/// Any answer that is no error; its value stays with the driver.
struct Answered {
    static std::optional<Answered> from(const Reply& /*reply*/) noexcept { return Answered{}; }
};

/// The protocol of a question that may be asked again: repeated until answered, or until no answer has come for too
/// long. Pure: no I/O, no clock, no random numbers of its own.
class QueryMachine {
public:
    using Event = std::variant<Start, Replied<Answered>, Failed, TimerFired, Cancelled>;
    using Action = std::variant<Send, SleepUntil, Done<std::optional<Reason>>>;

    enum class State : std::uint8_t {
        idle,       ///< not started
        asking,     ///< the request is under way
        backingOff, ///< the server refuses for now; asleep
        done,
    };

    /// @param patience how long to go on without an answer. @param limit when to end in any case.
    explicit QueryMachine(std::chrono::milliseconds patience, TimePoint limit = TimePoint::max(),
                          Asker asker = Asker::caller) noexcept
        : patience_(patience), limit_(limit), asker_(asker)
    {
    }

    Action resume(const Event& event, Random& random)
    {
        if (const auto* e = std::get_if<Start>(&event)) {
            REDISLOCK_ASSERT(state_ == State::idle);
            end_ = std::min(limit_, saturatingAdd(e->now, patience_));
            return e->now < limit_ ? ask() : done(Errc::unreachable);
        }
        if (const auto* e = std::get_if<Failed>(&event)) {
            REDISLOCK_ASSERT(state_ == State::asking);
            return failed(*e, random);
        }
        if (const auto* e = std::get_if<Cancelled>(&event)) {
            REDISLOCK_ASSERT(state_ != State::done);
            return done(e->reason);
        }
        if (const auto* e = std::get_if<TimerFired>(&event)) {
            REDISLOCK_ASSERT(state_ == State::backingOff);
            return e->now < end_ ? ask() : done(refusal_); // nobody would wait for the answer
        }
        REDISLOCK_ASSERT(state_ == State::asking);
        return done(std::nullopt);
    }

    /// Whether an earlier try may have been executed too.
    [[nodiscard]] bool repeated() const noexcept { return unknown_; }
    [[nodiscard]] State state() const noexcept { return state_; }

private:
    Action failed(const Failed& event, Random& random)
    {
        unknown_ = unknown_ || mayBeExecuted(event.fault);
        end_ = std::min(limit_, saturatingAdd(end_, event.stood));
        const bool wasDemoted = demoted_ && event.fault.error == Errc::unreachable;
        const bool isCutShort = std::exchange(refused_, false) && event.fault.failure == Failure::lostReply;
        if (isFinal(event.fault, asker_) || event.now >= end_) {
            return done(wasDemoted || isCutShort ? refusal_ : event.fault.error);
        }
        if (event.fault.failure == Failure::demoted && !std::exchange(demoted_, true)) {
            refusal_ = event.fault.error;
            return ask(); // over the next connection, perhaps to the new master
        }
        if (event.fault.failure == Failure::refused || event.fault.failure == Failure::demoted ||
            event.fault.failure == Failure::fatal) {
            state_ = State::backingOff;
            refused_ = true;
            refusal_ = event.fault.error;
            return SleepUntil{std::min(end_, event.now + backoff_.next(random))};
        }
        return ask();
    }

    Action ask()
    {
        state_ = State::asking;
        return Send{end_};
    }

    Action done(std::optional<Reason> error)
    {
        state_ = State::done;
        return Done<std::optional<Reason>>{error};
    }

    std::chrono::milliseconds patience_;
    TimePoint limit_;
    Asker asker_;
    TimePoint end_{};
    Backoff backoff_;
    State state_ = State::idle;
    Reason refusal_;       ///< the last refusal
    bool refused_ = false; ///< the last try was answered so
    bool demoted_ = false; ///< a replica answered
    bool unknown_ = false;
};

} // namespace redislock::detail
