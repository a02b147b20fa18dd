#include "redislock/logging_observer.hpp"

#include "redislock/error.hpp"
#include "values/printable.hpp"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <string>
#include <utility>

namespace redislock {

namespace {

using std::chrono::nanoseconds;

/// A time in the unit that suits it: "850 us", "1.20 ms", "29.9 s".
std::string readable(nanoseconds time)
{
    constexpr double minute = 60;
    constexpr double hour = 60 * minute;
    struct Unit {
        double seconds;
        std::string_view name;
    };
    constexpr Unit units[] = {{24 * hour, "d"}, {hour, "h"}, {minute, "min"}, {1, "s"}, {1e-3, "ms"}, {1e-6, "us"}};
    const double seconds = std::chrono::duration<double>(time).count();
    for (const Unit& unit : units) {
        const double count = seconds / unit.seconds;
        const double size = std::abs(count);
        if (size >= 1 || &unit == std::end(units) - 1) {
            const int decimals = size < 9.995 ? 2 : (size < 99.95 ? 1 : 0);
            return fmt::format("{:.{}f} {}", count, decimals, unit.name);
        }
    }
    return {};
}

/// What an event is about: redisLock "stock:42".
std::string object(const LockEvent& event)
{
    constexpr std::size_t longest = 200;
    return fmt::format("{} \"{}\"", toString(event.kind), detail::printable(event.name, longest));
}

/// What an event is about, with its hold.
std::string hold(const LockEvent& event)
{
    return event.holder.empty() ? object(event)
                                : fmt::format("{} held by {}", object(event), detail::printable(event.holder));
}

std::string tries(nanoseconds waited, std::uint32_t attempts)
{
    return fmt::format(" after {}, {} attempt{}", readable(waited), attempts, attempts == 1 ? "" : "s");
}

/// Who has the lock, and for how long, as far as that is known. The holder was made printable when it was read.
std::string whoHasIt(const LockEvent& event, std::optional<std::chrono::milliseconds> left)
{
    const std::string time = left ? " for another " + readable(*left) : std::string();
    if (!event.holder.empty()) {
        return fmt::format(": held by {}{}", event.holder, time);
    }
    return left ? ": not free" + time : std::string();
}

/// Gives the sink the text that @p line makes, unless its level is too low.
template <class Line>
void write(const LoggingObserver::Sink& sink, LogLevel least, LogLevel level, Line line) noexcept
{
    if (level < least) {
        return;
    }
    try {
        sink(level, line());
    } catch (...) { // no memory, or the sink threw: there is nobody to tell
        return;
    }
}

} // namespace

LoggingObserver::LoggingObserver(Sink sink, LogLevel least) : sink_(std::move(sink)), least_(least)
{
    if (!sink_) {
        throw LockError(Errc::invalidArgument, "LoggingObserver needs a sink, but got an empty function");
    }
}

void LoggingObserver::acquired(const LockEvent& event, nanoseconds waited, std::uint32_t attempts) noexcept
{
    write(sink_, least_, LogLevel::debug, [&] {
        const auto by = event.holder.empty() ? std::string() : " by " + detail::printable(event.holder);
        return fmt::format("{}: acquired{}{}", object(event), by, tries(waited, attempts));
    });
}

void LoggingObserver::contended(const LockEvent& event, std::optional<std::chrono::milliseconds> left,
                                nanoseconds waited, std::uint32_t attempts) noexcept
{
    write(sink_, least_, LogLevel::debug, [&] {
        return fmt::format("{}: not acquired{}{}", object(event), tries(waited, attempts), whoHasIt(event, left));
    });
}

void LoggingObserver::renewed(const LockEvent& event, nanoseconds took) noexcept
{
    write(sink_, least_, LogLevel::debug,
          [&] { return fmt::format("{}: renewed in {}", hold(event), readable(took)); });
}

void LoggingObserver::renewalFailed(const LockEvent& event, std::error_code error) noexcept
{
    write(sink_, least_, LogLevel::warning,
          [&] { return fmt::format("{}: renewal failed: {}", hold(event), error.message()); });
}

void LoggingObserver::atRisk(const LockEvent& event, nanoseconds validFor, LossReason reason) noexcept
{
    write(sink_, least_, LogLevel::warning, [&] {
        return fmt::format("{}: at risk, valid for {}: {}", hold(event), readable(validFor), toString(reason));
    });
}

void LoggingObserver::lost(const LockEvent& event, LossReason reason) noexcept
{
    write(sink_, least_, LogLevel::error, [&] { return fmt::format("{}: lost: {}", hold(event), toString(reason)); });
}

void LoggingObserver::released(const LockEvent& event, Unlocked how, nanoseconds held) noexcept
{
    write(sink_, least_, LogLevel::debug, [&] {
        return fmt::format("{}: {}{}", hold(event), toString(how),
                           held == nanoseconds::zero() ? std::string() : " after " + readable(held));
    });
}

void LoggingObserver::unconfirmed(const LockEvent& event) noexcept
{
    write(sink_, least_, LogLevel::error,
          [&] { return hold(event) + ": its release got no answer while its lease lasted"; });
}

void LoggingObserver::heldTooLong(const LockEvent& event, nanoseconds held) noexcept
{
    write(sink_, least_, LogLevel::warning,
          [&] { return fmt::format("{}: held too long, no longer renewed after {}", hold(event), readable(held)); });
}

void LoggingObserver::keyWithoutTtl(const LockEvent& event) noexcept
{
    write(sink_, least_, LogLevel::warning, [&] {
        return fmt::format("{}: its key has no time to live, only its owner or an operator can free it{}",
                           object(event), whoHasIt(event, std::nullopt));
    });
}

void LoggingObserver::pushMissed(const LockEvent& event) noexcept
{
    write(sink_, least_, LogLevel::info,
          [&] { return hold(event) + ": the notification was missed, found free by a periodic check"; });
}

void LoggingObserver::subscribeRefused(const LockEvent& event) noexcept
{
    write(sink_, least_, LogLevel::warning,
          [&] { return object(event) + ": the subscription for wake-ups was refused, waiters poll"; });
}

void LoggingObserver::connected(std::string_view purpose) noexcept
{
    write(sink_, least_, LogLevel::info, [&] { return fmt::format("connection for {}: connected", purpose); });
}

void LoggingObserver::disconnected(std::string_view purpose, std::error_code, std::string_view why) noexcept
{
    write(sink_, least_, LogLevel::warning, [&] { return fmt::format("connection for {}: {}", purpose, why); });
}

void LoggingObserver::warned(std::string_view what) noexcept
{
    write(sink_, least_, LogLevel::warning, [&] { return std::string(what); });
}

} // namespace redislock
