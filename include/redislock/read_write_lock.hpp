/// @file
/// The lock of many readers or one writer.
#pragma once

#include "redislock/fwd.hpp"
#include "redislock/lock.hpp"

#include <chrono>
#include <utility>

namespace redislock {

/// The reading half of a ReadWriteLock: any number of holders at a time, as long as nobody writes.
///
/// As Lock, with *many* in place of *at most one*: all threads and processes may hold it together. Re-entrant; a thread
/// that holds the writing half may take it too, and keeps it when it gives the writing up. While a writer waits (see
/// ReadWriteLock) a thread that does not read yet waits too, and `try_lock()` and a `tryLock()` whose wait ends before
/// are refused.
class ReadLock : public Lock {
private:
    friend class Client;
    using Lock::Lock;
};

/// The writing half of a ReadWriteLock: one holder, and nobody reads but itself.
///
/// As Lock. Re-entrant. A thread that holds the reading half and asks for this one gets `Errc::wouldDeadlock` at once,
/// with a message that says so: two that did so would wait for each other for ever. There is no upgrade: end the
/// reading first.
class WriteLock : public Lock {
private:
    friend class Client;
    using Lock::Lock;
};

/// A lock that many may hold to read, or one to write; both re-entrant.
///
/// In Redis it is Redisson's `RReadWriteLock`: one hash for both halves, and a key for each read hold, with the time to
/// live of its lease. Its functions are those that the standard looks for (*SharedLockable*): `std::shared_lock` reads,
/// `std::unique_lock` and `std::scoped_lock` write. Everything else is in the halves.
///
/// **Guarantees**, besides those of Lock: a writer excludes everybody else; readers exclude writers only. A writer may
/// begin to read and then end the writing: others read from then on, and nobody writes in between.
/// **Writers do not starve**: while one waits for readers (`lock()`, or a wait longer than 0), no new reader of this
/// library comes in, for five times the writer's `Config::pollInterval` (5 s by default; at least 0.5 s), or until it
/// has been let in or has given up; so it waits only for readers that were there when it came. If those read for longer
/// than that, new readers come in for as long again, then they are held back once more, and so on: so readers that need
/// each other get on. A writer that died holds readers back for those 5 s at most.
/// **Does not guarantee** an order of writers; nor anything of the above to writers beside Redisson's readers, which
/// know nothing of it; nor that asynchronous holds of one caller know each other: their guards are holders of their
/// own. A lock of another kind with that name is refused as `Errc::wrongType`, where it is met.
///
/// Thread safety, blocking and the rest: see Lock.
///
/// **Cost**: as a RedisLock; reading has one more key for each level. A reader that leaves and had the longest lease of
/// all costs Redis a look at the keys of all the others. The end of writing wakes all waiters, of which readers then
/// ask together.
///
/// @code
/// redislock::ReadWriteLock prices = client.getReadWriteLock("prices");
/// { std::shared_lock reading(prices); show(); }
/// { std::unique_lock writing(prices); change(); }
/// @endcode
class ReadWriteLock {
public:
    /// The half that many may hold.
    [[nodiscard]] const ReadLock& readLock() const noexcept { return read_; }
    /// The half that only one may hold.
    [[nodiscard]] const WriteLock& writeLock() const noexcept { return write_; }

    /// Writing, under the standard's names (*Lockable*, *TimedLockable*); as in WriteLock.
    void lock() const { write_.lock(); }
    /// As WriteLock::try_lock().
    [[nodiscard]] bool try_lock() const { return write_.try_lock(); }
    /// As WriteLock::try_lock_for().
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period>& wait) const
    {
        return write_.try_lock_for(wait);
    }
    /// As WriteLock::try_lock_until().
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration>& until) const
    {
        return write_.try_lock_until(until);
    }
    /// As WriteLock::unlock().
    Unlocked unlock() const { return write_.unlock(); }

    /// Reading, under the standard's names (*SharedLockable*, *SharedTimedLockable*); as in ReadLock.
    void lock_shared() const { read_.lock(); }
    /// As ReadLock::try_lock().
    [[nodiscard]] bool try_lock_shared() const { return read_.try_lock(); }
    /// As ReadLock::try_lock_for().
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_shared_for(const std::chrono::duration<Rep, Period>& wait) const
    {
        return read_.try_lock_for(wait);
    }
    /// As ReadLock::try_lock_until().
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration>& until) const
    {
        return read_.try_lock_until(until);
    }
    /// As ReadLock::unlock().
    Unlocked unlock_shared() const { return read_.unlock(); }

    /// The name as given to the Client.
    [[nodiscard]] const std::string& name() const noexcept { return write_.name(); }

private:
    friend class Client;
    ReadWriteLock(ReadLock read, WriteLock write) noexcept : read_(std::move(read)), write_(std::move(write)) {}

    ReadLock read_;
    WriteLock write_;
};

} // namespace redislock
