#include "link/connect/connect_machine.hpp"
#include "link/protocol.hpp"

#include "unit/machine_script.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::detail::connecting {
namespace {

using namespace std::chrono_literals;
using Machine = ConnectMachine;
using State = ConnectMachine::State;

std::string inWords(const Machine::Action& action)
{
    if (std::holds_alternative<Machine::Resolve>(action)) {
        return "resolve";
    }
    if (const auto* open = std::get_if<Machine::Open>(&action)) {
        const auto pause = std::chrono::duration_cast<std::chrono::milliseconds>(open->pause);
        return "open " + std::to_string(open->address) +
               (pause > 0ms ? ", the next after " + std::to_string(pause.count()) : "");
    }
    if (const auto* ready = std::get_if<Done<std::size_t>>(&action)) {
        return "take " + std::to_string(ready->result);
    }
    if (const auto* failed = std::get_if<Done<Fault>>(&action)) {
        return std::string(failed->result.failure == Failure::fatal ? "fatal: " : "transient: ") +
               std::error_code(failed->result.error).message();
    }
    return "wait";
}

std::string failed(Failure failure, Reason error)
{
    return inWords(Done<Fault>{{failure, error}});
}

const std::string unreachable = failed(Failure::notConnected, Errc::unreachable);
const std::string timedOut = failed(Failure::notConnected, Cause::connectTimedOut);

const Machine::Ended refused{};
const Machine::Ended loading{{Failure::notConnected, Errc::serverRefused}};
const Machine::Ended denied{{Failure::fatal, Errc::authFailed}};

Start start()
{
    return {test::at({})};
}

struct Scene {
    Machine::Event event;
    std::string action;
};

void play(const std::vector<Scene>& scenes)
{
    Machine machine;
    EXPECT_EQ(machine.state(), State::idle);
    for (std::size_t i = 0; i < scenes.size(); ++i) {
        EXPECT_EQ(inWords(machine.resume(scenes[i].event)), scenes[i].action) << "in scene " << i;
    }
}

TEST(ConnectMachine, TakesTheAddressOfANameThatIsReady)
{
    play({{start(), "resolve"},
          {Machine::Resolved{1, 3s}, "open 0"},
          {Machine::Ready{0}, "take 0"},
          {Machine::TimeOver{}, "wait"}});
}

TEST(ConnectMachine, TriesEachAddressAtOnceWhenTheOneBeforeHasFailed)
{
    play({{start(), "resolve"},
          {Machine::Resolved{3, 3s}, "open 0, the next after 250"},
          {refused, "open 1, the next after 250"},
          {refused, "open 2"},
          {refused, unreachable}});
}

TEST(ConnectMachine, TriesEachAddressThoughTheOnesBeforeAreSilent)
{
    play({{start(), "resolve"},
          {Machine::Resolved{3, 3s}, "open 0, the next after 250"},
          {Machine::PauseOver{}, "open 1, the next after 250"},
          {Machine::PauseOver{}, "open 2"},
          {Machine::PauseOver{}, "wait"},
          {Machine::Ready{1}, "take 1"}});
}

TEST(ConnectMachine, WaitsForThoseUnderWayWhenTheLastAddressHasFailed)
{
    play({{start(), "resolve"},
          {Machine::Resolved{2, 3s}, "open 0, the next after 250"},
          {Machine::PauseOver{}, "open 1"},
          {refused, "wait"},
          {Machine::Ready{0}, "take 0"}});
    play({{start(), "resolve"},
          {Machine::Resolved{2, 3s}, "open 0, the next after 250"},
          {Machine::PauseOver{}, "open 1"},
          {refused, "wait"},
          {Machine::TimeOver{}, timedOut}});
}

TEST(ConnectMachine, BeginsWithAllAddressesInTheTimeThereIs)
{
    play({{start(), "resolve"}, {Machine::Resolved{4, 200ms}, "open 0, the next after 50"}});
    play({{start(), "resolve"}, {Machine::Resolved{2, 0ms}, "open 0, the next after 1"}});
    play({{start(), "resolve"}, {Machine::Resolved{2, -1s}, "open 0, the next after 1"}});
}

TEST(ConnectMachine, AHostThatIsNotFoundOrHasNoAddressIsUnreachable)
{
    const auto unreachableFor = [](Cause cause) { return failed(Failure::notConnected, cause); };
    play({{start(), "resolve"}, {Machine::NotFound{}, unreachableFor(Cause::hostNotFound)}});
    play({{start(), "resolve"}, {Machine::NotFound{Cause::lookupFailed}, unreachableFor(Cause::lookupFailed)}});
    play({{start(), "resolve"}, {Machine::Resolved{0, 3s}, unreachable}});
    play({{start(), "resolve"}, {Machine::TimeOver{}, timedOut}});
}

TEST(ConnectMachine, TellsTheLastCauseThatWasMet)
{
    const Machine::Ended nobody{{Failure::notConnected, Cause::connectionRefused}};
    const Machine::Ended hungUp{{Failure::notConnected, Cause::hungUp}};
    play({{start(), "resolve"},
          {Machine::Resolved{2, 3s}, "open 0, the next after 250"},
          {nobody, "open 1"},
          {hungUp, failed(Failure::notConnected, Cause::hungUp)}});
    play({{start(), "resolve"},
          {Machine::Resolved{2, 3s}, "open 0, the next after 250"},
          {nobody, "open 1"},
          {Machine::TimeOver{Cause::silent}, failed(Failure::notConnected, Cause::silent)}});
}

TEST(ConnectMachine, DoesNotTellThatNobodyTookTheConnectionIfAnAddressDid)
{
    const Machine::Ended nobody{{Failure::notConnected, Cause::connectionRefused}};
    for (const Cause end : {Cause::hungUp, Cause::connectionLost}) {
        const Machine::Ended taken{{Failure::notConnected, end}};
        for (const Machine::Event& last : {Machine::Event(nobody), Machine::Event(Machine::TimeOver{})}) {
            play({{start(), "resolve"},
                  {Machine::Resolved{2, 3s}, "open 0, the next after 250"},
                  {taken, "open 1"},
                  {last, failed(Failure::notConnected, end)}});
        }
    }
}

TEST(ConnectMachine, TellsTheFailureThatSaysMost)
{
    struct Case {
        Machine::Ended first;
        Machine::Ended second;
        std::string told;
    };
    const std::string refusedByServer = failed(Failure::notConnected, Errc::serverRefused);
    const std::string authFailed = failed(Failure::fatal, Errc::authFailed);
    const Machine::Ended replica{{Failure::notConnected, Cause::readOnly}};
    const Case replicas[] = {
        {replica, refused, failed(Failure::notConnected, Cause::readOnly)},
        {refused, replica, failed(Failure::notConnected, Cause::readOnly)},
        {replica, denied, failed(Failure::notConnected, Cause::readOnly)},
        {replica, loading, refusedByServer},
        {loading, replica, refusedByServer},
    };
    for (const auto& c : replicas) {
        play({{start(), "resolve"},
              {Machine::Resolved{2, 3s}, "open 0, the next after 250"},
              {c.first, "open 1"},
              {c.second, c.told}});
    }
    const Case cases[] = {
        {refused, loading, refusedByServer}, {loading, refused, refusedByServer}, {refused, denied, authFailed},
        {denied, refused, authFailed},       {denied, loading, refusedByServer},  {loading, denied, refusedByServer},
    };
    for (const auto& c : cases) {
        play({{start(), "resolve"},
              {Machine::Resolved{2, 3s}, "open 0, the next after 250"},
              {c.first, "open 1"},
              {c.second, c.told}});
        play({{start(), "resolve"},
              {Machine::Resolved{2, 3s}, "open 0, the next after 250"},
              {c.first, "open 1"},
              {Machine::TimeOver{}, c.first.fault.error == Errc::unreachable  ? timedOut
                                    : c.first.fault.failure == Failure::fatal ? authFailed
                                                                              : refusedByServer}});
    }
}

TEST(ConnectMachine, AnAttemptThatComesSoFarExplainsTheAbsenceUnlessTheLastOneSaysMore)
{
    for (const Cause stage : {Cause::lookupFailed, Cause::connectTimedOut, Cause::silent}) {
        for (const Cause before : {Cause::lookupFailed, Cause::connectTimedOut}) {
            EXPECT_EQ(absenceAt(stage, before), Reason(stage));
        }
        for (const Cause before : {Cause::hungUp, Cause::silent, Cause::connectionLost, Cause::tooManyClients}) {
            EXPECT_EQ(absenceAt(stage, before), Reason(before)) << "a connection was taken";
        }
        for (const Cause before : {Cause::connectionRefused, Cause::hostNotFound, Cause::noRoute}) {
            EXPECT_EQ(absenceAt(stage, before), Reason(stage == Cause::silent ? stage : before));
        }
    }
}

} // namespace
} // namespace redislock::detail::connecting
