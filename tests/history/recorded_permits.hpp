/// @file
/// Semaphores and latches whose calls go into a history.
#pragma once

#include "history/call_log.hpp"

#include <chrono>
#include <cstdint>
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
        // a permit that was over before the call returned looks as if it had not been acquired
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

    /// As the end of a Permit: the release is sent, and nobody waits for the answer.
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

/// A semaphore whose permits have no lease, as one thread uses it.
class RecordedSemaphore {
public:
    RecordedSemaphore(std::shared_ptr<Recorder> recorder, const Client& client, const std::string& name, int thread)
        : log_(std::move(recorder), client, "semaphore", name, thread), semaphore_(client.getSemaphore(name))
    {
    }

    /// As Semaphore::tryAcquire(permits, wait).
    bool tryAcquire(std::int64_t permits, Wait wait)
    {
        log_.lockBegins(wait, Lease(std::chrono::milliseconds(0)), permits);
        std::error_code ec;
        permits_ = semaphore_.tryAcquire(permits, wait, ec) ? permits : 0;
        permits_ > 0 ? log_.locked([] { return Belief{std::chrono::milliseconds::max(), 1}; }) : log_.notLocked(ec);
        return permits_ > 0;
    }

    /// As Semaphore::release() of all that was acquired.
    void release()
    {
        log_.unlockBegins();
        std::error_code ec;
        semaphore_.release(permits_, ec);
        log_.unlocked(ec ? Unlocked::unconfirmed : Unlocked::released, {}, 0); // it goes on in the background
        permits_ = 0;
    }

private:
    CallLog log_;
    Semaphore semaphore_;
    std::int64_t permits_ = 0;
};

/// A latch, as one thread uses it.
class RecordedLatch {
public:
    RecordedLatch(std::shared_ptr<Recorder> recorder, const Client& client, const std::string& name, int thread)
        : recorder_(std::move(recorder)),
          latch_(client.getCountDownLatch(name)),
          line_{.thread = thread, .client = client.id(), .lock = name}
    {
    }

    /// As CountDownLatch::countDown().
    void countDown()
    {
        begin(Op::countDown);
        std::error_code ec;
        line_.count = latch_.countDown(ec);
        end(ec ? Phase::unknown : Phase::ok, ec); // it goes on in the background
        line_.count.reset();
    }

    /// As CountDownLatch::wait(). @return whether the latch is open.
    bool wait(Wait limit)
    {
        begin(Op::await);
        std::error_code ec;
        const bool isOpen = latch_.wait(limit, ec);
        end(ec ? Phase::unknown : isOpen ? Phase::ok : Phase::fail, ec);
        return isOpen;
    }

private:
    void begin(Op op)
    {
        line_.op = op;
        line_.phase = Phase::invoke;
        line_.error = {};
        recorder_->write(line_);
    }

    void end(Phase phase, std::error_code ec)
    {
        line_.phase = phase;
        line_.error = ec ? ec.message() : "";
        recorder_->write(line_);
    }

    std::shared_ptr<Recorder> recorder_;
    CountDownLatch latch_;
    Record line_;
};

} // namespace redislock::test::history
