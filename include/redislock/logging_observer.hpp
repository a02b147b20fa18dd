/// @file
/// An observer that writes each event as a line of a log.
#pragma once

#include "redislock/export.hpp"
#include "redislock/observer.hpp"
#include "redislock/unlocked.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <string_view>
#include <system_error>

namespace redislock {

/// How important a log line is, in ascending order.
enum class LogLevel : std::uint8_t {
    debug,   ///< normal operation: acquired, contended, renewed, released
    info,    ///< connected, and notifications that were missed
    warning, ///< what leads to a loss unless it passes, and what slows waiters down
    error,   ///< a hold was lost, or a release was not confirmed
};

/// The enumerator's name; for other values "unknown".
constexpr std::string_view toString(LogLevel level) noexcept
{
    constexpr std::string_view names[] = {"debug", "info", "warning", "error"};
    const auto index = static_cast<std::size_t>(level);
    return index < std::size(names) ? names[index] : "unknown";
}

/// Writes each event as one line to a function of the user, which passes it on to a log.
///
/// | level   | events |
/// |---------|--------|
/// | debug   | acquired, contended, renewed, released |
/// | info    | connected, pushMissed |
/// | warning | renewalFailed, atRisk, heldTooLong, keyWithoutTtl, subscribeRefused, disconnected, warned |
/// | error   | lost, unconfirmed |
///
/// **Guarantees**: a line is printable ASCII without a line break, whatever the names are: any other byte is written as
/// `\xHH`, and a name is cut after 200 characters. It never contains a password. **Does not guarantee** the wording,
/// which may change with any version: programs that count events should derive from Observer.
///
/// **Thread safety**: safe if the sink is. The sink is called on the thread of the client that has the observer; if
/// several clients share the observer, at the same time. **Blocking**: renewals wait for the sink, so it must not
/// block: a log that writes to a slow disk needs a queue. **If the sink throws**, or there is no memory for a line,
/// only that line is lost. **Cost**: about a microsecond per line on the client's thread; lines below the least level
/// are not made.
///
/// @code
/// config.observer = std::make_shared<redislock::LoggingObserver>(
///     [](redislock::LogLevel level, std::string_view line) {
///         std::clog << redislock::toString(level) << ": " << line << '\n';
///     });
/// // error: redisLock "stock:42" held by 5f0c…:17: lost: gone
/// @endcode
class REDISLOCK_EXPORT LoggingObserver final : public Observer {
public:
    /// Receives each line, without a line break at its end. The view is valid during the call only.
    using Sink = std::function<void(LogLevel level, std::string_view line)>;

    /// @param sink not empty. @param least lines of lower levels are left out; by default, none are.
    /// @throws LockError `invalidArgument`: the sink is empty.
    explicit LoggingObserver(Sink sink, LogLevel least = LogLevel::debug);

    void acquired(const LockEvent& event, std::chrono::nanoseconds waited, std::uint32_t attempts) noexcept override;
    void contended(const LockEvent& event, std::optional<std::chrono::milliseconds> left,
                   std::chrono::nanoseconds waited, std::uint32_t attempts) noexcept override;
    void renewed(const LockEvent& event, std::chrono::nanoseconds took) noexcept override;
    void renewalFailed(const LockEvent& event, std::error_code error) noexcept override;
    void atRisk(const LockEvent& event, std::chrono::nanoseconds validFor, LossReason reason) noexcept override;
    void lost(const LockEvent& event, LossReason reason) noexcept override;
    void released(const LockEvent& event, Unlocked how, std::chrono::nanoseconds held) noexcept override;
    void unconfirmed(const LockEvent& event) noexcept override;
    void heldTooLong(const LockEvent& event, std::chrono::nanoseconds held) noexcept override;
    void keyWithoutTtl(const LockEvent& event) noexcept override;
    void pushMissed(const LockEvent& event) noexcept override;
    void subscribeRefused(const LockEvent& event) noexcept override;
    void connected(std::string_view purpose) noexcept override;
    void disconnected(std::string_view purpose, std::error_code error, std::string_view why) noexcept override;
    void warned(std::string_view what) noexcept override;

private:
    Sink sink_;
    LogLevel least_;
};

} // namespace redislock
