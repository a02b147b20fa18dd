/// @file
/// Threads that are cancelled.
#pragma once

#include <pthread.h>

namespace redislock::detail {

/// While this exists, pthread_cancel() does not end the calling thread: it takes effect behind the library's calls.
/// Ended inside, a thread would leave the state of all threads half-changed, and functions that do not throw would end
/// the process.
class Uncancelled {
public:
    Uncancelled() noexcept { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
    Uncancelled(const Uncancelled&) = delete;
    Uncancelled& operator=(const Uncancelled&) = delete;
    ~Uncancelled() { ::pthread_setcancelstate(before_, nullptr); }

private:
    int before_ = PTHREAD_CANCEL_ENABLE;
};

} // namespace redislock::detail
