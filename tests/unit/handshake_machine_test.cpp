#include "link/connect/handshake_machine.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redislock::detail {
namespace {

using Machine = HandshakeMachine;
using State = HandshakeMachine::State;

std::string inWords(const Machine::Action& action)
{
    if (const auto* say = std::get_if<Machine::Say>(&action)) {
        std::string all;
        for (const auto& command : say->commands) {
            all += all.empty() ? "" : ";";
            for (const auto& argument : command) {
                all += (all.empty() || all.ends_with(';') ? "" : " ") + argument;
            }
        }
        return all;
    }
    if (std::holds_alternative<Machine::Listen>(action)) {
        return "listen";
    }
    if (const auto* failed = std::get_if<Done<Fault>>(&action)) {
        return std::string(failed->result.failure == Failure::fatal ? "fatal: " : "transient: ") +
               std::error_code(failed->result.error).message();
    }
    return "connected";
}

std::string ended(Failure failure, Reason error)
{
    return inWords(Done<Fault>{{failure, error}});
}

const std::string hungUp = ended(Failure::notConnected, Cause::hungUp);
const std::string lost = ended(Failure::notConnected, Cause::connectionLost);
const std::string loading = ended(Failure::notConnected, Cause::loading);
const std::string notRedis = ended(Failure::fatal, Errc::notRedis);

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
        {Machine::Opened{}, "AUTH orders secret;SELECT 2;CLIENT SETNAME shop;PING"},
        {ok(), "listen"},
        {ok(), "listen"},
        {ok(), "listen"},
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

/// The result of the handshake if this step gets this answer.
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

TEST(HandshakeMachine, SaysEverythingAtOnceAndJudgesEachAnswer)
{
    Machine machine(everything);
    EXPECT_EQ(machine.state(), State::opening);
    play(machine, wholeStory(), 100);
    EXPECT_EQ(machine.state(), State::done);
}

TEST(HandshakeMachine, SaysOnlyWhatThereIsToSay)
{
    struct Case {
        const char* name;
        Handshake handshake;
        std::string said;
        std::size_t answers;
    };
    const Case cases[] = {
        {"nothing", {}, "PING", 1},
        {"password", {"", "p", 0, ""}, "AUTH p;PING", 2},
        {"user and password", {"u", "p", 0, ""}, "AUTH u p;PING", 2},
        {"user without password", {"u", "", 0, ""}, "PING", 1},
        {"database", {"", "", 15, ""}, "SELECT 15;PING", 2},
        {"name", {"", "", 0, "n"}, "CLIENT SETNAME n;PING", 2},
        {"password and name", {"", "p", 0, "n"}, "AUTH p;CLIENT SETNAME n;PING", 3},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        Machine machine(c.handshake);
        EXPECT_EQ(inWords(machine.resume(Machine::Opened{})), c.said);
        for (std::size_t answer = 1; answer < c.answers; ++answer) {
            EXPECT_EQ(inWords(machine.resume(ok())), "listen");
        }
        EXPECT_EQ(inWords(machine.resume(ok("PONG"))), "connected");
    }
}

TEST(HandshakeMachine, AnAddressThatRefusesIsUnreachable)
{
    Machine machine(everything);
    EXPECT_EQ(inWords(machine.resume(Machine::Closed{Cause::connectionRefused})),
              ended(Failure::notConnected, Cause::connectionRefused));
    EXPECT_EQ(machine.state(), State::done);
}

constexpr State answers[] = {State::auth, State::select, State::setName, State::ping};

TEST(HandshakeMachine, AConnectionThatEndsInTheHandshakeMayBeTriedAgain)
{
    for (const State step : answers) {
        // what ends after an answer is no server that expects TLS
        EXPECT_EQ(answeredAt(step, Machine::Closed{}), step == State::auth ? hungUp : lost);
    }
}

TEST(HandshakeMachine, TheBareFormLeavesOutWhatIsOptionalAndAsksForWhatLocksNeed)
{
    Machine machine(everything, Machine::Form::bare);
    EXPECT_EQ(inWords(machine.resume(Machine::Opened{})), "AUTH orders secret;SELECT 2;EVAL return 1 1 redislock");
    EXPECT_EQ(inWords(machine.resume(ok())), "listen");
    EXPECT_EQ(inWords(machine.resume(ok())), "listen");
    EXPECT_EQ(inWords(machine.resume(integer())), "connected");
    const std::pair<Reply, std::string> ends[] = {
        {error("NOPERM No permissions to access a key"), "connected"},
        {error("MOVED 1 127.0.0.1:1"), "connected"},
        {error("LOADING"), loading},
        {ok("PONG"), notRedis},
    };
    const Handshake nothing;
    for (const auto& [reply, end] : ends) {
        Machine bare(nothing, Machine::Form::bare);
        EXPECT_EQ(inWords(bare.resume(Machine::Opened{})), "EVAL return 1 1 redislock");
        EXPECT_EQ(inWords(bare.resume(reply)), end) << reply.text;
    }
}

TEST(HandshakeMachine, BytesThatAreNotTheProtocolAreNotRedis)
{
    for (const State step : answers) {
        EXPECT_EQ(answeredAt(step, Machine::Garbled{}), notRedis);
        EXPECT_EQ(answeredAt(step, Machine::Garbled{Cause::tlsSpoken}), ended(Failure::fatal, Cause::tlsSpoken));
    }
}

TEST(HandshakeMachine, RefusalsAreTransientAtEveryStep)
{
    for (const State step : answers) {
        const std::pair<const char*, Cause> refusals[] = {
            {"LOADING Redis is loading the dataset in memory", Cause::loading},
            {"BUSY Redis is busy running a script.", Cause::scriptBusy},
            {"ERR max number of clients reached", Cause::tooManyClients},
            {"MASTERDOWN Link with MASTER is down", Cause::masterDown},
        };
        for (const auto& [text, cause] : refusals) {
            EXPECT_EQ(answeredAt(step, error(text)), ended(Failure::notConnected, cause)) << text;
        }
    }
}

TEST(HandshakeMachine, AServerThatWantsOtherCredentialsIsFatalAtEveryStep)
{
    for (const State step : answers) {
        const std::pair<const char*, Cause> refusals[] = {
            {"NOAUTH Authentication required.", Cause::passwordWanted},
            {"DENIED Redis is running in protected mode", Cause::protectedMode},
            {"WRONGPASS invalid username-password pair or user is disabled.", Cause::wrongPassword},
        };
        for (const auto& [text, cause] : refusals) {
            EXPECT_EQ(answeredAt(step, error(text)), ended(Failure::fatal, cause)) << text;
        }
    }
}

TEST(HandshakeMachine, ErrorThatIsNotKnownIsTransientButForWhatIsOptional)
{
    for (const char* text : {"no upstream host", "ERR Connection refused", "ERR"}) {
        for (const State step : answers) {
            const char* const goesOn = step == State::setName ? "listen" : step == State::ping ? "connected" : nullptr;
            EXPECT_EQ(answeredAt(step, error(text)),
                      goesOn != nullptr ? goesOn : ended(Failure::notConnected, Errc::serverRefused))
                << text;
        }
    }
}

TEST(HandshakeMachine, ErrorsToAuthThatAreKnownMeanThatItFailed)
{
    const std::pair<const char*, Reason> refusals[] = {
        {"ERR invalid password", Cause::wrongPassword},
        {"ERR Client sent AUTH, but no password is set", Cause::noPasswordSet},
        {"ERR AUTH <password> called without any password configured for the default user.", Cause::noPasswordSet},
        {"ERR wrong number of arguments for 'auth' command", Errc::authFailed},
        {"ERR unknown command 'AUTH'", Errc::authFailed},
    };
    for (const auto& [text, reason] : refusals) {
        EXPECT_EQ(answeredAt(State::auth, error(text)), ended(Failure::fatal, reason)) << text;
    }
}

TEST(HandshakeMachine, ADatabaseThatTheServerDoesNotHaveIsFatal)
{
    for (const char* text :
         {"ERR DB index is out of range", "ERR invalid DB index", "ERR SELECT is not allowed in cluster mode"}) {
        EXPECT_EQ(answeredAt(State::select, error(text)), ended(Failure::fatal, Errc::noSuchDatabase)) << text;
    }
    EXPECT_EQ(answeredAt(State::select, error("NOPERM this user has no permissions to run the 'select' command")),
              ended(Failure::fatal, Cause::commandDenied));
}

TEST(HandshakeMachine, AServerThatRefusesNamesIsFine)
{
    for (const char* text :
         {"NOPERM this user has no permissions to run the 'client|setname' command", "ERR unknown command 'CLIENT'",
          "ERR Client names cannot contain spaces", "-no such command here", "WHATEVER"}) {
        EXPECT_EQ(answeredAt(State::setName, error(text)), "listen") << text;
    }
}

TEST(HandshakeMachine, AServerThatForbidsPingIsFine)
{
    for (const char* text : {"NOPERM this user has no permissions to run the 'ping' command",
                             "ERR unknown command 'PING'", "ERR something", "WHATEVER"}) {
        EXPECT_EQ(answeredAt(State::ping, error(text)), "connected") << text;
    }
}

TEST(HandshakeMachine, WhateverElseAnswersIsNotRedis)
{
    for (const State step : answers) {
        EXPECT_EQ(answeredAt(step, integer()), notRedis);
        EXPECT_EQ(answeredAt(step, Reply{}), notRedis);
    }
    EXPECT_EQ(answeredAt(State::ping, ok("OK")), notRedis);
    EXPECT_EQ(answeredAt(State::ping, ok("pong")), notRedis);
}

TEST(HandshakeMachine, NoFailureIsFollowedByAnythingElse)
{
    const auto scenes = wholeStory();
    for (std::size_t step = 0; step < scenes.size(); ++step) {
        for (const Machine::Event& event : {Machine::Event(Machine::Closed{}), Machine::Event(Machine::Garbled{}),
                                            Machine::Event(error("LOADING"))}) {
            if (step < 1 && !std::holds_alternative<Machine::Closed>(event)) {
                continue; // no request was sent yet, so nothing is read
            }
            Machine machine(everything);
            play(machine, scenes, step);
            const auto action = inWords(machine.resume(event));
            EXPECT_TRUE(action == hungUp || action == lost || action == loading || action == notRedis) << action;
            EXPECT_EQ(machine.state(), State::done);
        }
    }
}

} // namespace
} // namespace redislock::detail
