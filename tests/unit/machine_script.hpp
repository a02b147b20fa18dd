/// @file
/// Machines played as scripts: expect this action, feed that event.
#pragma once

#include "link/request/event.hpp"
#include "redislock/clock.hpp"
#include "redislock/error.hpp"
#include "redislock/random.hpp"
#include "redislock/retry_policy.hpp"
#include "wire/fault.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace redislock::test {

/// A moment of the tests' own time, as the time since its beginning.
constexpr TimePoint at(std::chrono::nanoseconds sinceBegin) noexcept
{
    return TimePoint(std::chrono::hours(24)) + sinceBegin;
}

/// A clock that only the test moves.
class FakeClock {
public:
    explicit FakeClock(TimePoint now = at({})) noexcept : now_(now) {}

    [[nodiscard]] TimePoint now() const noexcept { return now_; }
    void advance(std::chrono::nanoseconds span) noexcept { now_ += span; }
    /// Never goes back.
    void advanceTo(TimePoint then) noexcept { now_ = std::max(now_, then); }

private:
    TimePoint now_;
};

/// A failure at that time.
inline detail::Failed failed(std::chrono::milliseconds now, detail::Failure failure, Errc error = Errc::unreachable)
{
    return {at(now), {failure, error}};
}

/// "1001 ms", "never", or with nanoseconds if the moment is not a whole millisecond.
inline std::string text(TimePoint then)
{
    if (then == TimePoint::max()) {
        return "never";
    }
    const auto span = then - at({});
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(span);
    const auto rest = span - ms;
    return std::to_string(ms.count()) + " ms" +
           (rest == rest.zero() ? "" : " and " + std::to_string(rest.count()) + " ns");
}

inline std::string text(const detail::Send& send)
{
    return "send, until " + text(send.until);
}

inline std::string text(const detail::Subscribe& subscribe)
{
    return "subscribe, until " + text(subscribe.until);
}

inline std::string text(const detail::AskPolicy& ask)
{
    return "ask the policy after attempt " + std::to_string(ask.attempt);
}

inline std::string text(const detail::SleepUntil& sleep)
{
    return "sleep until " + text(sleep.until);
}

template <class Result>
std::string text(const detail::Done<Result>& /*done*/)
{
    return "done";
}

/// An action in words.
template <class... Actions>
std::string text(const std::variant<Actions...>& action)
{
    return std::visit([](const auto& a) { return text(a); }, action);
}

/// The result of a machine; a failed test and a default value if it did not end.
template <class Result, class Action>
Result resultOf(const Action& action)
{
    if (const auto* done = std::get_if<detail::Done<Result>>(&action)) {
        return done->result;
    }
    ADD_FAILURE() << "not done, but: " << text(action);
    return Result{};
}

/// Whether the action is to sleep (not: to subscribe) until a moment between the two.
template <class Action>
testing::AssertionResult sleepsBetween(const Action& action, TimePoint least, TimePoint most)
{
    const auto* sleep = std::get_if<detail::SleepUntil>(&action);
    if (sleep != nullptr && sleep->until >= least && sleep->until <= most) {
        return testing::AssertionSuccess();
    }
    return testing::AssertionFailure() << text(action) << ", not between " << text(least) << " and " << text(most);
}

template <class Event>
TimePoint timeOf(const Event& event)
{
    return std::visit([](const auto& e) { return e.now; }, event);
}

/// The attempt after which an action asks the policy for a pause; 0: it does not ask.
template <class... Actions>
std::uint32_t asksPolicyAfter(const std::variant<Actions...>& action)
{
    return std::visit(
        [](const auto& a) -> std::uint32_t {
            if constexpr (requires { a.attempt; }) {
                return a.attempt;
            } else {
                return 0;
            }
        },
        action);
}

/// A machine with the further arguments of its resume(). Copyable: a copy goes on from the same point.
template <class M>
struct Player {
    using Machine = M;
    using Event = typename Machine::Event;
    using Action = typename Machine::Action;

    Machine machine{};
    Random random{20260101};
    std::chrono::milliseconds lease{30000}; ///< for machines that get the lease with each event
    const RetryPolicy* policy = nullptr;    ///< asked at once when the machine asks for a pause; null: the test answers

    Action resume(const Event& event)
    {
        const auto action = resumeMachine(event);
        if constexpr (std::is_constructible_v<Event, detail::Pause>) {
            if (const auto attempt = asksPolicyAfter(action); attempt > 0 && policy != nullptr) {
                const auto pause = policy->pauseAfter(attempt, random);
                return resumeMachine(detail::Pause{timeOf(event), pause ? std::optional(pause->span()) : std::nullopt});
            }
        }
        return action;
    }

    Action resumeMachine(const Event& event)
    {
        if constexpr (requires { machine.resume(event, lease, random); }) {
            return machine.resume(event, lease, random);
        } else if constexpr (requires { machine.resume(event, random); }) {
            return machine.resume(event, random);
        } else {
            return machine.resume(event);
        }
    }
};

/// An event and the machine's answer to it, in the words of text().
template <class Machine>
struct Scene {
    typename Machine::Event event;
    std::string action;
};

template <class Machine>
using Script = std::vector<Scene<Machine>>;

/// Plays the first @p count scenes (default: all) and expects their actions. @return the last action.
template <class Machine>
typename Machine::Action play(Player<Machine>& player, const Script<Machine>& script, std::size_t count = SIZE_MAX)
{
    std::optional<typename Machine::Action> last;
    for (std::size_t i = 0; i < script.size() && i < count; ++i) {
        last = player.resume(script[i].event);
        EXPECT_EQ(text(*last), script[i].action) << "in scene " << i;
    }
    return *last;
}

/// The lastErrors that can happen to a step instead of its regular event.
enum class Trouble : std::uint8_t { notConnected, lostReply, refused, fatal, badReply, timedOut, cancelled };

inline constexpr Trouble allTroubles[] = {Trouble::notConnected, Trouble::lostReply, Trouble::refused,  Trouble::fatal,
                                          Trouble::badReply,     Trouble::timedOut,  Trouble::cancelled};

inline const char* text(Trouble trouble)
{
    switch (trouble) {
    case Trouble::notConnected:
        return "not connected";
    case Trouble::lostReply:
        return "reply lost";
    case Trouble::refused:
        return "refused";
    case Trouble::fatal:
        return "fatal error";
    case Trouble::badReply:
        return "answered with nonsense";
    case Trouble::timedOut:
        return "timed out";
    case Trouble::cancelled:
        return "cancelled";
    }
    return "";
}

/// Whether a request that met the trouble may have been executed.
constexpr bool leavesOpen(Trouble trouble) noexcept
{
    return trouble != Trouble::notConnected && trouble != Trouble::fatal;
}

/// Whether the trouble ends the operation at once, wherever it happens.
constexpr bool isEnd(Trouble trouble) noexcept
{
    return trouble == Trouble::fatal || trouble == Trouble::badReply || trouble == Trouble::cancelled;
}

/// The error of an operation if the trouble persists.
constexpr Errc errorOf(Trouble trouble) noexcept
{
    switch (trouble) {
    case Trouble::refused:
        return Errc::serverRefused;
    case Trouble::fatal:
        return Errc::permissionDenied;
    case Trouble::badReply:
        return Errc::badReply;
    case Trouble::cancelled:
        return Errc::shutdown;
    default:
        return Errc::unreachable;
    }
}

/// Until when an action sleeps; a time long ago if it does not sleep.
template <class... Actions>
TimePoint wakesAt(const std::variant<Actions...>& action)
{
    return std::visit(
        [](const auto& a) {
            using Action = std::decay_t<decltype(a)>;
            if constexpr (std::is_same_v<Action, detail::SleepUntil> || std::is_same_v<Action, detail::Subscribe>) {
                return a.until;
            } else {
                return TimePoint{};
            }
        },
        action);
}

/// The trouble as an event after this action; nothing if the trouble cannot happen then.
template <class Machine>
std::optional<typename Machine::Event> eventOf(Trouble trouble, const typename Machine::Action& after, TimePoint now)
{
    using detail::Failure;
    if (trouble == Trouble::cancelled) {
        return detail::Cancelled{now, errorOf(trouble)};
    }
    const auto* send = std::get_if<detail::Send>(&after);
    if (send == nullptr) {
        return trouble == Trouble::timedOut
                   ? std::optional<typename Machine::Event>(detail::TimerFired{std::max(now, wakesAt(after))})
                   : std::nullopt;
    }
    const auto failed = [trouble](TimePoint when, Failure failure) {
        return detail::Failed{when, {failure, errorOf(trouble)}};
    };
    switch (trouble) {
    case Trouble::notConnected:
        return failed(now, Failure::notConnected);
    case Trouble::refused:
        return failed(now, Failure::refused);
    case Trouble::fatal:
    case Trouble::badReply:
        return failed(now, Failure::fatal);
    case Trouble::timedOut: // the connection's time-out ends a request that has no end of its own
        return failed(send->until == TimePoint::max() ? now + std::chrono::seconds(3) : std::max(now, send->until),
                      Failure::lostReply);
    default:
        return failed(now, Failure::lostReply);
    }
}

/// Replays the script once for each of its steps and each trouble that can meet it there.
///
/// @param check is called with the trouble, a player that met it, the player's next action, and the time.
template <class Machine, class Check>
void forEachStepFail(const Player<Machine>& fresh, const Script<Machine>& script, Check check)
{
    int played = 0;
    for (std::size_t step = 1; step < script.size(); ++step) {
        for (const Trouble trouble : allTroubles) {
            SCOPED_TRACE("step " + std::to_string(step) + ": " + text(trouble));
            Player<Machine> player = fresh;
            const auto before = play(player, script, step);
            const auto event = eventOf<Machine>(trouble, before, timeOf(script[step].event));
            if (event) {
                ++played;
                const bool asked = std::holds_alternative<detail::Send>(before);
                check(trouble, asked, player, player.resume(*event), timeOf(*event));
            }
        }
    }
    EXPECT_GE(played, static_cast<int>(script.size()));
}

/// Lets a machine meet the same trouble until it ends; each request takes 10 ms.
/// @return the last action; a failed test if the machine goes on after 100 000 steps.
template <class Machine>
typename Machine::Action persist(Player<Machine>& player, typename Machine::Action action, Trouble trouble,
                                 FakeClock& clock)
{
    for (int steps = 0; text(action) != "done"; ++steps) {
        if (steps == 100'000) {
            ADD_FAILURE() << "does not end";
            break;
        }
        if (std::holds_alternative<detail::Send>(action)) {
            clock.advance(std::chrono::milliseconds(10));
        }
        // a machine that sleeps wakes up when its time comes
        auto event = eventOf<Machine>(trouble, action, clock.now());
        if (!event) {
            event = eventOf<Machine>(Trouble::timedOut, action, clock.now());
        }
        clock.advanceTo(timeOf(*event));
        action = player.resume(*event);
    }
    return action;
}

} // namespace redislock::test
