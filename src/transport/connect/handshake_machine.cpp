#include "transport/connect/handshake_machine.hpp"

#include <utility>

namespace redislock::detail {

HandshakeMachine::Action HandshakeMachine::resume(const Event& event)
{
    if (std::holds_alternative<Opened>(event)) {
        return nextCommand();
    }
    if (std::holds_alternative<Garbled>(event)) {
        return fail({Failure::fatal, Errc::notRedis});
    }
    if (std::holds_alternative<Closed>(event)) {
        return fail({});
    }
    return answered(std::get<Reply>(event));
}

/// The step after the present one that has something to say.
HandshakeMachine::Action HandshakeMachine::nextCommand()
{
    if (state_ < State::auth && !handshake_.password.empty()) {
        state_ = State::auth;
        return handshake_.username.empty() ? Command{{"AUTH", handshake_.password}}
                                           : Command{{"AUTH", handshake_.username, handshake_.password}};
    }
    if (state_ < State::select && handshake_.database != 0) {
        state_ = State::select;
        return Command{{"SELECT", std::to_string(handshake_.database)}};
    }
    if (state_ < State::setName && !handshake_.clientName.empty()) {
        state_ = State::setName;
        return Command{{"CLIENT", "SETNAME", handshake_.clientName}};
    }
    if (state_ < State::ping) {
        state_ = State::ping;
        return Command{{"PING"}};
    }
    state_ = State::done;
    return Done<std::monostate>{};
}

HandshakeMachine::Action HandshakeMachine::answered(const Reply& reply)
{
    if (reply.isError()) {
        const Fault fault = classify(reply.text);
        if (fault.failure == Failure::refused || fault.failure == Failure::demoted) {
            return fail({Failure::notConnected, Errc::serverRefused});
        }
        if (fault.error == Errc::authFailed) {
            return fail({Failure::fatal, Errc::authFailed});
        }
    }
    switch (state_) {
    case State::auth:
        return authAnswered(reply);
    case State::select:
        return selectAnswered(reply);
    case State::setName:
        return nextCommand(); // a server that refuses names is still a server
    default:
        return pingAnswered(reply);
    }
}

HandshakeMachine::Action HandshakeMachine::authAnswered(const Reply& reply)
{
    if (reply.isError()) {
        return fail({Failure::fatal, Errc::authFailed});
    }
    return reply.kind == Reply::Kind::status ? nextCommand() : fail({Failure::fatal, Errc::notRedis});
}

HandshakeMachine::Action HandshakeMachine::selectAnswered(const Reply& reply)
{
    if (reply.isError()) {
        const bool forbidden = classify(reply.text).error == Errc::permissionDenied;
        return fail({Failure::fatal, forbidden ? Errc::permissionDenied : Errc::noSuchDatabase});
    }
    return reply.kind == Reply::Kind::status ? nextCommand() : fail({Failure::fatal, Errc::notRedis});
}

HandshakeMachine::Action HandshakeMachine::pingAnswered(const Reply& reply)
{
    // where PING is forbidden or renamed, locks may work all the same
    const Errc error = reply.isError() ? classify(reply.text).error : Errc{};
    const bool alive = error == Errc::permissionDenied || error == Errc::unsupported ||
                       (reply.kind == Reply::Kind::status && reply.text == "PONG");
    return alive ? nextCommand() : fail({Failure::fatal, Errc::notRedis});
}

HandshakeMachine::Action HandshakeMachine::fail(Fault fault)
{
    state_ = State::done;
    return Done<Fault>{fault};
}

} // namespace redislock::detail
