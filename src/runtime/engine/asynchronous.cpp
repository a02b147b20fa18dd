// Asynchronous operations: how they begin. Each is an object on the background thread.
#include "logic/lock/name_call.hpp"
#include "redislock/async_execute_with_lock.hpp"
#include "redislock/lock_guard.hpp"
#include "runtime/engine/async_acquire.hpp"
#include "runtime/engine/async_query.hpp"
#include "runtime/engine/completion.hpp"
#include "runtime/engine/engine.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/system_executor.hpp>

#include <algorithm>
#include <memory>
#include <utility>

namespace redislock::detail {

namespace asio = boost::asio;

namespace {

/// What waits for the answer to a release. Background thread.
struct ReleaseAnswer : std::enable_shared_from_this<ReleaseAnswer> {
    ReleaseAnswer(Completion<Unlocked> c, boost::asio::io_context& io) : completion(std::move(c)), timer(io) {}

    void end(Unlocked result)
    {
        if (!std::exchange(ended, true)) {
            timer.cancel();
            completion({}, result);
        }
    }

    /// Goes on in the background after that.
    void endAt(TimePoint when)
    {
        if (!ended) {
            timer.expires_after(when - BootClock::now());
            timer.async_wait([self = shared_from_this()](boost::system::error_code ec) {
                if (!ec) {
                    self->end(Unlocked::unconfirmed);
                }
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

asio::any_completion_executor Engine::handlerExecutor()
{
    if (!isForked()) {
        start();
        const Lock lock(mutex_); // under which `closing_` is set: until the completion is over the thread goes on
        if (!closing_) {
            return asio::prefer(asio::any_completion_executor(background_->io.get_executor()),
                                asio::execution::outstanding_work.tracked);
        }
    }
    return asio::system_executor();
}

std::function<void()> Engine::doAt(TimePoint when, std::function<void()> what)
{
    start();
    const Lock lock(mutex_); // under which `closing_` is set: what was begun before is still done
    if (closing_) {
        return nullptr;
    }
    return [this, weak = std::weak_ptr(later(when, std::move(what)))] {
        post([weak] {
            if (const auto due = weak.lock()) {
                due->what = nullptr;
                due->timer.cancel();
            }
        });
    };
}

void Engine::asyncAcquire(std::shared_ptr<NamedLock> named, AcquireOrder order, LockHandler handler)
{
    auto completion = completionOf(std::move(handler));
    auto refused = order.lease.isValid() ? whyNot(isForked(), closing_) : std::optional(Errc::invalidArgument);
    if (!refused) {
        const auto operation =
            std::make_shared<AsyncAcquire>(*this, std::move(named), std::move(order), std::move(completion));
        operation->cancelWhenToldTo();
        const Lock lock(mutex_);
        if (!closing_) {
            return post([operation] { operation->begin(); });
        }
        refused = Errc::shutdown;
        completion = operation->takeCompletion();
    }
    completion(std::error_code(*refused), LockGuard());
}

/// Ends a level, which counts as ended from here on; its answer is waited for as long as a blocking call would.
void Engine::asyncRelease(const Acquired& acquired, UnlockHandler handler)
{
    auto completion = completionOf(std::move(handler));
    const auto how = [&]() -> std::optional<Unlocked> {
        if (isForked()) {
            return Unlocked::alreadyLost;
        }
        const Lock lock(mutex_);
        Hold& hold = *acquired.hold;
        if (!core_.isHeld(acquired)) {
            return Unlocked::alreadyLost;
        }
        const TimePoint end = std::min(hold.validUntil(), saturatingAdd(BootClock::now(), config_.unreachableAfter));
        const auto answer = std::make_shared<ReleaseAnswer>(std::move(completion), background_->io);
        const auto tell = [this, answer](Unlocked result) { post([answer, result] { answer->end(result); }); };
        if (core_.releasing.endLevel(hold, acquired.level, tell)) {
            tell(Unlocked::stillHeld);
        } else {
            post([answer, end] { answer->endAt(end); });
        }
        return std::nullopt;
    }();
    if (how) {
        return completion({}, *how);
    }
    commands_->flush();
}

void Engine::asyncTimeToLive(const std::shared_ptr<NamedLock>& named, TimeHandler handler)
{
    using Time = std::optional<std::chrono::milliseconds>;
    asyncQuery<Time>(nameCall(*named, named->traits().pttl), std::move(handler),
                     [](const auto& asked, std::error_code ec, const QueryMachine&, const Reply& reply) {
                         const Time time = ec ? std::nullopt : timeToLiveOf(reply, ec);
                         asked->completion(codeOf(ec), time);
                     });
}

void Engine::asyncIsLocked(const std::shared_ptr<NamedLock>& named, FlagHandler handler)
{
    asyncQuery<bool>(nameCall(*named, named->traits().pttl), std::move(handler),
                     [](const auto& asked, std::error_code ec, const QueryMachine&, const Reply& reply) {
                         const bool locked = !ec && timeToLiveOf(reply, ec).has_value();
                         asked->completion(codeOf(ec), locked);
                     });
}

/// In two steps, as forceUnlock().
void Engine::asyncForceUnlock(const std::shared_ptr<NamedLock>& named, FlagHandler handler)
{
    asyncQuery<bool>(nameCall(*named, named->traits().holder), std::move(handler),
                     [this, named](const auto& asked, std::error_code ec, const QueryMachine&, const Reply& reply) {
                         const auto holder = ec ? std::nullopt : holderOf(reply, ec);
                         if (!holder) {
                             return asked->completion(codeOf(ec), false);
                         }
                         const auto end = std::make_shared<AsyncQuery>(
                             *this, nameCall(*named, named->traits().forceUnlock, {*holder, named->channel()}),
                             [this, named, asked, forced = *holder](std::error_code error, const QueryMachine& machine,
                                                                    const Reply& answer) {
                                 const bool was = !error && freed(answer, machine, error);
                                 if (was) {
                                     const Lock lock(mutex_);
                                     core_.loseForced(*named, forced);
                                 }
                                 asked->completion(codeOf(error), was);
                             });
                         asked->query = end;
                         end->begin();
                     });
}

} // namespace redislock::detail
