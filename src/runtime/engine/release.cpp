// Releasing: by the calling thread, which waits for the answer, or by a guard, which does not.
#include "logic/flow/release_flow.hpp"
#include "runtime/base/process.hpp"
#include "runtime/engine/drive.hpp"
#include "runtime/engine/engine.hpp"

#include <utility>

namespace redislock::detail {

Unlocked Engine::unlock(NamedLock& named, std::error_code& ec)
{
    ec.clear();
    if (isForked()) {
        return Unlocked::alreadyLost;
    }
    Lock lock(mutex_);
    bool owed = false;
    auto level = core_.innermostOf(named, currentThread(), owed);
    if (level.hold != nullptr) {
        return endLevel(lock, std::move(level));
    }
    if (!owed) {
        ec = Errc::notHeld;
    }
    return Unlocked::alreadyLost;
}

Unlocked Engine::release(Acquired acquired)
{
    if (isForked()) {
        return Unlocked::alreadyLost;
    }
    Lock lock(mutex_);
    return core_.isHeld(acquired) ? endLevel(lock, std::move(acquired)) : Unlocked::alreadyLost;
}

void Engine::releaseUnawaited(const Acquired& acquired) noexcept
{
    if (isForked()) {
        return;
    }
    try {
        Lock lock(mutex_);
        if (core_.isHeld(acquired)) {
            core_.releasing.endLevel(*acquired.hold, acquired.level);
            lock.unlock();
            commands_->flush();
        }
    } catch (...) { // out of memory: the hold is no longer renewed and ends with its lease
        return;
    }
}

/// Ends a level of a valid hold and waits for the answer.
Unlocked Engine::endLevel(Lock& lock, Acquired acquired)
{
    auto how = Unlocked::unconfirmed;
    if (onOwnThread()) {
        how = core_.releasing.endLevel(*acquired.hold, acquired.level) ? Unlocked::stillHeld : how;
    } else {
        ReleaseFlow flow(core_, *acquired.hold, acquired.level);
        drive(lock, flow);
        how = flow.result();
    }
    const auto rest = core_.recycle(std::move(acquired.hold)); // let go of after the mutex, as the hold
    lock.unlock();
    if (how == Unlocked::unconfirmed || how == Unlocked::stillHeld) {
        commands_->flush();
    }
    return how;
}

} // namespace redislock::detail
