/// @file
/// The actions of a thread of the library under load: it comes in, stays for a moment, and leaves, again and again.
#pragma once

#include "objects.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::test {

/// `kind load name style hold pause`: the kind may also be `readWrite`, where every fourth turn writes; `end load` ends
/// all of a process. Style: the objects of the process (`keep`), an `object` for each turn, or a whole `client` for
/// each turn. Hold, and the longest of the random pauses between turns, in ms.
/// Answers while it runs:
///
///     client <id>            the id of a fresh client that asks next
///     in <waited us> <mode>  the thread has come in: `w` to write, or alone; `r` to read
///     out                    the thread is about to leave
///     lost <why>             the release failed, or the observer reported a loss
///
/// Each answer has the time on `CLOCK_MONOTONIC`, the same for all processes of the host. Thread safety: safe.
class Load {
public:
    using Tell = std::function<void(const std::string& thread, std::string_view how, const std::string& what)>;
    using Make = std::function<Objects(std::shared_ptr<Observer>)>;

    Load(Make make, Tell tell);

    std::optional<std::string> run(const std::string& thread, const std::vector<std::string>& words);

private:
    void turn(const std::string& thread, const std::string& mode, const Turnstile& door,
              std::chrono::milliseconds hold);

    Make make_;
    Tell tell_;
    std::shared_ptr<Observer> observer_;
    std::once_flag once_;
    std::optional<Objects> objects_;
    std::atomic<bool> ending_{false};
};

} // namespace redislock::test
