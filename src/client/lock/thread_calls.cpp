#include "client/lock/thread_calls.hpp"

#include "client/drive.hpp"
#include "core/name_call.hpp"
#include "core/operation/query_flow.hpp"
#include "core/operation/release_flow.hpp"
#include "core/operation/thread_acquire.hpp"
#include "values/system/process.hpp"

#include <algorithm>
#include <utility>

namespace redislock::detail {

namespace {

/// Ends a level of a valid hold and waits for the answer.
Unlocked endLevel(Engine& engine, Engine::Lock& lock, Acquired acquired)
{
    Core& core = engine.core(lock);
    auto how = Unlocked::unconfirmed;
    if (engine.background().isOwnThread()) {
        how = core.releasing.endLevel(*acquired.hold, acquired.level);
    } else {
        ReleaseFlow flow(core, *acquired.hold, acquired.level, Asker::caller, nullptr);
        drive(engine, lock, flow);
        how = flow.result();
    }
    const auto rest = core.recycle(acquired.hold); // destroyed after the mutex is unlocked, like the hold
    lock.unlock();
    if (how == Unlocked::unconfirmed || how == Unlocked::stillHeld) {
        engine.flush();
    }
    return how;
}

} // namespace

std::error_code ThreadCalls::acquire(NamedLock& named, const AcquireOrder& order, const std::stop_token& stop,
                                     Acquired& acquired)
{
    Engine& engine = engineOf(named);
    if (!isValid(order, engine.config())) {
        return Errc::invalidArgument;
    }
    if (stop.stop_requested()) {
        return {};
    }
    if (const auto refused = engine.refusal()) {
        return *refused;
    }
    std::error_code error;
    ThreadAcquire::Rest rest; // destroyed after the mutex is unlocked
    {
        auto lock = engine.lock();
        ThreadAcquire flow(engine.core(lock), named, order, currentThread());
        const bool calledOff = drive(engine, lock, flow, stop);
        error = flow.conclude(acquired, rest);
        error = calledOff ? std::error_code() : error;
    }
    if (acquired.hold == nullptr) {
        engine.flush(); // writes the release of what may have been granted
    }
    return error;
}

Unlocked ThreadCalls::unlock(NamedLock& named, std::error_code& ec)
{
    Engine& engine = engineOf(named);
    ec.clear();
    if (engine.isForked()) {
        return Unlocked::alreadyLost;
    }
    auto lock = engine.lock();
    bool unlockOwed = false;
    auto level = engine.core(lock).innermostOf(named, currentThread(), unlockOwed);
    if (level.hold != nullptr) {
        return endLevel(engine, lock, std::move(level));
    }
    if (!unlockOwed) {
        ec = Errc::notHeld;
    }
    return Unlocked::alreadyLost;
}

Unlocked ThreadCalls::release(Acquired acquired)
{
    Engine& engine = engineOf(*acquired.hold->lock);
    if (engine.isForked()) {
        return Unlocked::alreadyLost;
    }
    auto lock = engine.lock();
    return engine.core(lock).isHeld(acquired) ? endLevel(engine, lock, std::move(acquired)) : Unlocked::alreadyLost;
}

void ThreadCalls::releaseUnawaited(const Acquired& acquired) noexcept
{
    Engine& engine = engineOf(*acquired.hold->lock);
    if (engine.isForked()) {
        return;
    }
    try {
        auto lock = engine.lock();
        Core& core = engine.core(lock);
        if (core.isHeld(acquired)) {
            const auto how = core.releasing.endLevel(*acquired.hold, acquired.level);
            lock.unlock();
            if (how != Unlocked::passedOn) {
                engine.flush();
            }
        }
    } catch (...) { // out of memory: the hold is no longer renewed and ends with its lease
        const auto lock = engine.lock();
        engine.core(lock).renewing.forget(*acquired.hold);
    }
}

// --- Questions -------------------------------------------------------------------------------------------------------

std::error_code ThreadCalls::query(Engine& engine, const std::shared_ptr<Call>& call, bool& repeated)
{
    if (const auto refused = engine.refusal()) {
        return *refused;
    }
    auto lock = engine.lock();
    QueryFlow flow(engine.core(lock), call, nullptr);
    drive(engine, lock, flow);
    repeated = flow.repeated();
    return flow.error();
}

bool ThreadCalls::forceUnlock(NamedLock& named, std::error_code& ec)
{
    Engine& engine = engineOf(named);
    if (const auto refused = engine.refusal()) {
        ec = *refused;
        return false;
    }
    auto lock = engine.lock();
    ForceFlow flow(engine.core(lock), named.shared_from_this(), nullptr);
    drive(engine, lock, flow);
    ec = flow.error();
    return flow.wasFreed();
}

std::optional<std::chrono::milliseconds> ThreadCalls::timeToLive(NamedLock& named, std::error_code& ec)
{
    Engine& engine = engineOf(named);
    if (const auto refused = engine.refusal()) { // before the request is made: a forked child must not allocate
        ec = *refused;
        return std::nullopt;
    }
    const auto call = nameCall(named, named.traits().pttl);
    bool repeated = false;
    ec = query(engine, call, repeated);
    const auto left = ec ? std::nullopt : timeToLiveOf(call->reply, ec);
    noteUnfit(engine, ec, call->reply);
    return left;
}

void ThreadCalls::connect(Engine& engine, std::error_code& ec)
{
    if (const auto refused = engine.refusal()) {
        ec = *refused;
        return;
    }
    auto lock = engine.lock();
    ConnectFlow flow(engine.core(lock), nullptr);
    drive(engine, lock, flow);
    ec = flow.error();
}

// --- What is known here ----------------------------------------------------------------------------------------------

std::uint32_t ThreadCalls::holdCount(const NamedLock& named) noexcept
{
    Engine& engine = engineOf(named);
    if (engine.isForked()) {
        return 0;
    }
    const auto lock = engine.lock();
    const Hold* hold = named.local.of(currentThread());
    return hold != nullptr && BootClock::now() < hold->validUntil() ? hold->levels.count() : 0;
}

std::chrono::milliseconds ThreadCalls::validFor(const NamedLock& named) noexcept
{
    Engine& engine = engineOf(named);
    if (engine.isForked()) {
        return {};
    }
    const auto lock = engine.lock();
    const Hold* hold = named.local.of(currentThread());
    const auto left = hold == nullptr ? BootClock::duration{} : hold->validUntil() - BootClock::now();
    return std::max(std::chrono::milliseconds{}, std::chrono::floor<std::chrono::milliseconds>(left));
}

std::stop_token ThreadCalls::stopToken(const NamedLock& named, StopAt when)
{
    Engine& engine = engineOf(named);
    if (engine.isForked()) {
        return Core::stoppedToken();
    }
    const auto lock = engine.lock();
    Hold* const hold = named.local.of(currentThread());
    return hold == nullptr ? Core::stoppedToken() : engine.core(lock).stopToken(*hold, when);
}

std::stop_token ThreadCalls::stopToken(Hold* hold, StopAt when)
{
    if (hold == nullptr || engineOf(*hold->lock).isForked()) {
        return Core::stoppedToken();
    }
    Engine& engine = engineOf(*hold->lock);
    const auto lock = engine.lock();
    return engine.core(lock).stopToken(*hold, when);
}

} // namespace redislock::detail
