/// @file
/// A mutex that wakes a thread when it is unlocked.
#pragma once

#include "link/adaptive_mutex.hpp"
#include "link/request/signal.hpp"

#include <cstdint>
#include <utility>

namespace redislock::detail {

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
