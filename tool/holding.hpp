/// @file
/// What is held while a command runs, and how it is obtained.
#pragma once

#include "command.hpp"
#include "settings.hpp"

#include <redislock/redislock.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

namespace redislock::tool {

/// A lock, or a permit of a semaphore, that is held and renewed. Wakes those who wait for signals (by SIGCHLD) when it
/// comes to be at risk, and when it is lost.
class Holding {
public:
    Holding() = default;
    Holding(const Holding&) = delete;
    Holding& operator=(const Holding&) = delete;
    virtual ~Holding() = default;

    /// How long it is certain to last; 0: it is lost.
    [[nodiscard]] virtual std::chrono::milliseconds validFor() const = 0;
    /// A renewal should have come, or a fixed lease is nearly over.
    [[nodiscard]] virtual bool isAtRisk() const = 0;
    /// Of a fenced lock.
    [[nodiscard]] virtual std::optional<FencingToken> token() const { return std::nullopt; }
    /// Gives it back, and waits for the answer.
    virtual Unlocked release(std::error_code& ec) = 0;
};

/// A moment of the boot clock, which goes on while the machine is suspended; can be polled.
class Deadline {
public:
    Deadline();
    Deadline(const Deadline&) = delete;
    Deadline& operator=(const Deadline&) = delete;
    ~Deadline();

    [[nodiscard]] int handle() const noexcept { return handle_; }
    void set(std::chrono::milliseconds fromNow) const noexcept;

private:
    int handle_;
};

/// Writes a line about what is held to standard error, or drops it if nobody reads there: the command's end must not
/// wait for that.
void say(const Settings& settings, const std::string& words);

/// How obtaining ended.
struct Obtained {
    std::unique_ptr<Holding> holding; ///< nothing: the wait is over, or was ended by a signal
    int signal = 0;
};

/// Waits for what is to be held. Says who holds it after a second, and when it gives up. @throws what acquiring threw
Obtained obtain(const Client& client, const Settings& settings, const Signals& signals);
/// Gives back what is held, and says when that did not go well.
Unlocked giveBack(Holding& holding, const Settings& settings, bool wasEnded);

/// Waits with what is held until a signal comes, or a process ends, or it is lost. @param process a handle; -1: none.
/// @return whether it was lost
bool holdOn(const Holding& holding, const Settings& settings, const Signals& signals, int process = -1);

} // namespace redislock::tool
