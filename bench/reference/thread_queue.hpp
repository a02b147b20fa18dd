/// @file
/// A lock that the threads of one process can have without a server.
#pragma once

#include "core/share/waiter_queue.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <mutex>

namespace redislock::bench {

/// A lock between threads that goes round in the order of asking, as among the waiters of a client: a mutex around a
/// queue, and a futex for each waiter.
class ThreadQueue {
public:
    void lock()
    {
        static thread_local Place place; // static: the waking thread may use its address after this one has gone on
        place.comes = 0;
        {
            const std::lock_guard guard(mutex_);
            if (!taken_) {
                taken_ = true;
                return;
            }
            queue_.join(place);
        }
        while (place.comes == 0) {
            ::syscall(SYS_futex, &place.comes, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
        }
    }

    void unlock()
    {
        Place* next = nullptr;
        {
            const std::lock_guard guard(mutex_);
            next = queue_.head();
            taken_ = next != nullptr;
            if (next != nullptr) {
                queue_.leave(*next);
            }
        }
        if (next != nullptr) {
            next->comes = 1;
            ::syscall(SYS_futex, &next->comes, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
        }
    }

private:
    struct Place : detail::WaiterLink<Place> {
        std::atomic<std::uint32_t> comes{0};
    };

    std::mutex mutex_;
    detail::WaiterQueue<Place> queue_;
    bool taken_ = false;
};

} // namespace redislock::bench
