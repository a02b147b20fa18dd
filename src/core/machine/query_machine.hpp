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
            tries_.end = std::min(limit_, saturatingAdd(e->now, patience_));
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
            return e->now < tries_.end ? ask() : done(tries_.refusal); // nobody would wait for the answer
        }
        REDISLOCK_ASSERT(state_ == State::asking);
        return done(std::nullopt);
    }

    /// Whether an earlier try may have been executed too.
    [[nodiscard]] bool repeated() const noexcept { return tries_.mayBeDone; }
    [[nodiscard]] State state() const noexcept { return state_; }

private:
    Action failed(const Failed& event, Random& random)
    {
        const bool wasDemoted = tries_.demoted && event.fault.error == Errc::unreachable;
        const bool isCutShort = std::exchange(refused_, false) && event.fault.failure == Failure::lostReply;
        const Reason refusal = tries_.refusal;
        const bool pauses = tries_.failed(event);
        tries_.end = std::min(limit_, tries_.end);
        if (isFinal(event.fault, asker_) || event.now >= tries_.end) {
            return done(wasDemoted || isCutShort ? refusal : event.fault.error);
        }
        if (!pauses) {
            return ask();
        }
        state_ = State::backingOff;
        refused_ = true;
        return SleepUntil{std::min(tries_.end, event.now + tries_.pause(random))};
    }

    Action ask()
    {
        state_ = State::asking;
        return Send{tries_.end};
    }

    Action done(std::optional<Reason> error)
    {
        state_ = State::done;
        return Done<std::optional<Reason>>{error};
    }

    std::chrono::milliseconds patience_;
    TimePoint limit_;
    Asker asker_;
    Tries tries_;
    State state_ = State::idle;
    bool refused_ = false; ///< the last try was answered so
};

} // namespace redislock::detail
