/// @file
/// A mutex for very short sections.
#pragma once

#include <pthread.h>

namespace redislock::detail {

/// As std::mutex, but spins for a moment before it sleeps: the sections it guards are shorter than a trip to the
/// scheduler, and many threads come for it at the same time, when one reply woke them all.
class AdaptiveMutex {
public:
    AdaptiveMutex() = default;
    AdaptiveMutex(const AdaptiveMutex&) = delete;
    AdaptiveMutex& operator=(const AdaptiveMutex&) = delete;
    ~AdaptiveMutex() { ::pthread_mutex_destroy(&mutex_); }

    void lock() noexcept { ::pthread_mutex_lock(&mutex_); }
    bool try_lock() noexcept { return ::pthread_mutex_trylock(&mutex_) == 0; }
    void unlock() noexcept { ::pthread_mutex_unlock(&mutex_); }

private:
#ifdef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
    pthread_mutex_t mutex_ = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
#else
    pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
#endif
};

} // namespace redislock::detail
