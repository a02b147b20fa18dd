#include "transport/connect_machine.hpp"

#include "unit/machine_script.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace redislock::detail {
namespace {

using Machine = ConnectMachine;
using State = ConnectMachine::State;

std::string inWords(const Machine::Action& action)
{
    if (std::holds_alternative<Machine::Resolve>(action)) {
        return "resolve";
    }
    if (const auto* open = std::get_if<Machine::Open>(&action)) {
        return "open " + std::to_string(open->address);
    }
    if (const auto* command = std::get_if<Machine::Command>(&action)) {
        std::string all;
        for (const auto& argument : command->arguments) {
            all += (all.empty() ? "" : " ") + argument;
        }
        return all;
    }
    if (const auto* failed = std::get_if<Done<Fault>>(&action)) {
        return std::string(failed->result.failure == Failure::fatal ? "fatal: " : "transient: ") +
               make_error_code(failed->result.error).message();
    }
    return "connected";
}

std::string ended(Failure failure, Errc error)
{
    return inWords(Done<Fault>{{failure, error}});
}

const std::string unreachable = ended(Failure::notConnected, Errc::unreachable);
const std::string refusedByServer = ended(Failure::notConnected, Errc::serverRefused);
const std::string authFailed = ended(Failure::fatal, Errc::authFailed);
const std::string notRedis = ended(Failure::fatal, Errc::notRedis);

Start start()
{
    return {test::at({})};
}

Reply ok(std::string text = "OK")
{
    return {.kind = Reply::Kind::status, .integer = 0, .text = std::move(text), .elements = {}};
}

Reply error(std::string text)
{
    return {.kind = Reply::Kind::error, .integer = 0, .text = std::move(text), .elements = {}};
}

Reply integer()
{
    return {.kind = Reply::Kind::integer, .integer = 1, .text = {}, .elements = {}};
}

const Handshake everything{.username = "orders", .password = "secret", .database = 2, .clientName = "shop"};

struct Scene {
    Machine::Event event;
    std::string action;
};

std::vector<Scene> wholeStory()
{
    return {
        {start(), "resolve"},      {Machine::Resolved{1}, "open 0"}, {Machine::Opened{}, "AUTH orders secret"},
        {ok(), "SELECT 2"},        {ok(), "CLIENT SETNAME shop"},    {ok(), "PING"},
        {ok("PONG"), "connected"},
    };
}

/// Plays the first scenes. @return the last action.
std::string play(Machine& machine, const std::vector<Scene>& scenes, std::size_t count)
{
    std::string last;
    for (std::size_t i = 0; i < count && i < scenes.size(); ++i) {
        last = inWords(machine.resume(scenes[i].event));
        EXPECT_EQ(last, scenes[i].action) << "in scene " << i;
    }
    return last;
}

/// What comes of the handshake when this step is answered like that.
std::string answeredAt(State step, const Machine::Event& event)
{
    Machine machine(everything);
    const auto scenes = wholeStory();
    std::size_t played = 0;
    while (machine.state() != step) {
        play(machine, {scenes[played]}, 1);
        ++played;
    }
    return inWords(machine.resume(event));
}

TEST(ConnectMachine, SaysEverythingOneAfterTheOtherEachAfterItsAnswer)
{
    Machine machine(everything);
    EXPECT_EQ(machine.state(), State::idle);
    play(machine, wholeStory(), 100);
    EXPECT_EQ(machine.state(), State::done);
}

TEST(ConnectMachine, SaysOnlyWhatThereIsToSay)
{
    struct Case {
        const char* name;
        Handshake handshake;
        std::vector<std::string> commands;
    };
    const Case cases[] = {
        {"nothing", {}, {"PING"}},
        {"password", {"", "p", 0, ""}, {"AUTH p", "PING"}},
        {"user and password", {"u", "p", 0, ""}, {"AUTH u p", "PING"}},
        {"user without password", {"u", "", 0, ""}, {"PING"}},
        {"database", {"", "", 15, ""}, {"SELECT 15", "PING"}},
        {"name", {"", "", 0, "n"}, {"CLIENT SETNAME n", "PING"}},
        {"password and name", {"", "p", 0, "n"}, {"AUTH p", "CLIENT SETNAME n", "PING"}},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        Machine machine(c.handshake);
        machine.resume(start());
        machine.resume(Machine::Resolved{1});
        auto action = inWords(machine.resume(Machine::Opened{}));
        for (const auto& command : c.commands) {
            EXPECT_EQ(action, command);
            action = inWords(machine.resume(command == "PING" ? ok("PONG") : ok()));
        }
        EXPECT_EQ(action, "connected");
    }
}

TEST(ConnectMachine, TriesEachAddressInTurn)
{
    Machine machine(everything);
    play(machine,
         {{start(), "resolve"},
          {Machine::Resolved{3}, "open 0"},
          {Machine::Closed{}, "open 1"},
          {Machine::Closed{}, "open 2"},
          {Machine::Opened{}, "AUTH orders secret"}},
         100);
    Machine none(everything);
    play(none,
         {{start(), "resolve"},
          {Machine::Resolved{2}, "open 0"},
          {Machine::Closed{}, "open 1"},
          {Machine::Closed{}, unreachable}},
         100);
    EXPECT_EQ(none.state(), State::done);
}

TEST(ConnectMachine, AHostThatIsNotFoundOrHasNoAddressIsUnreachable)
{
    Machine unknown(everything);
    play(unknown, {{start(), "resolve"}, {Machine::Closed{}, unreachable}}, 100);
    Machine empty(everything);
    play(empty, {{start(), "resolve"}, {Machine::Resolved{0}, unreachable}}, 100);
}

constexpr State answers[] = {State::auth, State::select, State::setName, State::ping};

TEST(ConnectMachine, AConnectionThatEndsInTheHandshakeMayBeTriedAgain)
{
    for (const State step : answers) {
        EXPECT_EQ(answeredAt(step, Machine::Closed{}), unreachable);
    }
}

TEST(ConnectMachine, BytesThatAreNotTheProtocolAreNotRedis)
{
    for (const State step : answers) {
        EXPECT_EQ(answeredAt(step, Machine::Garbled{}), notRedis);
    }
}

TEST(ConnectMachine, RefusalsAreTransientAtEveryStep)
{
    for (const State step : answers) {
        for (const char* text :
             {"LOADING Redis is loading the dataset in memory", "BUSY Redis is busy running a script.",
              "ERR max number of clients reached", "MASTERDOWN Link with MASTER is down"}) {
            EXPECT_EQ(answeredAt(step, error(text)), refusedByServer) << text;
        }
    }
}

TEST(ConnectMachine, AServerThatWantsOtherCredentialsIsFatalAtEveryStep)
{
    for (const State step : answers) {
        for (const char* text : {"NOAUTH Authentication required.", "DENIED Redis is running in protected mode",
                                 "WRONGPASS invalid username-password pair or user is disabled."}) {
            EXPECT_EQ(answeredAt(step, error(text)), authFailed) << text;
        }
    }
}

TEST(ConnectMachine, EveryOtherErrorToAuthMeansThatItFailed)
{
    for (const char* text : {"ERR invalid password", "ERR Client sent AUTH, but no password is set",
                             "ERR AUTH <password> called without any password configured for the default user.",
                             "ERR wrong number of arguments for 'auth' command", "ERR"}) {
        EXPECT_EQ(answeredAt(State::auth, error(text)), authFailed) << text;
    }
}

TEST(ConnectMachine, ADatabaseThatTheServerDoesNotHaveIsFatal)
{
    for (const char* text :
         {"ERR DB index is out of range", "ERR invalid DB index", "ERR SELECT is not allowed in cluster mode"}) {
        EXPECT_EQ(answeredAt(State::select, error(text)), ended(Failure::fatal, Errc::noSuchDatabase)) << text;
    }
    EXPECT_EQ(answeredAt(State::select, error("NOPERM this user has no permissions to run the 'select' command")),
              ended(Failure::fatal, Errc::permissionDenied));
}

TEST(ConnectMachine, AServerThatRefusesNamesIsFine)
{
    for (const char* text : {"NOPERM this user has no permissions to run the 'client|setname' command",
                             "ERR unknown command 'CLIENT'", "ERR Client names cannot contain spaces"}) {
        EXPECT_EQ(answeredAt(State::setName, error(text)), "PING") << text;
    }
}

TEST(ConnectMachine, AServerThatForbidsPingIsFine)
{
    EXPECT_EQ(answeredAt(State::ping, error("NOPERM this user has no permissions to run the 'ping' command")),
              "connected");
}

TEST(ConnectMachine, WhateverElseAnswersIsNotRedis)
{
    for (const State step : {State::auth, State::select, State::ping}) {
        EXPECT_EQ(answeredAt(step, integer()), notRedis);
        EXPECT_EQ(answeredAt(step, Reply{}), notRedis);
    }
    EXPECT_EQ(answeredAt(State::ping, ok("OK")), notRedis);
    EXPECT_EQ(answeredAt(State::ping, ok("pong")), notRedis);
    EXPECT_EQ(answeredAt(State::ping, error("ERR something")), notRedis);
}

TEST(ConnectMachine, NoFailureIsFollowedByAnythingElse)
{
    const auto scenes = wholeStory();
    for (std::size_t step = 1; step < scenes.size(); ++step) {
        for (const Machine::Event& event : {Machine::Event(Machine::Closed{}), Machine::Event(Machine::Garbled{}),
                                            Machine::Event(error("LOADING"))}) {
            if (step < 3 && std::holds_alternative<Reply>(event)) {
                continue; // nothing was asked yet
            }
            Machine machine(everything);
            play(machine, scenes, step);
            const auto action = inWords(machine.resume(event));
            EXPECT_TRUE(action == unreachable || action == refusedByServer || action == notRedis) << action;
            EXPECT_EQ(machine.state(), State::done);
        }
    }
}

} // namespace
} // namespace redislock::detail
