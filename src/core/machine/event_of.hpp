/// @file
/// Turns the end of a call into an event for a machine.
#pragma once

#include "core/machine/acquire_machine.hpp"
#include "link/request/call.hpp"
#include "link/request/event.hpp"

#include <variant>

namespace redislock::detail {

/// @tparam Event, Answer, Asked as for eventOfReply(). @param outcome as the caller got it: one that left early got
/// another outcome than the call has.
template <class Event, class Answer, class... Asked>
Event eventOf(const Call& call, const Outcome& outcome, TimePoint now, Asked... asked)
{
    return outcome.replied ? eventOfReply<Event, Answer>(now, call.sentAt, call.reply, asked...)
                           : Event(Failed{now, outcome.fault, outcome.stood});
}

/// The answer that another holds the lock; null for any other event.
inline const LockAnswer* busyAnswer(const AcquireMachine::Event& event)
{
    const auto* replied = std::get_if<Replied<LockAnswer>>(&event);
    return replied != nullptr && replied->answer.kind == LockAnswer::Kind::busy ? &replied->answer : nullptr;
}

} // namespace redislock::detail
