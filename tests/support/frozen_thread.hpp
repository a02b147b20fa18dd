/// @file
/// A thread that stands still, whatever it is doing.
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <sys/types.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <string>

namespace redislock::test {

/// While this object lives, another thread of this process stands still in a signal handler. One object at a time.
class FrozenThread {
public:
    explicit FrozenThread(pthread_t thread)
    {
        ::sem_init(&entered_, 0, 0);
        ::sem_init(&left_, 0, 0);
        struct sigaction action {};
        action.sa_handler = stand;
        action.sa_flags = SA_RESTART;
        ::sigaction(SIGUSR1, &action, &before_);
        ::pthread_kill(thread, SIGUSR1);
        await(entered_);
    }
    FrozenThread(const FrozenThread&) = delete;
    FrozenThread& operator=(const FrozenThread&) = delete;
    ~FrozenThread()
    {
        ::sem_post(&left_);
        await(entered_); // the handler is about to end, and touches nothing more
        ::sigaction(SIGUSR1, &before_, nullptr);
    }

    /// Whether a thread of this process sleeps. @param thread its id in the kernel
    static bool sleeps(pid_t thread)
    {
        std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
        std::string line;
        std::getline(file, line);
        const auto name = line.rfind(") ");
        return name != std::string::npos && line.compare(name + 2, 1, "S") == 0;
    }

private:
    static void await(sem_t& semaphore) noexcept
    {
        while (::sem_wait(&semaphore) != 0 && errno == EINTR) {
        }
    }

    static void stand(int) noexcept
    {
        const int error = errno;
        ::sem_post(&entered_);
        await(left_); // not allowed in a signal handler in general, but here it is only a futex
        ::sem_post(&entered_);
        errno = error;
    }

    static inline sem_t entered_;
    static inline sem_t left_;
    struct sigaction before_ {};
};

} // namespace redislock::test
