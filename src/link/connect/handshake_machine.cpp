#include "link/connect/handshake_machine.hpp"
#include "wire/assert.hpp"

#include <utility>

namespace redislock::detail {

HandshakeMachine::Action HandshakeMachine::resume(const Event& event)
{
    if (std::holds_alternative<Opened>(event)) {
        REDISLOCK_ASSERT(state_ == State::opening);
        return say();
    }
    REDISLOCK_ASSERT(state_ != State::done);
    if (const auto* e = std::get_if<Garbled>(&event)) {
        REDISLOCK_ASSERT(state_ != State::opening);
        return fail({Failure::fatal, e->why});
    }
    if (const auto* e = std::get_if<Closed>(&event)) {
        const bool isLate = heard_ && e->why == Reason(Cause::hungUp);
        return fail({Failure::notConnected, isLate ? Reason(Cause::connectionLost) : e->why});
    }
    REDISLOCK_ASSERT(state_ != State::opening);
    heard_ = true;
    return answered(std::get<Reply>(event));
}

HandshakeMachine::Action HandshakeMachine::say()
{
    Say all;
    for (State step = after(State::opening); step != State::done; step = after(step)) {
        switch (step) {
        case State::auth:
            all.commands.push_back(handshake_.username.empty()
                                       ? Command{"AUTH", handshake_.password}
                                       : Command{"AUTH", handshake_.username, handshake_.password});
            break;
        case State::select:
            all.commands.push_back({"SELECT", std::to_string(handshake_.database)});
            break;
        case State::setName:
            all.commands.push_back({"CLIENT", "SETNAME", handshake_.clientName});
            break;
        default:
            all.commands.push_back(form_ == Form::whole ? Command{"PING"}
                                                        : Command{"EVAL", "return 1", "1", "redislock"});
        }
    }
    state_ = after(State::opening);
    return all;
}

/// The next step after @p step that has something to send.
HandshakeMachine::State HandshakeMachine::after(State step) const noexcept
{
    if (step < State::auth && !handshake_.password.empty()) {
        return State::auth;
    }
    if (step < State::select && handshake_.database != 0) {
        return State::select;
    }
    if (step < State::setName && form_ == Form::whole && !handshake_.clientName.empty()) {
        return State::setName;
    }
    return step < State::ping ? State::ping : State::done;
}

HandshakeMachine::Action HandshakeMachine::next()
{
    state_ = after(state_);
    return state_ == State::done ? Action(Done<std::monostate>{}) : Action(Listen{});
}

HandshakeMachine::Action HandshakeMachine::answered(const Reply& reply)
{
    if (reply.isError()) {
        const Fault fault = classify(reply.text);
        // without a known cause it may be this command alone that is refused
        const bool isOptional = form_ == Form::whole && (state_ == State::setName || state_ == State::ping);
        const bool isKnown = fault.error != Reason(Errc::serverRefused);
        if ((fault.failure == Failure::refused && (isKnown || !isOptional)) || fault.failure == Failure::demoted) {
            return fail({Failure::notConnected, fault.error});
        }
        if (fault.error == Errc::authFailed) {
            return fail(fault);
        }
    }
    switch (state_) {
    case State::auth:
        return authAnswered(reply);
    case State::select:
        return selectAnswered(reply);
    case State::setName:
        // a server that refuses names is a usable server all the same
        return reply.isError() || reply.kind == Reply::Kind::status ? next() : fail({Failure::fatal, Errc::notRedis});
    default:
        return pingAnswered(reply);
    }
}

HandshakeMachine::Action HandshakeMachine::authAnswered(const Reply& reply)
{
    if (reply.isError()) {
        return fail({Failure::fatal, Errc::authFailed});
    }
    return reply.kind == Reply::Kind::status ? next() : fail({Failure::fatal, Errc::notRedis});
}

HandshakeMachine::Action HandshakeMachine::selectAnswered(const Reply& reply)
{
    if (reply.isError()) {
        const Reason error = classify(reply.text).error;
        return fail({Failure::fatal, error == Errc::permissionDenied ? error : Errc::noSuchDatabase});
    }
    return reply.kind == Reply::Kind::status ? next() : fail({Failure::fatal, Errc::notRedis});
}

HandshakeMachine::Action HandshakeMachine::pingAnswered(const Reply& reply)
{
    // where PING is forbidden or renamed, locks may work all the same
    const bool isRight = form_ == Form::whole ? reply.kind == Reply::Kind::status && reply.text == "PONG"
                                              : reply.kind == Reply::Kind::integer && reply.integer == 1;
    return reply.isError() || isRight ? next() : fail({Failure::fatal, Errc::notRedis});
}

HandshakeMachine::Action HandshakeMachine::fail(Fault fault)
{
    state_ = State::done;
    return Done<Fault>{fault};
}

} // namespace redislock::detail
