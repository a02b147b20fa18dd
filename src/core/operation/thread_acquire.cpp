#include "core/operation/thread_acquire.hpp"

#include <utility>

namespace redislock::detail {

ThreadAcquire::ThreadAcquire(Core& core, NamedLock& named, const AcquireOrder& order, std::uint64_t caller)
    : core_(core)
{
    if (Hold* own = core.validHold(named, caller)) {
        if (named.traits().isReentrant) {
            nested_.emplace(core, *own, order);
        }
        return;
    }
    const Hold* other = core.holdOfOtherKind(named, caller);
    if (other != nullptr && named.kind != LockKind::readLock) {
        return; // would wait for its own hold to end; with several such readers, each for the others
    }
    outermost_.emplace(core, named, core.takeHold(named, caller, Lane::commands), order, nullptr);
    outermost_->call().writer = other != nullptr ? other->id : HolderId{};
}

std::error_code ThreadAcquire::conclude(Acquired& acquired, Rest& rest)
{
    if (nested_) {
        return nested_->conclude(acquired);
    }
    if (!outermost_) {
        return Errc::wouldDeadlock;
    }
    const auto error = outermost_->conclude(acquired);
    auto hold = outermost_->hold;
    outermost_.reset();
    if (acquired.hold != hold) { // nothing, or a hold that this thread inherited
        rest.named = core_.recycle(hold);
        rest.hold = std::move(hold);
    }
    return error;
}

} // namespace redislock::detail
