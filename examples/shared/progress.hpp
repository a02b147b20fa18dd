/// @file
/// The progress that the user sees while the shop is open.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

#include <unistd.h>

namespace example {

/// A bar if standard error is a terminal; otherwise a line now and then.
class Progress {
public:
    Progress(std::string lock, long long stock) : lock_(std::move(lock)), stock_(stock) {}
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    ~Progress()
    {
        if (terminal_) {
            fmt::print(stderr, "\r\x1b[K"); // the table takes its place
        }
    }

    void show(long long left, long long sold)
    {
        if (terminal_) {
            const auto full = std::clamp((stock_ - left) * width / stock_, 0LL, width);
            fmt::print(stderr, "\rlock={:<9} [{:#<{}}{:.<{}}] stock {:>5}  sold {:>6}\x1b[K", lock_, "", full, "",
                       width - full, left, sold);
            std::fflush(stderr);
        } else if (const auto now = Clock::now(); now >= nextLine_) {
            fmt::print(stderr, "lock={}: stock {}, sold {}\n", lock_, left, sold);
            nextLine_ = now + std::chrono::seconds(2);
        }
    }

private:
    using Clock = std::chrono::steady_clock;
    static constexpr long long width = 40;

    std::string lock_;
    long long stock_;
    bool terminal_ = ::isatty(STDERR_FILENO) == 1;
    Clock::time_point nextLine_ = Clock::now() + std::chrono::seconds(1);
};

} // namespace example
