/// @file
/// The other ways of taking a lock, recorded: a guard, a function under the lock, asynchronous calls.
#pragma once

#include "history/recorded_lock.hpp"

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/system/system_error.hpp>

#include <cstdint>
#include <future>
#include <system_error>
#include <utility>

namespace redislock::test::history {

/// A LockGuard or a GroupGuard. Its end is written down too: the release is sent, and nobody waits for the answer.
/// @tparam Recorded RecordedLock or RecordedGroup.
template <class Recorded>
class RecordedGuard {
public:
    using Guard = typename Recorded::Guard;

    /// As Guard(lock, wait, lease): the hold of a lock belongs to the thread.
    RecordedGuard(Recorded& lock, Wait wait, Lease lease) : lock_(lock), isOfThread_(Recorded::threadsOwnGuards)
    {
        lock_.log().lockBegins(wait, lease);
        std::error_code ec;
        guard_ = Guard(lock_.lock(), wait, lease, ec);
        noteResult(ec);
    }
    /// The result of an asynchronous call whose beginning was written down: the hold belongs to the guard.
    RecordedGuard(Recorded& lock, std::error_code ec, Guard guard)
        : lock_(lock), isOfThread_(false), guard_(std::move(guard))
    {
        noteResult(ec);
    }
    RecordedGuard(const RecordedGuard&) = delete;
    RecordedGuard& operator=(const RecordedGuard&) = delete;
    ~RecordedGuard()
    {
        if (isHeld_) {
            lock_.log().unlockBegins();
            guard_ = Guard();
            lock_.log().unlockSent(left());
        }
    }

    /// Whether the lock was acquired, and not released since.
    [[nodiscard]] bool isHeld() const noexcept { return isHeld_; }

    /// As Guard::release().
    Unlocked release()
    {
        lock_.log().unlockBegins();
        std::error_code ec;
        const auto how = guard_.release(ec);
        noteRelease(ec, how);
        return how;
    }

    /// As Guard::asyncRelease(): @p done is called when the answer has been written down.
    template <class Executor, class Done>
    void asyncRelease(const Executor& executor, Done done)
    {
        lock_.log().unlockBegins();
        guard_.asyncRelease(boost::asio::bind_executor(
            executor, [this, done = std::move(done)](boost::system::error_code ec, Unlocked how) mutable {
                noteRelease(ec, how);
                done();
            }));
    }

    /// Writes down what may be believed now. @return whether the lock is held.
    bool sample()
    {
        return lock_.log().sample([this] { return belief(); });
    }

private:
    [[nodiscard]] Belief belief() const
    {
        return isOfThread_ ? lock_.belief() : Belief{guard_.validFor(), guard_ ? 1 : 0};
    }
    [[nodiscard]] std::int64_t left() const { return isOfThread_ ? lock_.belief().count : 0; }

    void noteResult(std::error_code ec)
    {
        // A hold that was over before the call returned looks as if it had not been acquired: its caller never believed
        // in it.
        isHeld_ = !ec && static_cast<bool>(guard_);
        isHeld_ ? lock_.taken([this] { return belief(); }, guard_) : lock_.log().notLocked(ec);
    }

    void noteRelease(std::error_code ec, Unlocked how)
    {
        isHeld_ = false;
        lock_.log().unlocked(how, ec, left());
    }

    Recorded& lock_;
    bool isOfThread_;
    bool isHeld_ = false;
    Guard guard_;
};

/// As executeWithLock(). @return whether the function was called.
template <class Function>
bool executeRecorded(RecordedLock& lock, Wait wait, Lease lease, Function function)
{
    lock.log().lockBegins(wait, lease);
    try {
        const bool called = executeWithLock(lock.lock(), wait, lease, [&] {
            lock.log().locked([&] { return lock.belief(); });
            function();
            lock.log().unlockBegins();
        });
        called ? lock.log().unlockSent(lock.belief().count) : lock.log().notLocked({});
        return called;
    } catch (const LockError& error) {
        lock.log().notLocked(error.code());
        return false;
    }
}

/// As asyncTryLock(wait, lease, use_future).get().
template <class Recorded>
std::pair<std::error_code, typename Recorded::Guard> awaitRecorded(Recorded& lock, Wait wait, Lease lease)
{
    lock.log().lockBegins(wait, lease);
    try {
        return {std::error_code(), lock.lock().asyncTryLock(wait, lease, boost::asio::use_future).get()};
    } catch (const boost::system::system_error& error) {
        return {error.code(), typename Recorded::Guard()};
    }
}

} // namespace redislock::test::history
