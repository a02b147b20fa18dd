// The end of a client.
#include "runtime/counter/counter.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/engine/underway.hpp"

#include <algorithm>
#include <utility>

namespace redislock::detail {

Underway::Underway(Engine& engine) noexcept : engine_(&engine)
{
    engine.core_.begins();
}

Underway::~Underway()
{
    if (engine_ != nullptr) {
        const Engine::Lock lock(engine_->mutex_);
        engine_->core_.ends();
    }
}

/// Everything local ends: waiters are told, holds are lost. @return false when that was done before.
bool Engine::closeLocalState(std::vector<std::shared_ptr<NamedLock>>& names)
{
    const Lock lock(mutex_);
    if (closing_.exchange(true)) {
        return false;
    }
    names = core_.close();
    NamedCounter::end(*this);
    return true;
}

bool Engine::shutdown(std::chrono::milliseconds timeout) noexcept
{
    if (isForked()) {
        return true;
    }
    const TimePoint until = saturatingAdd(BootClock::now(), timeout);
    std::vector<std::shared_ptr<NamedLock>> names; // let go of at the end
    if (!closeLocalState(names)) {
        return true;
    }
    bool answered = true;
    {
        Lock lock(mutex_);
        while (core_.isAnythingUnderWay() && !onOwnThread() && BootClock::now() < until) {
            changed_.wait_for(lock, until - BootClock::now());
        }
        answered = !core_.isAnythingUnderWay();
    }
    commands_->shutdown(Errc::shutdown);
    endThread(until);
    return answered;
}

/// What waits is over, and what pauses is done now. Background thread.
void Engine::Background::close()
{
    renewalTimer.close();
    connector.close();
    renewals.close();
    subscriber.close();
    sweepTimer.close();
    work.reset();
    for (const auto& each : later) {
        each->timer.cancel();
    }
}

/// Lets the background thread run out of work. It is waited for a little; a look-up that hangs must not hang the caller.
void Engine::endThread(TimePoint until) noexcept
{
    post([this] {
        {
            const Lock lock(mutex_);
            outboxClosed_ = true;
        }
        sendOutbox();
        background_->close();
    });
    std::unique_lock lock(threadMutex_);
    if (!thread_.joinable()) {
        return;
    }
    if (onOwnThread()) {
        thread_.detach();
        return;
    }
    const TimePoint end = std::max(until, BootClock::now() + std::chrono::milliseconds(100));
    while (threadRunning_ && BootClock::now() < end) {
        threadEnded_.wait_for(lock, end - BootClock::now());
    }
    auto thread = std::move(thread_);
    const bool ended = !threadRunning_;
    lock.unlock();
    ended ? thread.join() : thread.detach();
}

} // namespace redislock::detail
