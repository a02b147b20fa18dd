#include "runtime/counter_attempt.hpp"

namespace redislock::detail {

AcquireMachine::Settings NamedCounter::Attempt::settings() const noexcept
{
    const auto& config = counter->engine->config();
    AcquireMachine::Settings settings;
    settings.lease = order.lease;
    settings.wait = order.wait;
    settings.pollInterval = config.pollInterval;
    settings.commandTimeout = config.commandTimeout;
    settings.unreachableAfter = config.unreachableAfter;
    return settings;
}

AcquireMachine::Action NamedCounter::Attempt::resume(const AcquireMachine::Event& event, Random& random)
{
    return machine.resume(event, random);
}

AcquireMachine::Event NamedCounter::Attempt::answered(const Call& call, const Outcome& how, TimePoint now)
{
    const auto answer = how.replied && !call.reply.isError() ? order.meaning(call.reply) : std::nullopt;
    if (answer) {
        return Replied<LockAnswer>{now, call.sentAt, *answer};
    }
    outcome.repeated = true;
    return Failed{now,
                  !how.replied           ? how.fault
                  : call.reply.isError() ? classify(call.reply.text)
                                         : Fault{Failure::fatal, Errc::badReply},
                  how.stood};
}

std::error_code NamedCounter::Attempt::conclude(const AcquireResult& result)
{
    using Kind = AcquireResult::Kind;
    Engine& client = *counter->engine;
    {
        const Lock lock(client.mutex_);
        outcome.granted = result.kind == Kind::granted && !client.closing_;
        waiter.hinted = waiter.hinted && !outcome.granted;
        counter->leave(waiter);
        outcome.validUntil = result.validUntil;
    }
    if (outcome.granted) {
        if (!outcome.repeated) {
            counter->settle({order.record});
        }
        return {};
    }
    if (order.undo && (result.mayBeHeld || result.kind == Kind::granted)) {
        const bool copies = result.kind != Kind::granted || outcome.repeated;
        counter->askUnawaited(order.undo(copies), copies ? std::string() : order.record);
    }
    if (result.kind == Kind::contended) {
        return {};
    }
    return result.kind == Kind::granted ? Errc::shutdown : result.error;
}

} // namespace redislock::detail
