// Questions to Redis that are about no hold of ours.
#include "logic/flow/query_flow.hpp"
#include "logic/lock/name_call.hpp"
#include "redislock/detail/protocol/command.hpp"
#include "runtime/engine/drive.hpp"
#include "runtime/engine/engine.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redislock::detail {

namespace {

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
    Lock lock(mutex_);
    QueryFlow flow(*this, core_.random, call, machine);
    drive(lock, flow);
    return flow.error() ? std::error_code(*flow.error()) : std::error_code();
}

/// In two steps, so that a try whose reply was lost can be repeated without hitting the next holder.
bool Engine::forceUnlock(NamedLock& named, std::error_code& ec)
{
    QueryMachine asking(config_.unreachableAfter);
    const auto holder = nameCall(named, named.traits().holder);
    ec = query(holder, asking);
    const auto forced = ec ? std::nullopt : holderOf(holder->reply, ec);
    if (!forced) {
        return false;
    }
    QueryMachine ending(config_.unreachableAfter);
    const auto end = nameCall(named, named.traits().forceUnlock, {*forced, named.channel()});
    ec = query(end, ending);
    if (ec || !freed(end->reply, ending, ec)) {
        return false;
    }
    const Lock lock(mutex_);
    core_.loseForced(named, *forced);
    return true;
}

std::optional<std::chrono::milliseconds> Engine::timeToLive(NamedLock& named, std::error_code& ec)
{
    QueryMachine machine(config_.unreachableAfter);
    const auto call = nameCall(named, named.traits().pttl);
    ec = query(call, machine);
    return ec ? std::nullopt : timeToLiveOf(call->reply, ec);
}

void Engine::connect(std::error_code& ec)
{
    if (const auto refused = refusal()) {
        ec = *refused;
        return;
    }
    start();
    const auto call = std::make_shared<PingCall>();
    call->hurried = true;
    TimePoint until = BootClock::now() + config_.connectTimeout + std::chrono::milliseconds(100);
    Outcome outcome;
    do { // again if this process stood still meanwhile
        until += outcome.stood;
        commands_->enqueue(call);
        outcome = commands_->await(*call, until);
        call->signal.clearDone();
    } while (!outcome.replied && outcome.fault.failure != Failure::fatal && outcome.stood > outcome.stood.zero());
    // a user who may not PING is connected all the same
    ec = outcome.replied ? std::error_code() : std::error_code(outcome.fault.error);
}

} // namespace redislock::detail
