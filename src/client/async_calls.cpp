#include "client/async_calls.hpp"

#include "client/async_operation.hpp"
#include "client/lock/lock_access.hpp"
#include "core/name_call.hpp"
#include "core/operation/acquire_flow.hpp"
#include "core/operation/query_flow.hpp"
#include "core/operation/release_flow.hpp"
#include "core/operation/shutdown_flow.hpp"
#include "redislock/async_execute_with_lock.hpp"
#include "redislock/lock_guard.hpp"

#include <memory>
#include <utility>

namespace redislock::detail {

namespace {

/// Asks about a name. @param meaning of the reply
template <class Result, class Meaning>
void ask(const std::shared_ptr<NamedLock>& named, const ScriptUse& use, Handler<Result> handler, Meaning meaning)
{
    Engine& engine = engineOf(*named);
    launch<QueryFlow>(
        engine, {}, std::move(handler),
        [named, call = nameCall(*named, use)](std::optional<QueryFlow>& flow, BackgroundRun* run) {
            flow.emplace(run->core(), call, run);
        },
        [named, meaning](std::optional<QueryFlow>& flow, bool cancelled) {
            std::error_code ec = flow->error();
            const Result result = ec ? Result() : meaning(flow->reply(), ec);
            noteUnfit(engineOf(*named), ec, flow->reply());
            return [ec = handlersCode(ec, cancelled), result](auto& completion) { completion(ec, result); };
        });
}

} // namespace

boost::system::error_code codeOf(const std::exception_ptr& thrown)
{
    try {
        std::rethrow_exception(thrown);
    } catch (const boost::system::system_error& e) {
        return e.code();
    } catch (const std::system_error& e) {
        return e.code();
    } catch (...) {
        return std::error_code(Errc::functionThrew);
    }
}

void AsyncCalls::acquire(std::shared_ptr<NamedLock> named, AcquireOrder order, LockHandler handler)
{
    Engine& engine = engineOf(*named);
    const auto refused = isValid(order, engine.config()) ? std::optional<Reason>() : Errc::invalidArgument;
    const auto asked = std::make_shared<const AcquireOrder>(std::move(order));
    launch<AcquireFlow>(
        engine, refused, std::move(handler),
        [named, asked](std::optional<AcquireFlow>& flow, BackgroundRun* run) {
            Core& core = run->core();
            auto hold = patiently([&] { return core.takeHold(*named, 0, Lane::background); });
            flow.emplace(core, *named, std::move(hold), *asked, run);
        },
        [named](std::optional<AcquireFlow>& flow, bool cancelled) {
            Acquired acquired;
            const auto ec = handlersCode(flow->conclude(acquired), cancelled);
            HoldRef hold = flow->hold;
            flow.reset();
            std::shared_ptr<NamedLock> rest;
            if (acquired.hold != hold) { // nothing, or a hold that this call inherited
                rest = named->core->recycle(hold);
            }
            return [ec, guard = LockAccess::guard(std::move(acquired)), hold = std::move(hold),
                    rest = std::move(rest)](auto& completion) mutable { completion(ec, std::move(guard)); };
        });
}

void AsyncCalls::release(const Acquired& acquired, UnlockHandler handler)
{
    Engine& engine = engineOf(*acquired.hold->lock);
    auto completion = completionOf(engine, std::move(handler));
    if (engine.isForked()) {
        return completion({}, Unlocked::alreadyLost);
    }
    const auto release = asyncOperation<ReleaseFlow>(
        engine, std::move(completion),
        [&hold = *acquired.hold, level = acquired.level](std::optional<ReleaseFlow>& flow, BackgroundRun* run) {
            flow.emplace(run->core(), hold, level, Asker::caller, run);
        },
        [hold = acquired.hold](std::optional<ReleaseFlow>& flow, bool /*cancelled*/) mutable {
            const Unlocked how = flow->result();
            Core& core = *hold->lock->core;
            flow.reset();
            auto rest = core.recycle(hold);
            return [how, hold = std::move(hold), rest = std::move(rest)](auto& told) { told({}, how); };
        });
    {
        const auto lock = engine.lock();
        if (engine.core(lock).isHeld(acquired)) {
            release->start();
        } else {
            completion = release->takeCompletion();
        }
    }
    completion({}, Unlocked::alreadyLost); // does nothing if the release has begun
    engine.flush();
}

void AsyncCalls::timeToLive(const std::shared_ptr<NamedLock>& named, TimeHandler handler)
{
    ask(named, named->traits().pttl, std::move(handler), timeToLiveOf);
}

void AsyncCalls::isLocked(const std::shared_ptr<NamedLock>& named, FlagHandler handler)
{
    ask(named, named->traits().pttl, std::move(handler),
        [](const Reply& reply, std::error_code& ec) { return timeToLiveOf(reply, ec).has_value(); });
}

void AsyncCalls::forceUnlock(const std::shared_ptr<NamedLock>& named, FlagHandler handler)
{
    launch<ForceFlow>(
        engineOf(*named), {}, std::move(handler),
        [named](std::optional<ForceFlow>& flow, BackgroundRun* run) { flow.emplace(run->core(), named, run); },
        [](std::optional<ForceFlow>& flow, bool cancelled) {
            return [ec = handlersCode(flow->error(), cancelled), was = flow->wasFreed()](auto& completion) {
                completion(ec, was);
            };
        });
}

void AsyncCalls::connect(Engine& engine, FlagHandler handler)
{
    launch<ConnectFlow>(
        engine, {}, std::move(handler),
        [](std::optional<ConnectFlow>& flow, BackgroundRun* run) { flow.emplace(run->core(), run); },
        [](std::optional<ConnectFlow>& flow, bool cancelled) {
            return [ec = handlersCode(flow->error(), cancelled)](auto& completion) { completion(ec, !ec); };
        });
}

/// The background thread keeps running until the connections end: later, nothing would destroy what is posted.
void AsyncCalls::shutdown(Engine& engine, std::chrono::milliseconds timeout, FlagHandler handler)
{
    const TimePoint until = saturatingAdd(BootClock::now(), timeout);
    auto completion = completionOf(engine, std::move(handler));
    if (engine.isForked() || !engine.beginEnd()) {
        return completion({}, true);
    }
    const auto end = asyncOperation<ShutdownFlow>(
        engine, std::move(completion),
        [until](std::optional<ShutdownFlow>& flow, BackgroundRun* run) { flow.emplace(run->core(), until, run); },
        [&engine](std::optional<ShutdownFlow>& flow, bool cancelled) {
            const auto ec = cancelled ? boost::system::error_code(boost::asio::error::operation_aborted)
                                      : boost::system::error_code();
            return [&engine, ec, answered = flow->isAnswered()](auto& told) {
                engine.endConnections();
                const auto last = std::make_shared<Completion<bool>>(std::move(told));
                engine.post([last, ec, answered] { (*last)(ec, answered); }); // after that
            };
        });
    end->listenToCancellation();
    engine.post([end] { end->startLater(); });
}

} // namespace redislock::detail
