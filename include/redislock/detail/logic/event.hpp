/// @file
/// What machines are told and what they ask for.
#pragma once

#include "redislock/clock.hpp"
#include "redislock/detail/protocol/fault.hpp"
#include "redislock/detail/protocol/reply.hpp"
#include "redislock/error.hpp"

#include <chrono>
#include <cstdint>
#include <optional>

namespace redislock::detail {

/// Which part of a hold a request is about.
enum class Level : std::uint8_t { outermost, nested };

/// The operation begins.
struct Start {
    TimePoint now;
};

/// The request was answered. @tparam Answer the typed result of the script.
template <class Answer>
struct Replied {
    TimePoint now;
    TimePoint sentAt; ///< read just before the request was written
    Answer answer;
};

/// The request was not answered, or with an error.
struct Failed {
    TimePoint now;
    Fault fault;
    std::chrono::nanoseconds stood{
        0}; ///< how long this process stood still meanwhile: that is no silence of the server
};

/// The event that a reply is to a machine: an error reply and one that its script cannot give are failures.
///
/// @tparam Event the machine's events. @tparam Answer has `static std::optional<Answer> from(const Reply&, asked…)`,
/// which is empty for what the script cannot have answered. @param asked what that depends on.
template <class Event, class Answer, class... Asked>
Event eventOfReply(TimePoint now, TimePoint sentAt, const Reply& reply, Asked... asked)
{
    if (reply.isError()) {
        return Failed{now, classify(reply.text)};
    }
    if (const auto answer = Answer::from(reply, asked...)) {
        return Replied<Answer>{now, sentAt, *answer};
    }
    return Failed{now, {Failure::fatal, Errc::badReply}};
}

/// On whose behalf a request is repeated.
enum class Asker : std::uint8_t {
    caller,     ///< somebody waits, and is told at once of an error that another try would not change
    background, ///< nobody waits: rights that were taken away may come back, so only the end of its time ends it
};

/// Whether nothing but the end is left after that failure. An answer that cannot be may be another request's: no more
/// of them.
constexpr bool isFinal(const Fault& fault, Asker asker) noexcept
{
    const bool forGood =
        fault.error == Errc::shutdown || fault.error == Errc::wrongType || fault.error == Errc::badReply;
    return fault.failure == Failure::fatal && (asker == Asker::caller || forGood);
}

/// Something happened that makes another attempt worth while: a message, a confirmed subscription, a local release.
struct Notified {
    TimePoint now;
};

/// The release of another granted the lock to this waiter: some time after its last request, which was refused, was
/// sent, and for so long.
struct Given {
    TimePoint now;
    TimePoint sentAt; ///< of that request
    std::chrono::milliseconds lasts;
};

/// The moment asked for with SleepUntil or Subscribe has come.
struct TimerFired {
    TimePoint now;
};

/// What the policy said when it was asked.
struct Pause {
    TimePoint now;
    std::optional<std::chrono::nanoseconds> span; ///< nothing: it gives up
};

/// The operation must end.
struct Cancelled {
    TimePoint now;
    Errc reason;
};

/// Send the machine's request; give up waiting for the answer at `until`.
struct Send {
    TimePoint until;
};

/// Subscribe to the lock's channel and sleep until notified, at most until then. The confirmation is a notification.
struct Subscribe {
    TimePoint until;
};

/// Ask the policy how long the pause after this attempt is: between two steps of the machine, under no lock, since it
/// may be a function of the user's.
struct AskPolicy {
    std::uint32_t attempt; ///< from 1 on
};

/// Sleep until notified, at most until then.
struct SleepUntil {
    TimePoint until;
};

/// The operation is over.
template <class Result>
struct Done {
    Result result;
};

} // namespace redislock::detail
