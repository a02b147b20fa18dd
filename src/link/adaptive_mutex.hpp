/// @file
/// A mutex for very short sections.
#pragma once

#include "link/thread_safety.hpp"

#include <pthread.h>

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

} // namespace redislock::detail
