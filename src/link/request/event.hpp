/// @file
/// Events that machines get, and actions that they ask for.
#pragma once

#include "redislock/clock.hpp"
#include "redislock/error.hpp"
#include "wire/fault.hpp"
#include "wire/reply.hpp"

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

/// The request was not answered, or was answered with an error.
struct Failed {
    TimePoint now;
    Fault fault;
    std::chrono::nanoseconds stood{0}; ///< how long this process stood still meanwhile: not a silence of the server
};

/// Turns a reply into an event for a machine: an error reply is a failure, and so is a reply that the script cannot
/// give.
///
/// @tparam Event the machine's events. @tparam Answer has `static std::optional<Answer> from(const Reply&, asked…)`,
/// which is empty for a reply that the script cannot have given. @param asked what the meaning of the reply depends on.
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
    caller,     ///< the caller waits, and gets an error at once if another try would not change it
    background, ///< nobody waits: missing rights may come back, so tries end only when the time is over
};

/// Whether nothing but the end is left after this failure. After a reply that the script cannot have given there are no
/// more tries: it may be another request's.
constexpr bool isFinal(const Fault& fault, Asker asker) noexcept
{
    const bool forGood =
        fault.error == Errc::shutdown || fault.error == Errc::wrongType || fault.error == Errc::badReply;
    return fault.failure == Failure::fatal && (asker == Asker::caller || forGood);
}

/// Something happened that makes another attempt worthwhile: a message, a confirmed subscription, a local release.
struct Notified {
    TimePoint now;
};

/// Another's release granted the lock to this waiter, some time after @p sentAt, for the time @p lasts. The waiter's
/// last request had been refused.
struct GrantHeard {
    TimePoint now;
    TimePoint sentAt; ///< when that request was sent
    std::chrono::milliseconds lasts;
};

/// The moment asked for with SleepUntil or Subscribe has come.
struct TimerFired {
    TimePoint now;
};

/// The answer of the policy.
struct Pause {
    TimePoint now;
    std::optional<std::chrono::nanoseconds> span; ///< nothing: the policy gives up
};

/// The operation must end.
struct Cancelled {
    TimePoint now;
    Errc reason;
};

/// Send the machine's request; stop waiting for the answer at `until`.
struct Send {
    TimePoint until;
};

/// Subscribe to the lock's channel and sleep until notified, at most until @p until. The confirmation is a
/// notification.
struct Subscribe {
    TimePoint until;
};

/// Ask the policy how long to pause after this attempt. Done between two steps of the machine, under no mutex: the
/// policy may be a function of the user's.
struct AskPolicy {
    std::uint32_t attempt; ///< from 1 on
};

/// Sleep until notified, at most until @p until.
struct SleepUntil {
    TimePoint until;
};

/// The operation is over.
template <class Result>
struct Done {
    Result result;
};

} // namespace redislock::detail
