/// @file
/// A semaphore of leased permits whose calls go into a history.
#pragma once

#include "history/call_log.hpp"

#include <memory>
#include <string>
#include <system_error>
#include <utility>

namespace redislock::test::history {

/// The permits of one thread, of which it has one at a time: invoke before, ok, fail or unknown after each call.
class RecordedPermits {
public:
    RecordedPermits(std::shared_ptr<Recorder> recorder, const Client& client, const std::string& name, int thread)
        : log_(std::move(recorder), client, "permit", name, thread),
          semaphore_(client.getPermitExpirableSemaphore(name))
    {
    }

    /// As PermitExpirableSemaphore::tryAcquire(wait, lease).
    bool tryAcquire(Wait wait, Lease lease)
    {
        log_.lockBegins(wait, lease);
        std::error_code ec;
        permit_ = semaphore_.tryAcquire(wait, lease, ec);
        // one that was over before the call returned looks as if it had not been acquired
        const bool isHeld = !ec && static_cast<bool>(permit_);
        isHeld ? log_.locked([this] { return belief(); }, {.holder = permit_.id()}) : log_.notLocked(ec);
        return isHeld;
    }

    /// As Permit::release().
    Unlocked release()
    {
        log_.unlockBegins();
        std::error_code ec;
        const auto how = permit_.release(ec);
        log_.unlocked(how, ec, 0);
        return how;
    }

    /// As the end of a Permit: the release is sent, and its answer is not waited for.
    void end()
    {
        log_.unlockBegins();
        permit_ = Permit();
        log_.unlockSent(0);
    }

    /// Writes down what the thread may believe now. @return whether it has a permit.
    bool sample()
    {
        return log_.sample([this] { return belief(); });
    }

private:
    [[nodiscard]] Belief belief() const { return {permit_.validFor(), permit_ ? 1 : 0}; }

    CallLog log_;
    PermitExpirableSemaphore semaphore_;
    Permit permit_;
};

} // namespace redislock::test::history
