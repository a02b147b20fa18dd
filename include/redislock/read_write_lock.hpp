/// @file
/// The lock of many readers or one writer.
#pragma once

#include "redislock/fwd.hpp"
#include "redislock/lock.hpp"

#include <chrono>
#include <utility>

namespace redislock {

/// The reading half of a ReadWriteLock: any number of holders at a time, while nobody writes.
///
/// As Lock, with *many* in place of *at most one*: all threads and processes may hold it together. Re-entrant; a thread
/// that holds the writing half may take this one too, and keeps it when it releases the writing half. While a writer
/// waits (see ReadWriteLock), a thread that does not yet hold this half waits too; `try_lock()`, and a `tryLock()`
/// whose wait ends before that, fail.
class ReadLock : public Lock {
private:
    friend class Client;
    using Lock::Lock;
};

/// The writing half of a ReadWriteLock: one holder, and nobody else reads.
///
/// As Lock. Re-entrant. A thread that holds the reading half and asks for this one gets `Errc::wouldDeadlock`
/// (`noUpgrade`) at once: two such threads would wait for each other for ever. There is no upgrade: release the reading
/// half first.
class WriteLock : public Lock {
private:
    friend class Client;
    using Lock::Lock;
};

/// A lock that many may hold to read, or one to write; both re-entrant.
///
/// In Redis it is Redisson's `RReadWriteLock`: one hash for both halves, and a key for each read hold, with the time to
/// live of its lease. Its functions have the standard's names (*SharedLockable*): `std::shared_lock` reads,
/// `std::unique_lock` and `std::scoped_lock` write. Everything else is in the two halves.
///
/// **Guarantees**, besides those of Lock: a writer excludes everybody else; readers exclude writers only. A writer may
/// take the reading half and then release the writing half: from then on others may read, and nobody writes in between.
/// **Writers do not starve**: while one waits for readers (`lock()`, or a wait longer than 0), no new reader of this
/// library is admitted for five times the writer's `Config::pollInterval` (5 s by default; at least 0.5 s), or until
/// the writer has the lock or has given up; so it waits only for the readers that were there when it came. If those
/// read for longer, new readers are admitted for the same time, then held back again, and so on, so that readers that
/// need each other make progress. A writer that died holds readers back for those 5 s at most.
/// **Does not guarantee** an order of writers; nor any of the above to writers among Redisson's readers, which do not
/// know of it; nor that the asynchronous holds of one caller know each other: each guard is a holder of its own. If the
/// name is in use by another kind of lock, calls fail with `Errc::wrongType`.
///
/// Thread safety, blocking and the rest: see Lock.
///
/// **Cost**: as a RedisLock; reading has one more key for each level. When the reader with the longest lease leaves,
/// Redis examines the keys of all the others. The release of the writing half notifies all waiters; the readers among
/// them then ask together.
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
