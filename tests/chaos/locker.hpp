/// @file
/// A thread of a chaos run.
#pragma once

#include "chaos/habits.hpp"
#include "chaos/progress.hpp"
#include "history/recorded_group.hpp"
#include "history/recorded_guard.hpp"
#include "history/recorded_permits.hpp"
#include "support/eventually.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

namespace redislock::test::chaos {

/// Adds one to a number for as long as this object lives.
class Counted {
public:
    explicit Counted(std::atomic<int>& counter) : counter_(counter) { ++counter_; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    ~Counted() { --counter_; }

private:
    std::atomic<int>& counter_;
};

/// The objects that a locker shares with others.
struct Shared {
    std::vector<history::RecordedLock> locks;
    std::vector<history::RecordedPermits> permits;
    std::vector<history::RecordedSemaphore> semaphores;
    std::vector<history::RecordedGroup> groups{};
};

/// One thread, its locks and permits: takes and frees them in all the ways that block.
class Locker {
public:
    Locker(Board& board, Slot& slot, std::uint64_t seed, Shared shared)
        : board_(board), slot_(slot), habits_(seed), shared_(std::move(shared))
    {
    }

    void run()
    {
        while (!board_.ending) {
            auto which = habits_.upTo(shared_.locks.size() + shared_.permits.size() + shared_.semaphores.size() +
                                      shared_.groups.size() - 1);
            const auto use = [&](auto& some, auto round) {
                const bool isOneOf = which < some.size();
                if (isOneOf) {
                    round(some[which]);
                }
                which -= isOneOf ? 0 : some.size();
                return isOneOf;
            };
            (void)(use(shared_.locks, [this](auto& lock) { round(lock); }) ||
                   use(shared_.permits, [this](auto& permits) { leased(permits); }) ||
                   use(shared_.semaphores, [this](auto& semaphore) { unleased(semaphore); }) ||
                   use(shared_.groups, [this](auto& group) { roundOfGroup(group); }));
        }
    }

    /// Holds the lock for some renewals, then releases it to the one waiter: nobody else asks for it.
    void runPatiently(history::RecordedLock lock)
    {
        using namespace std::chrono_literals;
        while (!board_.ending) {
            if (tryLock(lock, 3s, keepRenewing)) {
                const Counted holding(slot_.holding);
                use(lock, habits_.between(300, 3000));
                unlock(lock);
            }
            std::this_thread::sleep_for(300ms);
        }
    }

private:
    void round(history::RecordedLock& lock)
    {
        switch (habits_.upTo(9)) {
        case 0:
        case 1:
            return guarded(lock);
        case 2:
            return executed(lock);
        case 3:
            return awaited(lock);
        default:
            return plain(lock);
        }
    }

    void roundOfGroup(history::RecordedGroup& group)
    {
        switch (habits_.upTo(4)) {
        case 0:
            return guarded(group);
        case 1:
            return awaited(group);
        default:
            return plain(group);
        }
    }

    /// tryLock() and unlock(); sometimes one unlock() too many.
    template <class Lock>
    void plain(Lock& lock)
    {
        if (!tryLock(lock, habits_.wait(), habits_.lease())) {
            return;
        }
        const Counted holding(slot_.holding);
        use(lock, habits_.hold());
        nest(lock);
        if (habits_.oneIn(2)) {
            goOnWithOtherHalf(lock);
        }
        unlock(lock);
        if (habits_.oneIn(20)) {
            lock.sample();
            unlock(lock);
        }
    }

    static void goOnWithOtherHalf(history::RecordedGroup&) {} // it has none

    /// A writer becomes a reader, and the writing ends first. A reader that wants to write is refused.
    void goOnWithOtherHalf(history::RecordedLock& lock)
    {
        const auto other = std::find_if(shared_.locks.begin(), shared_.locks.end(), [&](const auto& each) {
            return each.lock().name() == lock.lock().name() && each.kind() != lock.kind();
        });
        if (other == shared_.locks.end() || !tryLock(*other, habits_.wait(), habits_.lease())) {
            return;
        }
        unlock(lock);
        use(*other, habits_.hold());
        unlock(*other);
        (void)lock.sample();
    }

    template <class Lock>
    void guarded(Lock& lock)
    {
        auto held = [&] {
            const Counted waiting(slot_.waiting);
            return history::RecordedGuard(lock, habits_.wait(), habits_.lease());
        }();
        ++slot_.operations;
        if (!held.isHeld()) {
            return;
        }
        const Counted holding(slot_.holding);
        use(held, habits_.hold());
        nest(lock);
        if (habits_.oneIn(2)) {
            held.release();
        }
        ++slot_.operations;
    }

    void executed(history::RecordedLock& lock)
    {
        const bool called = history::executeRecorded(lock, habits_.wait(), habits_.lease(), [&] {
            const Counted holding(slot_.holding);
            use(lock, habits_.hold());
            nest(lock);
        });
        slot_.operations += called ? 2 : 1;
    }

    /// An asynchronous call through a future. Its hold does not belong to the thread: it is not nested.
    template <class Lock>
    void awaited(Lock& lock)
    {
        auto [ec, guard] = [&] {
            const Counted waiting(slot_.waiting);
            return history::awaitRecorded(lock, habits_.wait(), habits_.lease());
        }();
        history::RecordedGuard held(lock, ec, std::move(guard));
        ++slot_.operations;
        if (held.isHeld()) {
            const Counted holding(slot_.holding);
            use(held, habits_.hold());
            ++slot_.operations;
        }
    }

    void leased(history::RecordedPermits& permits)
    {
        const bool got = [&] {
            const Counted waiting(slot_.waiting);
            return permits.tryAcquire(habits_.wait(), habits_.shortLease());
        }();
        ++slot_.operations;
        if (got) {
            const Counted holding(slot_.holding);
            use(permits, habits_.hold());
            if (habits_.oneIn(2)) {
                permits.release();
            } else {
                permits.end();
            }
            ++slot_.operations;
        }
    }

    void unleased(history::RecordedSemaphore& semaphore)
    {
        const bool got = [&] {
            const Counted waiting(slot_.waiting);
            return semaphore.tryAcquire(static_cast<std::int64_t>(1 + habits_.upTo(1)), habits_.wait());
        }();
        ++slot_.operations;
        if (got) {
            const Counted holding(slot_.holding);
            std::this_thread::sleep_for(habits_.hold());
            semaphore.release();
            ++slot_.operations;
        }
    }

    /// A group is not re-entrant: a second lock() is refused.
    template <class Lock>
    void nest(Lock& lock)
    {
        if (habits_.oneIn(6) && tryLock(lock, habits_.wait(), habits_.lease())) {
            use(lock, habits_.hold() / 4);
            unlock(lock);
            lock.sample();
        }
    }

    template <class Lock>
    bool tryLock(Lock& lock, Wait wait, Lease lease)
    {
        const Counted waiting(slot_.waiting);
        const bool got = lock.tryLock(wait, lease);
        ++slot_.operations;
        return got;
    }

    template <class Lock>
    void unlock(Lock& lock)
    {
        lock.unlock();
        ++slot_.operations;
    }

    /// Relies on the hold, and samples it now and then, until the time is over or the hold is lost.
    template <class Held>
    void use(Held& held, std::chrono::milliseconds time)
    {
        const Stopwatch watch;
        while (held.sample() && watch.elapsed() < time && !board_.ending) {
            std::this_thread::sleep_for(std::min<std::chrono::milliseconds>(time, std::chrono::milliseconds(7)));
        }
    }

    Board& board_;
    Slot& slot_;
    Habits habits_;
    Shared shared_;
};

} // namespace redislock::test::chaos
