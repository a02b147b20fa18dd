/// @file
/// Ctrl-C in a program that has to print something, or to clean up, before it ends.
#pragma once

#include <atomic>
#include <csignal>

namespace redislock::test {

/// While this object lives, the first SIGINT, SIGTERM or SIGHUP is only noted; the second ends the program. One object
/// at a time.
class Interruption {
public:
    Interruption() noexcept { handle(SIGINT, note), handle(SIGTERM, note), handle(SIGHUP, note); }
    Interruption(const Interruption&) = delete;
    Interruption& operator=(const Interruption&) = delete;
    ~Interruption() { handle(SIGINT, SIG_DFL), handle(SIGTERM, SIG_DFL), handle(SIGHUP, SIG_DFL); }

    [[nodiscard]] static bool isAsked() noexcept { return signal_ != 0; }
    /// The status that a shell reports for a program that a signal ended.
    [[nodiscard]] static int exitStatus() noexcept { return 128 + signal_; }

private:
    static void handle(int signal, void (*handler)(int)) noexcept
    {
        struct sigaction action {};
        action.sa_handler = handler;
        action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
        ::sigaction(signal, &action, nullptr);
    }

    static void note(int signal) noexcept { signal_ = signal; }

    static inline std::atomic<int> signal_{0};
    static_assert(std::atomic<int>::is_always_lock_free, "set by a signal handler");
};

} // namespace redislock::test
