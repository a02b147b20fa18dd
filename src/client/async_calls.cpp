#include "client/async_calls.hpp"

#include "client/async_acquire.hpp"
#include "client/async_query.hpp"
#include "client/completion.hpp"
#include "core/name_call.hpp"
#include "redislock/async_execute_with_lock.hpp"
#include "redislock/lock_guard.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <memory>
#include <utility>

namespace redislock::detail {

namespace {

/// Waits for the answer to a release. Background thread.
struct ReleaseAnswer : std::enable_shared_from_this<ReleaseAnswer> {
    ReleaseAnswer(Completion<Unlocked> c, boost::asio::io_context& io) : completion(std::move(c)), timer(io) {}

    void end(Unlocked result)
    {
        if (!std::exchange(ended, true)) {
            timer.cancel();
            completion({}, result);
        }
    }

    /// At that time, ends the call; the release goes on in the background.
    void endAt(TimePoint when)
    {
        if (!ended) {
            timer.expires_after(when - BootClock::now());
            patiently([this] {
                timer.async_wait([self = shared_from_this()](boost::system::error_code ec) {
                    if (!ec) {
                        self->end(Unlocked::unconfirmed);
                    }
                });
            });
        }
    }

    Completion<Unlocked> completion;
    boost::asio::steady_timer timer;
    bool ended = false;
};

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
    auto completion = completionOf(engine, std::move(handler));
    auto refused = order.lease.isValid() ? engine.asyncRefusal() : std::optional<Reason>(Errc::invalidArgument);
    if (!refused) {
        const auto operation =
            std::make_shared<AsyncAcquire>(engine, std::move(named), std::move(order), std::move(completion));
        operation->cancelWhenToldTo();
        if (engine.tryPost([operation] { operation->begin(); })) {
            return;
        }
        refused = Errc::shutdown;
        completion = operation->takeCompletion();
    }
    completion(std::error_code(*refused), LockGuard());
}

void AsyncCalls::release(const Acquired& acquired, UnlockHandler handler)
{
    Engine& engine = engineOf(*acquired.hold->lock);
    auto completion = completionOf(engine, std::move(handler));
    const auto how = [&]() -> std::optional<Unlocked> {
        if (engine.isForked()) {
            return Unlocked::alreadyLost;
        }
        const auto lock = engine.lock();
        Core& core = engine.core(lock);
        Hold& hold = *acquired.hold;
        if (!core.isHeld(acquired)) {
            return Unlocked::alreadyLost;
        }
        const TimePoint end =
            std::min(hold.validUntil(), saturatingAdd(BootClock::now(), engine.config().unreachableAfter));
        const auto answer = std::make_shared<ReleaseAnswer>(std::move(completion), engine.background().io);
        const auto tell = [&engine, answer](Unlocked result) {
            engine.post([answer, result] { answer->end(result); });
        };
        const auto ended = core.releasing.endLevel(hold, acquired.level, tell);
        if (ended != Unlocked::unconfirmed) {
            tell(ended);
        } else {
            engine.post([answer, end] { answer->endAt(end); });
        }
        return std::nullopt;
    }();
    if (how) {
        return completion({}, *how);
    }
    engine.commands().flush();
}

void AsyncCalls::timeToLive(const std::shared_ptr<NamedLock>& named, TimeHandler handler)
{
    using Time = std::optional<std::chrono::milliseconds>;
    asyncQuery<Time>(engineOf(*named), nameCall(*named, named->traits().pttl), std::move(handler),
                     [](const auto& asked, std::error_code ec, const QueryMachine&, const Reply& reply) {
                         const Time time = ec ? std::nullopt : timeToLiveOf(reply, ec);
                         asked->completion(codeOf(ec), time);
                     });
}

void AsyncCalls::isLocked(const std::shared_ptr<NamedLock>& named, FlagHandler handler)
{
    asyncQuery<bool>(engineOf(*named), nameCall(*named, named->traits().pttl), std::move(handler),
                     [](const auto& asked, std::error_code ec, const QueryMachine&, const Reply& reply) {
                         const bool locked = !ec && timeToLiveOf(reply, ec).has_value();
                         asked->completion(codeOf(ec), locked);
                     });
}

/// In two steps, like ThreadCalls::forceUnlock().
void AsyncCalls::forceUnlock(const std::shared_ptr<NamedLock>& named, FlagHandler handler)
{
    asyncQuery<bool>(engineOf(*named), nameCall(*named, named->traits().holder), std::move(handler),
                     [named](const auto& asked, std::error_code ec, const QueryMachine&, const Reply& reply) {
                         const auto holder = ec ? std::nullopt : holderOf(reply, ec);
                         if (!holder) {
                             return asked->completion(codeOf(ec), false);
                         }
                         {
                             Engine& engine = engineOf(*named);
                             const auto lock = engine.lock();
                             engine.core(lock).forces(*named, *holder);
                         }
                         const auto call = nameCall(*named, named->traits().forceUnlock, {*holder, named->channel()});
                         const auto end = std::make_shared<AsyncQuery>(
                             engineOf(*named), call,
                             [named, asked, forced = *holder, call](std::error_code error, const QueryMachine& machine,
                                                                    const Reply& answer) {
                                 const bool was = !error && wasFreed(answer, machine, error);
                                 if (was) {
                                     Engine& engine = engineOf(*named);
                                     const auto lock = engine.lock();
                                     engine.core(lock).loseForced(*named, forced, *call);
                                 }
                                 asked->completion(codeOf(error), was);
                             });
                         asked->query = end;
                         end->begin();
                     });
}

} // namespace redislock::detail
