/// @file
/// The common parts of AcquireMachine's tests: the answers of Redis, and a story.
#pragma once

#include "core/machine/acquire_machine.hpp"
#include "unit/machine_script.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>

namespace redislock::test::acquire {

using namespace std::chrono_literals;
using namespace detail;
using std::chrono::milliseconds;
using Kind = AcquireResult::Kind;
using Settings = AcquireMachine::Settings;
using Story = Script<AcquireMachine>;

inline Settings waiting(Wait wait)
{
    Settings settings;
    settings.lease = 30s;
    settings.wait = wait;
    return settings;
}

inline Player<AcquireMachine> playerOf(const Settings& settings)
{
    return {.machine = AcquireMachine(settings)};
}

/// The answers of Redis, a millisecond after the request.
inline Replied<LockAnswer> granted(milliseconds now)
{
    return {at(now), at(now - 1ms), {LockAnswer::Kind::granted}};
}

inline Replied<LockAnswer> busy(milliseconds now, std::optional<milliseconds> timeToLive)
{
    return {at(now), at(now - 1ms), {LockAnswer::Kind::busy, timeToLive}};
}

inline Replied<LockAnswer> gone(milliseconds now)
{
    return {at(now), at(now - 1ms), {LockAnswer::Kind::gone}};
}

inline Failed refused(milliseconds now)
{
    return failed(now, Failure::refused, Errc::serverRefused);
}

inline Failed demoted(milliseconds now)
{
    return failed(now, Failure::demoted, Errc::serverRefused);
}

/// The machine tries, subscribes, tries again, polls, gets a message, and is granted the lock.
inline Story contendedStory()
{
    return {
        {Start{at(0ms)}, "send, until 10000 ms"},         {busy(2ms, 20s), "subscribe, until 1002 ms"},
        {Notified{at(3ms)}, "send, until 10002 ms"},      {busy(5ms, 20s), "sleep until 1005 ms"},
        {TimerFired{at(1005ms)}, "send, until 10005 ms"}, {busy(1007ms, 19s), "sleep until 2007 ms"},
        {Notified{at(1500ms)}, "send, until 11007 ms"},   {granted(1502ms), "done"},
    };
}

} // namespace redislock::test::acquire
