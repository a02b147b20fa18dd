/// @file
/// What the driver of a connection asks of the protocol that is spoken on it.
#pragma once

#include "link/reconnect_policy.hpp"
#include "link/request/finished_calls.hpp"
#include "redislock/clock.hpp"
#include "redislock/random.hpp"
#include "wire/assert.hpp"
#include "wire/fault.hpp"
#include "wire/reply.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace redislock::detail {

/// Why there is no connection when an attempt has come so far, and there was none before for the reason @p before: what
/// says more than how far it came stays, but nobody can be said to have taken no connection when somebody did.
inline Reason absenceAt(Cause stage, Reason before) noexcept
{
    const bool isStage = before == Reason(Cause::connectTimedOut) || before == Reason(Cause::lookupFailed);
    const bool wasTaken = before != Errc::unreachable || before == Reason(Cause::silent) ||
                          before == Reason(Cause::hungUp) || before == Reason(Cause::connectionLost);
    return isStage || (stage == Cause::silent && !wasTaken) ? stage : before;
}

/// One connection without its socket: no I/O, no clock, no thread, no wait. All that is decided about a connection is
/// decided here and in the two classes that derive from this one, Link and Subscriptions.
///
/// A driver tells what happened (connecting(), opened(), failed(), received(), lost(), timeIsOver()), and asks after it
/// what to do: attemptAt(), takeBytes(), isOver(), dueAt(). Calls that have ended are collected in a FinishedCalls,
/// which the driver destroys when it holds no mutex.
///
/// | state      | legal events                                                              |
/// |------------|---------------------------------------------------------------------------|
/// | any        | reached(), heard(), received(), close(), notReplaced(), retire(), moved() |
/// | absent     | connecting()                                                              |
/// | connecting | opened(), failed()                                                        |
/// | open       | takeBytes(), lost(), handedOver(), timeIsOver(), replacing(), leave()     |
/// | replacing  | takeBytes(), lost(), handedOver(), timeIsOver()                           |
/// | retiring   | lost(), timeIsOver(), replaced()                                          |
/// | leaving    | lost(), timeIsOver()                                                      |
/// | closed     |                                                                           |
///
/// **Thread safety**: none; a driver with several threads calls it under its mutex.
class Protocol {
public:
    enum class State : std::uint8_t {
        absent,     ///< there is no connection, and nobody makes one
        connecting, ///< the driver tries to make one
        open,
        replacing, ///< open, and the driver makes another connection, which is to take the place of this one
        retiring,  ///< open, but nothing more is written: the other connection is there
        leaving,   ///< open, but nothing more is written: the server is no master any more
        closed,    ///< there will be no connection any more
    };

    /// What a reply was.
    enum class Heard : std::uint8_t {
        expected,
        demotion,   ///< the first one that says that the server is no master: from now on nothing is written
        unexpected, ///< it answers nothing: the stream cannot be trusted any more
    };

    Protocol(const Protocol&) = delete;
    Protocol& operator=(const Protocol&) = delete;

    [[nodiscard]] State state() const noexcept { return state_; }
    [[nodiscard]] bool isOpen() const noexcept { return state_ >= State::open && state_ <= State::leaving; }
    /// Whether what is queued may be written.
    [[nodiscard]] bool takesRequests() const noexcept { return state_ == State::open || state_ == State::replacing; }
    /// Why there is no connection, while there is none.
    [[nodiscard]] Reason absence() const noexcept { return absence_; }

    // making a connection
    /// When the driver must try to make a connection; nothing: not now, or it does already.
    [[nodiscard]] std::optional<TimePoint> attemptAt() const noexcept
    {
        return state_ == State::absent && isNeeded() ? std::optional(policy_.notBefore()) : std::nullopt;
    }
    /// The earliest time for an attempt under way, for the sake of a caller that does not wait for a long pause.
    [[nodiscard]] TimePoint soonest() const noexcept { return policy_.soonest(); }
    void connecting() noexcept
    {
        REDISLOCK_ASSERT(state_ == State::absent);
        state_ = State::connecting;
    }
    /// The server is at another address now: the next attempt need not wait, though the connection ends.
    void moved() noexcept
    {
        policy_ = ReconnectPolicy();
        policy_.served();
    }
    /// The attempt has come so far, see Connector::connect().
    void reached(Cause stage) noexcept { absence_ = absenceAt(stage, absence_); }
    /// There is a connection. Strong guarantee, except that calls that are not worth sending any more have ended.
    /// @param replaceAt when another is to take its place; max(): never
    void opened(TimePoint now, FinishedCalls& finished, TimePoint replaceAt = TimePoint::max())
    {
        REDISLOCK_ASSERT(state_ == State::connecting);
        begin(now, finished);
        state_ = State::open;
        replaceAt_ = replaceAt;
    }
    /// The attempt has failed.
    void failed(Fault fault, TimePoint now, FinishedCalls& finished) noexcept
    {
        REDISLOCK_ASSERT(state_ == State::connecting);
        state_ = State::absent;
        policy_.ended(now, random_, true);
        absence_ = fault.error;
        end(fault, false, finished);
    }

    // bytes
    /// Whether there is something to write. Before it is written, while isIdle(), the driver makes sure that nothing
    /// has come: it would be taken for the answer.
    [[nodiscard]] bool hasBytes() const noexcept { return !bytes_.empty(); }
    /// Whether no reply is due.
    [[nodiscard]] virtual bool isIdle() const noexcept = 0;
    /// Swaps all bytes that are to be written into @p out, which must be empty. They count as written now.
    void takeBytes(std::string& out, TimePoint now) noexcept
    {
        REDISLOCK_ASSERT(takesRequests() && out.empty());
        std::swap(out, bytes_);
        written(now);
    }
    /// A part of a reply has come.
    virtual void heard(TimePoint /*now*/) noexcept {}
    /// The request that the next reply answers; null: it is not known.
    [[nodiscard]] virtual const Call* awaited() const noexcept { return nullptr; }
    /// The next reply.
    [[nodiscard]] virtual Heard received(Reply& reply, TimePoint now, FinishedCalls& finished) = 0;

    // time
    /// When timeIsOver() is to be called; max(): nothing is waited for.
    [[nodiscard]] virtual TimePoint dueAt() const noexcept = 0;
    /// That time has come, and all that came before it has been read. @return whether the server was silent for too
    /// long: then the connection is lost.
    [[nodiscard]] virtual bool timeIsOver(TimePoint now) = 0;

    // another connection in the place of an open one
    /// When the driver must try to make it; nothing: never, or it does already.
    [[nodiscard]] std::optional<TimePoint> replacementAt() const noexcept
    {
        return state_ == State::open && replaceAt_ != TimePoint::max() ? std::optional(replaceAt_) : std::nullopt;
    }
    void replacing() noexcept
    {
        REDISLOCK_ASSERT(state_ == State::open);
        state_ = State::replacing;
    }
    /// The attempt has failed: this connection stays, and the attempt is repeated after a growing pause.
    void notReplaced(TimePoint now) noexcept
    {
        if (state_ == State::replacing) {
            state_ = State::open;
            replaceAt_ = now + replacements_.next(random_);
        }
    }
    /// The other connection is there: nothing more is written on this one. @return false if it is not needed any more
    bool retire(TimePoint replaceAt) noexcept
    {
        if (state_ != State::replacing) {
            return false;
        }
        state_ = State::retiring;
        replaceAt_ = replaceAt;
        absence_ = Cause::silent; // the server here, if a call's time is over before the other connection takes it
        bytes_.clear();
        return true;
    }
    /// Whether the driver is to close this connection, and to go on with the other one.
    [[nodiscard]] bool isReplaceable() const noexcept { return state_ == State::retiring && isAnswered(); }
    /// It does. What is not written is begun again on the other one. Strong guarantee, as opened().
    void replaced(TimePoint now, FinishedCalls& finished)
    {
        REDISLOCK_ASSERT(isReplaceable());
        begin(now, finished);
        state_ = State::open;
        replacements_.reset();
    }

    // the end of a connection
    /// The server is no master any more: nothing more is written. @return `demotion` the first time
    Heard leave() noexcept
    {
        REDISLOCK_ASSERT(isOpen());
        bytes_.clear();
        return std::exchange(state_, State::leaving) == State::leaving ? Heard::expected : Heard::demotion;
    }
    /// Whether the driver is to close a connection that is leaving.
    [[nodiscard]] bool isOver() const noexcept { return state_ == State::leaving && isAnswered(); }
    /// The connection has ended. What was written and not answered ends with it; the rest waits for the next
    /// connection. @return the fault by which it ended
    Fault lost(Fault fault, TimePoint now, FinishedCalls& finished) noexcept
    {
        REDISLOCK_ASSERT(isOpen());
        const bool isDemoted = state_ == State::leaving || fault.failure == Failure::demoted;
        if (isOver()) {
            fault = {Failure::demoted, Cause::readOnly};
        }
        state_ = State::absent;
        isDemoted ? policy_.demoted(now, random_) : policy_.ended(now, random_, owes());
        absence_ = isDemoted ? Reason(Cause::readOnly) : fault.error;
        bytes_.clear();
        end(fault, true, finished);
        return fault;
    }
    /// The driver has given the idle connection away. @return when that is to be replaced
    TimePoint handedOver() noexcept
    {
        REDISLOCK_ASSERT(takesRequests() && isIdle() && !hasBytes());
        state_ = State::absent;
        return replaceAt_;
    }
    /// There will be no connection any more: everything ends with this error.
    void close(Errc why, FinishedCalls& finished) noexcept
    {
        if (state_ != State::closed) {
            state_ = State::closed;
            closedFor_ = why;
            bytes_.clear();
            end({Failure::fatal, why}, false, finished);
        }
    }

protected:
    explicit Protocol(std::uint64_t seed) noexcept : random_(seed) {}
    ~Protocol() = default;

    /// Whether a connection must be made if there is none.
    [[nodiscard]] virtual bool isNeeded() const noexcept = 0;
    /// Whether a connection that ends now leaves something undone.
    [[nodiscard]] virtual bool owes() const noexcept = 0;
    /// Whether nothing is lost with a connection that ends now.
    [[nodiscard]] virtual bool isAnswered() const noexcept { return isIdle(); }
    /// Queues the bytes with which a connection begins.
    virtual void begin(TimePoint now, FinishedCalls& finished) = 0;
    /// All queued bytes are being written.
    virtual void written(TimePoint now) noexcept = 0;
    /// Ends what was written, or, unless @p onlyWritten, everything.
    virtual void end(Fault fault, bool onlyWritten, FinishedCalls& finished) noexcept = 0;

    ReconnectPolicy policy_;
    std::string bytes_; ///< of what is not written yet, while open
    Errc closedFor_{};

private:
    Random random_;
    State state_ = State::absent;
    Reason absence_ = Cause::connectTimedOut;
    TimePoint replaceAt_ = TimePoint::max(); ///< the open connection
    Backoff replacements_;                   ///< attempts to replace it
};

} // namespace redislock::detail
