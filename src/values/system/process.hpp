/// @file
/// This process and its threads: which they are, and what is drawn or kept for them.
#pragma once

#include "redislock/clock.hpp"
#include "redislock/config.hpp"

#include <pthread.h>
#include <sys/random.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <string>
#include <string_view>

namespace redislock::detail {

/// A number for the calling thread, never used again for another (the system's thread ids are).
std::uint64_t currentThread() noexcept;

/// How many forks lie between this process and the one that called this first. If the number has changed, all that was
/// made before belongs to the parent.
std::uint32_t forkGeneration() noexcept;

/// The name of this machine, or container; empty if the system does not tell it.
std::string hostName();

/// The name of a client's connections; empty: they have none. @param clientId the client's UUID
std::string connectionNameOf(const Config& config, std::string_view clientId);

/// A seed for the random part of pauses. Costs no system call but the first time; the clock makes the seeds of a forked
/// child differ from its parent's. Not by std::random_device: that asks the processor what it can do, and in a virtual
/// machine each such question is an exit to the host, 30 µs for a first client.
inline std::uint64_t freshSeed() noexcept
{
    static const std::uint64_t process = [] {
        std::uint64_t random = 0;
        (void)!::getrandom(&random, sizeof random, 0); // without it the clock alone tells processes apart
        return random;
    }();
    static std::atomic<std::uint64_t> calls{0};
    const auto now = static_cast<std::uint64_t>(BootClock::now().time_since_epoch().count());
    return (process << 32U) ^ (calls.fetch_add(1, std::memory_order_relaxed) << 48U) ^ now;
}

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

/// Blocks all signals for the calling thread, and for the threads that it starts meanwhile: signals are for the
/// program's own threads.
class BlockedSignals {
public:
    BlockedSignals() noexcept
    {
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    BlockedSignals(const BlockedSignals&) = delete;
    BlockedSignals& operator=(const BlockedSignals&) = delete;
    ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
    sigset_t before_{};
};

/// A thread goes on that nobody will join. If this code is a part of a library, it is not unloaded from now on.
void keepLoaded() noexcept;

} // namespace redislock::detail
