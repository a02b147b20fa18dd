/// @file
/// What machines are told and what they ask for.
#pragma once

#include "redislock/clock.hpp"
#include "redislock/detail/protocol/fault.hpp"
#include "redislock/detail/protocol/reply.hpp"
#include "redislock/error.hpp"

#include <optional>

namespace redislock::detail {

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
};

/// The event that a reply is to a machine: an error reply and one that its script cannot give are failures.
///
/// @tparam Event the machine's events. @tparam Answer has `static std::optional<Answer> from(const Reply&)`, which is empty
/// for what the script cannot have answered.
template <class Event, class Answer>
Event eventOfReply(TimePoint now, TimePoint sentAt, const Reply& reply)
{
    if (reply.isError()) {
        return Failed{now, classify(reply.text)};
    }
    if (const auto answer = Answer::from(reply)) {
        return Replied<Answer>{now, sentAt, *answer};
    }
    return Failed{now, {Failure::fatal, Errc::badReply}};
}

/// Something happened that makes another attempt worth while: a message, a confirmed subscription, a local release.
struct Notified {
    TimePoint now;
};

/// The moment asked for with SleepUntil or Subscribe has come.
struct TimerFired {
    TimePoint now;
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
