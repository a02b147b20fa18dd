// Questions to Redis that are about no hold of ours.
#include "redislock/detail/protocol/command.hpp"
#include "redislock/detail/protocol/script.hpp"
#include "runtime/engine.hpp"
#include "runtime/event_of.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace redislock::detail {

namespace {

/// A script that is given a lock's name and up to two arguments.
class NameCall final : public Call {
public:
    NameCall(const Script& script, std::shared_ptr<const NamedLock> named, std::vector<std::string> arguments = {})
        : script_(script), named_(std::move(named)), arguments_(std::move(arguments))
    {
    }

    void encode(std::string& out, Form by) const override
    {
        appendHeader(out, '*', 4 + arguments_.size());
        appendArgument(out, by == Form::bySha ? std::string_view("EVALSHA") : std::string_view("EVAL"));
        appendArgument(out, by == Form::bySha ? script_.sha1 : script_.text);
        appendArgument(out, std::string_view("1"));
        appendArgument(out, std::string_view(named_->name));
        for (const auto& argument : arguments_) {
            appendArgument(out, std::string_view(argument));
        }
    }

private:
    const Script& script_;
    std::shared_ptr<const NamedLock> named_;
    std::vector<std::string> arguments_;
};

class PingCall final : public Call {
public:
    void encode(std::string& out, Form /*by*/) const override { appendCommand(out, {"PING"}); }
};

} // namespace

/// Drives a question to its end; its reply is then in the call.
std::error_code Engine::query(const std::shared_ptr<Call>& call, QueryMachine& machine)
{
    if (const auto refused = refusal()) {
        return *refused;
    }
    start();
    QueryMachine::Event event = Start{BootClock::now()};
    Random random(static_cast<std::uint64_t>(BootClock::now().time_since_epoch().count()));
    for (;;) {
        const auto action = machine.resume(event, random);
        if (const auto* done = std::get_if<Done<std::optional<Errc>>>(&action)) {
            return done->result ? std::error_code(*done->result) : std::error_code();
        }
        if (const auto* pause = std::get_if<SleepUntil>(&action)) {
            call->signal.waitUntil(pause->until);
            event = TimerFired{BootClock::now()};
            continue;
        }
        commands_->enqueue(call);
        const Outcome outcome = commands_->await(*call, std::get<Send>(action).until);
        call->signal.clearDone();
        event = eventOf<QueryMachine::Event, Answered>(*call, outcome, BootClock::now());
    }
}

/// In two steps, so that a try whose reply was lost can be repeated without hitting the next holder.
bool Engine::forceUnlock(NamedLock& named, std::error_code& ec)
{
    QueryMachine asking(config_.unreachableAfter);
    const auto holder = std::make_shared<NameCall>(scripts::redisLockHolder, named.shared_from_this());
    ec = query(holder, asking);
    if (ec || holder->reply.kind == Reply::Kind::nil) {
        return false;
    }
    QueryMachine ending(config_.unreachableAfter);
    const auto end = std::make_shared<NameCall>(scripts::redisLockForceUnlock, named.shared_from_this(),
                                                std::vector{holder->reply.text, named.channel});
    ec = query(end, ending);
    if (!ec && (end->reply.kind != Reply::Kind::integer || end->reply.integer < 0 || end->reply.integer > 1)) {
        ec = Errc::badReply;
    }
    // a first try whose reply was lost may have freed it
    return !ec && (end->reply.integer == 1 || ending.repeated());
}

std::optional<std::chrono::milliseconds> Engine::timeToLive(NamedLock& named, std::error_code& ec)
{
    QueryMachine machine(config_.unreachableAfter);
    const auto call = std::make_shared<NameCall>(scripts::redisLockPttl, named.shared_from_this());
    ec = query(call, machine);
    if (!ec && (call->reply.kind != Reply::Kind::integer || call->reply.integer < -2)) {
        ec = Errc::badReply;
    }
    if (ec || call->reply.integer == -2) {
        return std::nullopt;
    }
    return call->reply.integer == -1 ? std::chrono::milliseconds::max()
                                     : std::chrono::milliseconds(call->reply.integer);
}

void Engine::connect(std::error_code& ec)
{
    if (const auto refused = refusal()) {
        ec = *refused;
        return;
    }
    start();
    const auto call = std::make_shared<PingCall>();
    commands_->enqueue(call);
    const TimePoint until = BootClock::now() + config_.connectTimeout + std::chrono::milliseconds(100);
    const Outcome outcome = commands_->await(*call, until);
    // a user who may not PING is connected all the same
    ec = outcome.replied ? std::error_code() : std::error_code(outcome.fault.error);
}

} // namespace redislock::detail
