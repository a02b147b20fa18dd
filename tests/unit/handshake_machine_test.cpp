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

Reply text(std::string words)
{
    return {.kind = Reply::Kind::text, .integer = 0, .text = std::move(words), .elements = {}};
}

Reply number(std::int64_t value)
{
    return {.kind = Reply::Kind::integer, .integer = value, .text = {}, .elements = {}};
}

Reply list(std::vector<Reply> elements)
{
    return {.kind = Reply::Kind::array, .integer = 0, .text = {}, .elements = std::move(elements)};
}

Reply hello(const std::string& mode = "standalone", const std::string& role = "master")
{
    return list({text("server"), text("redis"), text("proto"), number(2), text("mode"), text(mode), text("role"),
                 text(role), text("modules"), list({})});
}

/// One range of slots in the answer to CLUSTER SLOTS.
Reply range(std::int64_t first, std::int64_t last, const std::string& id, std::int64_t port = 6379)
{
    auto node = list({text("127.0.0.1"), number(port)});
    if (!id.empty()) {
        node.elements.push_back(text(id));
    }
    return list({number(first), number(last), node, list({text("127.0.0.2"), number(port), text("replica")})});
}

const Handshake everything{.username = "orders", .password = "secret", .database = 2, .clientName = "shop"};

struct Scene {
    Machine::Event event;
    std::string action;
};

std::vector<Scene> wholeStory()
{
    return {
        {Machine::Opened{}, "AUTH orders secret"},
        {ok(), "HELLO;SELECT 2;CLIENT SETNAME shop;PING"},
        {hello(), "listen"},
        {ok(), "listen"},
        {ok(), "listen"},
        {ok("PONG"), "connected"},
    };
}

/// The same with a node of a cluster.
std::vector<Scene> clusterStory()
{
    auto scenes = wholeStory();
    scenes[2].event = hello("cluster");
    scenes.back().action = "CLUSTER SLOTS";
    return scenes;
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
    const auto scenes = step == State::slots ? clusterStory() : wholeStory();
    std::size_t played = 0;
    while (machine.state() != step) {
        play(machine, {scenes[played]}, 1);
        ++played;
    }
    return inWords(machine.resume(event));
}

TEST(HandshakeMachine, SaysEverythingAtOnceWhenThePasswordIsAcceptedAndJudgesEachAnswer)
{
    Machine machine(everything);
    EXPECT_EQ(machine.state(), State::opening);
    play(machine, wholeStory(), 100);
    EXPECT_EQ(machine.state(), State::done);
    EXPECT_EQ(machine.warning(), nullptr);
}

TEST(HandshakeMachine, KnowsAfterWhichAnswerNoOtherIsDue)
{
    Machine machine(everything);
    std::string lasts;
    for (const auto& scene : clusterStory()) {
        machine.resume(scene.event);
        lasts += machine.awaitsLast() ? '1' : '0';
    }
    EXPECT_EQ(lasts, "100011") << "AUTH, PING, CLUSTER SLOTS";
}

TEST(HandshakeMachine, SaysOnlyWhatThereIsToSay)
{
    struct Case {
        const char* name;
        Handshake handshake;
        std::string auth;
        std::string said;
        std::size_t others; ///< answers, beside those to AUTH, HELLO and PING
    };
    const Case cases[] = {
        {"nothing", {}, "", "HELLO;PING", 0},
        {"password", {"", "p", 0, ""}, "AUTH p", "HELLO;PING", 0},
        {"user and password", {"u", "p", 0, ""}, "AUTH u p", "HELLO;PING", 0},
        {"user without password", {"u", "", 0, ""}, "", "HELLO;PING", 0},
        {"database", {"", "", 15, ""}, "", "HELLO;SELECT 15;PING", 1},
        {"name", {"", "", 0, "n"}, "", "HELLO;CLIENT SETNAME n;PING", 1},
        {"password and name", {"", "p", 0, "n"}, "AUTH p", "HELLO;CLIENT SETNAME n;PING", 1},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        Machine machine(c.handshake);
        std::string said = inWords(machine.resume(Machine::Opened{}));
        if (!c.auth.empty()) {
            EXPECT_EQ(said, c.auth);
            said = inWords(machine.resume(ok()));
        }
        EXPECT_EQ(said, c.said);
        EXPECT_EQ(inWords(machine.resume(hello())), "listen");
        for (std::size_t answer = 0; answer < c.others; ++answer) {
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

constexpr State answers[] = {State::auth, State::hello, State::select, State::setName, State::ping, State::slots};

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
    EXPECT_EQ(inWords(machine.resume(Machine::Opened{})), "AUTH orders secret");
    EXPECT_EQ(inWords(machine.resume(ok())), "SELECT 2;EVAL return 1 1 redislock");
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
            const bool isLeftToTheNext = step == State::hello && cause == Cause::passwordWanted;
            EXPECT_EQ(answeredAt(step, error(text)), isLeftToTheNext ? "listen" : ended(Failure::fatal, cause)) << text;
        }
    }
}

TEST(HandshakeMachine, ErrorThatIsNotKnownIsTransientButForWhatIsOptional)
{
    for (const char* text : {"no upstream host", "ERR Connection refused", "ERR"}) {
        for (const State step : answers) {
            const char* const goesOn = step == State::setName || step == State::hello ? "listen"
                                       : step >= State::ping                          ? "connected"
                                                                                      : nullptr;
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

TEST(HandshakeMachine, AServerThatDoesNotTellItsKindIsFine)
{
    for (const char* text : {"ERR unknown command `HELLO`, with args beginning with: ",
                             "ERR wrong number of arguments for 'hello' command",
                             "NOPERM this user has no permissions to run the 'hello' command", "WHATEVER"}) {
        EXPECT_EQ(answeredAt(State::hello, error(text)), "listen") << text;
    }
    EXPECT_EQ(answeredAt(State::hello, list({})), "listen");
    EXPECT_EQ(answeredAt(State::hello, list({text("mode"), text("something"), text("role")})), "listen");
}

TEST(HandshakeMachine, ASentinelIsNotUsed)
{
    EXPECT_EQ(answeredAt(State::hello, hello("sentinel")), ended(Failure::fatal, Cause::sentinel));
}

TEST(HandshakeMachine, OfASentinelNothingIsAskedThatOnlyServersKnow)
{
    const Handshake handshake{
        .username = "watcher", .password = "secret", .clientName = "shop", .kind = ServerKind::sentinel};
    const std::vector<Scene> scenes = {
        {Machine::Opened{}, "AUTH watcher secret"},
        {ok(), "HELLO;CLIENT SETNAME shop;PING"},
        {hello("sentinel"), "listen"},
        {ok(), "listen"},
        {ok("PONG"), "connected"},
    };
    Machine machine(handshake);
    play(machine, scenes, 100);
    for (const char* mode : {"standalone", "cluster"}) {
        Machine other(handshake);
        play(other, scenes, 2);
        EXPECT_EQ(inWords(other.resume(hello(mode, "replica"))), ended(Failure::fatal, Cause::notSentinel)) << mode;
        EXPECT_EQ(other.state(), State::done);
    }
    Machine silent(handshake); // who may not ask has to believe it
    play(silent, scenes, 2);
    EXPECT_EQ(inWords(silent.resume(error("NOPERM this user has no permissions"))), "listen");
}

TEST(HandshakeMachine, AReplicaIsNotUsedForNowUnlessItHasMoreToSay)
{
    for (const char* role : {"replica", "slave"}) {
        for (const auto& [reply, end] :
             {std::pair(ok("PONG"), ended(Failure::notConnected, Cause::readOnly)),
              std::pair(error("NOPERM"), ended(Failure::notConnected, Cause::readOnly)),
              std::pair(error("MASTERDOWN Link with MASTER is down"), ended(Failure::notConnected, Cause::masterDown)),
              std::pair(error("LOADING"), loading)}) {
            auto scenes = wholeStory();
            scenes[2].event = hello("standalone", role);
            Machine machine(everything);
            play(machine, scenes, scenes.size() - 1);
            EXPECT_EQ(inWords(machine.resume(reply)), end) << reply.text;
        }
    }
}

TEST(HandshakeMachine, ANodeOfAClusterIsUsedIfNoOtherHasSlots)
{
    const std::string several = ended(Failure::fatal, Cause::clusterNode);
    struct Case {
        const char* name;
        Reply reply;
        std::string end;
    };
    const Case cases[] = {
        {"one range", list({range(0, 16383, "a")}), "connected"},
        {"two ranges of one node", list({range(0, 1, "a"), range(3, 16383, "a")}), "connected"},
        {"two nodes", list({range(0, 8191, "a"), range(8192, 16383, "b")}), several},
        {"the third range of another", list({range(0, 1, "a"), range(2, 3, "a"), range(4, 16383, "b")}), several},
        {"two nodes without ids", list({range(0, 1, "", 1), range(2, 16383, "", 2)}), several},
        {"one node without id", list({range(0, 1, "", 1), range(2, 16383, "", 1)}), "connected"},
        {"nothing", list({}), "connected"},
        {"who may not ask", error("NOPERM User u has no permissions to run the 'cluster|slots' command"), several},
        {"a proxy", error("ERR unknown command 'CLUSTER'"), "connected"},
        {"a proxy with a word of its own", error("WHATEVER"), "connected"},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        Machine machine(everything);
        play(machine, clusterStory(), 100);
        EXPECT_EQ(inWords(machine.resume(c.reply)), c.end);
        EXPECT_NE(machine.warning(), nullptr);
    }
    auto scenes = clusterStory();
    scenes[2].event = hello("cluster", "replica");
    Machine replica(everything);
    play(replica, scenes, 100);
    EXPECT_EQ(inWords(replica.resume(list({range(0, 16383, "a")}))), ended(Failure::notConnected, Cause::readOnly));
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

TEST(HandshakeMachine, ANodeThatIsWantedAsSuchTellsTheSlotsInTheSamePacket)
{
    Handshake handshake;
    handshake.clientName = "shop";
    handshake.kind = ServerKind::node;
    const auto begun = [&] {
        Machine machine(handshake);
        play(machine, {{Machine::Opened{}, "HELLO;CLIENT SETNAME shop;PING;CLUSTER SLOTS"}}, 100);
        return machine;
    };
    const std::vector<Scene> scenes{
        {hello("cluster", "replica"), "listen"}, // which says who has the slots
        {ok(), "listen"},
        {ok("PONG"), "listen"},
    };
    auto machine = begun();
    play(machine, scenes, 100);
    EXPECT_EQ(machine.slots(), nullptr);
    EXPECT_EQ(inWords(machine.resume(list({range(0, 8191, "a"), range(8192, 16383, "b")}))), "connected");
    ASSERT_NE(machine.slots(), nullptr);
    EXPECT_EQ(machine.slots()->elements.size(), 2U);

    auto plain = begun();
    EXPECT_EQ(inWords(plain.resume(hello())), ended(Failure::fatal, Cause::notCluster));
    auto sentinel = begun();
    EXPECT_EQ(inWords(sentinel.resume(hello("sentinel"))), ended(Failure::fatal, Cause::sentinel));
    for (const auto& [reply, why] :
         {std::pair(error("NOPERM User u has no permissions to run the 'cluster|slots' command"), Cause::commandDenied),
          std::pair(error("ERR This instance has cluster support disabled"), Cause::notCluster)}) {
        auto refused = begun();
        play(refused, scenes, 100);
        EXPECT_EQ(inWords(refused.resume(reply)), ended(Failure::fatal, why)) << reply.text;
    }

    handshake.needsShardedChannels = true;
    for (const auto& [version, action] :
         {std::pair("6.2.14", ended(Failure::fatal, Cause::noShardedChannels)),
          std::pair("7.0.15", std::string("listen")), std::pair("10.0", std::string("listen")),
          std::pair("", std::string("listen"))}) {
        auto answer = hello("cluster");
        answer.elements.push_back(text("version"));
        answer.elements.push_back(text(version));
        auto versioned = begun();
        EXPECT_EQ(inWords(versioned.resume(answer)), action) << version;
    }
}

} // namespace
} // namespace redislock::detail
