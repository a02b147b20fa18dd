/// @file
/// What became of a call, told to a machine.
#pragma once

#include "redislock/detail/logic/event.hpp"
#include "transport/call.hpp"

namespace redislock::detail {

/// @tparam Event, Answer as of eventOfReply(). @param outcome the call's, as its awaiter got it: who left early got another.
template <class Event, class Answer>
Event eventOf(const Call& call, const Outcome& outcome, TimePoint now)
{
    return outcome.replied ? eventOfReply<Event, Answer>(now, call.sentAt, call.reply)
                           : Event(Failed{now, outcome.fault});
}

} // namespace redislock::detail
