/// @file
/// Mutexes for very short sections, and words for which mutex guards what, which Clang checks (-Wthread-safety) and
/// other compilers ignore.
#pragma once

#include "link/request/signal.hpp"

#include <pthread.h>

#include <cstdint>
#include <utility>

#if defined(__clang__)
#define REDISLOCK_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define REDISLOCK_THREAD_SAFETY(attribute)
#endif

/// A member that is read and written under that mutex only.
#define REDISLOCK_GUARDED_BY(mutex) REDISLOCK_THREAD_SAFETY(guarded_by(mutex))
/// A function that is called with that mutex locked.
#define REDISLOCK_REQUIRES(mutex) REDISLOCK_THREAD_SAFETY(requires_capability(mutex))
#define REDISLOCK_ACQUIRES(...) REDISLOCK_THREAD_SAFETY(acquire_capability(__VA_ARGS__))
#define REDISLOCK_RELEASES(...) REDISLOCK_THREAD_SAFETY(release_capability(__VA_ARGS__))

namespace redislock::detail {

/// Like std::mutex, but spins for a moment before it sleeps: the sections it guards are shorter than a trip to the
/// scheduler, and many threads want it at the same time, when one reply has woken them all.
class REDISLOCK_THREAD_SAFETY(capability("mutex")) AdaptiveMutex {
public:
    AdaptiveMutex() = default;
    AdaptiveMutex(const AdaptiveMutex&) = delete;
    AdaptiveMutex& operator=(const AdaptiveMutex&) = delete;
    ~AdaptiveMutex() { ::pthread_mutex_destroy(&mutex_); }

    void lock() noexcept REDISLOCK_ACQUIRES() { ::pthread_mutex_lock(&mutex_); }
    bool try_lock() noexcept REDISLOCK_THREAD_SAFETY(try_acquire_capability(true))
    {
        return ::pthread_mutex_trylock(&mutex_) == 0;
    }
    void unlock() noexcept REDISLOCK_RELEASES() { ::pthread_mutex_unlock(&mutex_); }

private:
#ifdef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
    pthread_mutex_t mutex_ = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
#else
    pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
#endif
};

/// Holds the mutex, like std::unique_lock, which Clang's analysis does not understand.
class REDISLOCK_THREAD_SAFETY(scoped_lockable) AdaptiveLock {
public:
    explicit AdaptiveLock(AdaptiveMutex& mutex) noexcept REDISLOCK_ACQUIRES(mutex) : mutex_(mutex) { mutex_.lock(); }
    AdaptiveLock(const AdaptiveLock&) = delete;
    AdaptiveLock& operator=(const AdaptiveLock&) = delete;
    ~AdaptiveLock() REDISLOCK_RELEASES()
    {
        if (locked_) {
            mutex_.unlock();
        }
    }

    void lock() noexcept REDISLOCK_ACQUIRES()
    {
        mutex_.lock();
        locked_ = true;
    }
    void unlock() noexcept REDISLOCK_RELEASES()
    {
        locked_ = false;
        mutex_.unlock();
    }

private:
    friend class Gap;

    AdaptiveMutex& mutex_;
    bool locked_ = true;
};

/// Unlocks the caller's lock for as long as the gap lives, in a function that is called with it locked. Clang takes the
/// mutex for locked all the time.
class Gap {
public:
    explicit Gap(AdaptiveLock& lock) noexcept REDISLOCK_THREAD_SAFETY(no_thread_safety_analysis) : lock_(lock)
    {
        lock_.mutex_.unlock();
    }
    Gap(const Gap&) = delete;
    Gap& operator=(const Gap&) = delete;
    ~Gap() REDISLOCK_THREAD_SAFETY(no_thread_safety_analysis) { lock_.mutex_.lock(); }

private:
    AdaptiveLock& lock_;
};

/// An AdaptiveMutex whose owner can have a thread woken when the mutex is free: a woken thread first of all wants the
/// mutex, and the system call takes longer than the guarded work.
class REDISLOCK_THREAD_SAFETY(capability("mutex")) WakingMutex {
public:
    void lock() noexcept REDISLOCK_ACQUIRES() REDISLOCK_THREAD_SAFETY(no_thread_safety_analysis) { mutex_.lock(); }
    void unlock() noexcept REDISLOCK_RELEASES() REDISLOCK_THREAD_SAFETY(no_thread_safety_analysis)
    {
        const void* const sleeper = std::exchange(sleeper_, nullptr);
        mutex_.unlock();
        if (sleeper != nullptr) {
            Signal::wake(sleeper);
        }
    }

    /// Raises a reason; if the thread sleeps on the signal, it is woken when the mutex is unlocked. Expects the mutex
    /// locked.
    void notify(Signal& signal, std::uint32_t reason) noexcept
    {
        if (!signal.raise(reason)) {
            return;
        }
        if (const void* const before = std::exchange(sleeper_, signal.address())) {
            Signal::wake(before);
        }
    }

private:
    AdaptiveMutex mutex_;
    const void* sleeper_ = nullptr; ///< the address it sleeps on; what is there may be gone
};

} // namespace redislock::detail
