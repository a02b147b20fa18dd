#include "link/connect/handshake_machine.hpp"
#include "wire/assert.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

namespace redislock::detail {

namespace {

/// The node that takes the writes to a range of slots (first, last, that node: its address, port and, in all but very
/// old servers, id; then its replicas).
std::string masterOf(const Reply& range)
{
    if (range.elements.size() < 3) {
        return {};
    }
    const auto& node = range.elements[2].elements;
    return node.size() > 2    ? node[2].text
           : node.size() == 2 ? node[0].text + ':' + std::to_string(node[1].integer)
                              : std::string();
}

/// Whether a version of Redis is known to be older than 7.
bool isBefore7(std::string_view version) noexcept
{
    const auto major = version.substr(0, version.find('.'));
    return major.size() == 1 && major[0] >= '1' && major[0] < '7';
}

} // namespace

HandshakeMachine::Action HandshakeMachine::resume(const Event& event)
{
    if (std::holds_alternative<Opened>(event)) {
        REDISLOCK_ASSERT(state_ == State::opening);
        return say(after(state_));
    }
    REDISLOCK_ASSERT(state_ != State::done);
    if (const auto* e = std::get_if<Garbled>(&event)) {
        REDISLOCK_ASSERT(state_ != State::opening);
        return fail({Failure::fatal, e->why});
    }
    if (const auto* e = std::get_if<Closed>(&event)) {
        const bool isLate = heard_ && e->why == Reason(Cause::hungUp);
        return fail({e->why == Errc::tlsFailed ? Failure::fatal : Failure::notConnected,
                     isLate ? Reason(Cause::connectionLost) : e->why});
    }
    REDISLOCK_ASSERT(state_ != State::opening);
    heard_ = true;
    return answered(std::get<Reply>(event));
}

HandshakeMachine::Command HandshakeMachine::commandOf(State step) const
{
    switch (step) {
    case State::auth:
        return handshake_.username.empty() ? Command{"AUTH", handshake_.password}
                                           : Command{"AUTH", handshake_.username, handshake_.password};
    case State::hello:
        return {"HELLO"};
    case State::select:
        return {"SELECT", std::to_string(handshake_.database)};
    case State::setName:
        return {"CLIENT", "SETNAME", handshake_.clientName};
    case State::role:
        return {"ROLE"};
    case State::slots:
        return {"CLUSTER", "SLOTS"};
    default:
        return form_ == Form::whole ? Command{"PING"} : Command{"EVAL", "return 1", "1", "redislock"};
    }
}

/// Says everything from this step on that need not wait for an answer.
HandshakeMachine::Action HandshakeMachine::say(State step)
{
    state_ = step;
    Say all{{commandOf(step)}};
    while (!isLast(step)) {
        step = after(step);
        all.commands.push_back(commandOf(step));
    }
    return all;
}

/// The next step after @p step that has something to send.
HandshakeMachine::State HandshakeMachine::after(State step) const noexcept
{
    const bool isWhole = form_ == Form::whole;
    if (step < State::auth && !handshake_.password.empty()) {
        return State::auth;
    }
    if (step < State::hello && isWhole) {
        return State::hello;
    }
    if (step < State::select && handshake_.database != 0) { // after HELLO: a Sentinel knows no SELECT
        return State::select;
    }
    if (step < State::setName && isWhole && !handshake_.clientName.empty()) {
        return State::setName;
    }
    if (step < State::ping) {
        return State::ping;
    }
    if (step < State::role && isOfUnknownRole_ && handshake_.kind == ServerKind::master) {
        return State::role;
    }
    const bool asksForSlots = isInCluster_ || handshake_.kind == ServerKind::node;
    return step < State::slots && asksForSlots ? State::slots : State::done;
}

HandshakeMachine::Action HandshakeMachine::next()
{
    const bool isAnswered = awaitsLast();
    state_ = after(state_);
    if (state_ != State::done) {
        return isAnswered ? say(state_) : Action(Listen{});
    }
    return isReplica_ && handshake_.kind != ServerKind::node ? fail({Failure::notConnected, Cause::readOnly})
                                                             : Action(Done<std::monostate>{});
}

HandshakeMachine::Action HandshakeMachine::answered(const Reply& reply)
{
    if (reply.isError()) {
        const Fault fault = classify(reply.text);
        if (state_ == State::hello && fault.error == Reason(Cause::passwordWanted)) {
            return next(); // the next answer says the same in fewer words
        }
        // without a known cause it may be this command alone that is refused
        const bool isOptional = form_ == Form::whole && state_ != State::auth && state_ != State::select;
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
    case State::hello:
        return helloAnswered(reply);
    case State::select:
        return selectAnswered(reply);
    case State::role:
        return roleAnswered(reply);
    case State::slots:
        return slotsAnswered(reply);
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

HandshakeMachine::Action HandshakeMachine::helloAnswered(const Reply& reply)
{
    if (reply.isError()) {
        isOfUnknownRole_ = true; // a server before version 6.2, or a proxy
        return next();
    }
    if (reply.kind != Reply::Kind::array) {
        return fail({Failure::fatal, Errc::notRedis});
    }
    const auto mode = valueIn(reply, "mode");
    const auto role = valueIn(reply, "role");
    const bool isSentinel = mode == "sentinel";
    if (!isSentinel && handshake_.kind == ServerKind::node && mode != "cluster") {
        return fail({Failure::fatal, Cause::notCluster});
    }
    if (isSentinel != (handshake_.kind == ServerKind::sentinel)) {
        return fail({Failure::fatal, isSentinel ? Cause::sentinel : Cause::notSentinel});
    }
    if (handshake_.needsShardedChannels && isBefore7(valueIn(reply, "version"))) {
        return fail({Failure::fatal, Cause::noShardedChannels});
    }
    isInCluster_ = mode == "cluster";
    isReplica_ = role == "replica" || role == "slave";
    return next();
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

/// Whoever does not tell it may be a master.
HandshakeMachine::Action HandshakeMachine::roleAnswered(const Reply& reply)
{
    isReplica_ = !reply.elements.empty() && reply.elements[0].text == "slave";
    return next();
}

HandshakeMachine::Action HandshakeMachine::slotsAnswered(const Reply& reply)
{
    if (handshake_.kind == ServerKind::node) {
        const Reason why = reply.isError() ? classify(reply.text).error : Reason(Errc::notRedis);
        const bool isDenied = why == Errc::permissionDenied;
        if (reply.kind != Reply::Kind::array) {
            return fail({Failure::fatal, isDenied || !reply.isError() ? why : Cause::notCluster});
        }
        slots_ = reply;
        return next();
    }
    if (reply.isError()) { // a proxy may hide the other nodes; a real server tells them, but not to every user
        warning_ =
            "the server belongs to a cluster, but does not tell its nodes: locks work only while it has all slots";
        return classify(reply.text).error == Errc::permissionDenied ? fail({Failure::fatal, Cause::clusterNode})
                                                                    : next();
    }
    if (reply.kind != Reply::Kind::array) {
        return fail({Failure::fatal, Errc::notRedis});
    }
    const auto& ranges = reply.elements;
    const bool hasOthers = std::adjacent_find(ranges.begin(), ranges.end(), [](const Reply& one, const Reply& next) {
                               return masterOf(one) != masterOf(next);
                           }) != ranges.end();
    warning_ = "the server belongs to a cluster of which one node has all slots: locks work until another gets some; "
               "use redis-cluster://";
    return hasOthers ? fail({Failure::fatal, Cause::clusterNode}) : next();
}

HandshakeMachine::Action HandshakeMachine::fail(Fault fault)
{
    state_ = State::done;
    return Done<Fault>{fault};
}

} // namespace redislock::detail
