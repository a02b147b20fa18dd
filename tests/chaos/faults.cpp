#include "chaos/faults.hpp"

#include "support/eventually.hpp"
#include "wire/script.hpp"

#include <algorithm>
#include <chrono>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

namespace redislock::test::chaos {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

/// Adds a rule, and ends it after some time or a number of hits.
std::size_t withRule(World& world, const Match& match, const Action& action, std::size_t most,
                     milliseconds patience = 2s)
{
    auto& proxy = world.proxy();
    const auto rule = proxy.add(match, action, most);
    (void)proxy.awaitHits(rule, most, patience);
    proxy.remove(rule);
    return proxy.hits(rule);
}

/// Adds a rule for scripts: for most scripts, or for renewals alone, which are rare.
std::size_t withScripts(World& world, Direction direction, const Action& action, std::size_t most)
{
    auto match = every(direction);
    if (world.random()() % 3 == 0) {
        match.script = detail::scripts::redisLockRenew.sha1;
        most = std::min<std::size_t>(most, 4);
    }
    return withRule(world, match, action, most);
}

// --- Processes -------------------------------------------------------------------------------------------------------

std::size_t killHolder(World& world)
{
    const auto slot = world.someHolder();
    world.killWorker(slot);
    world.startWorker(slot);
    return 1;
}

std::size_t killWaiter(World& world)
{
    const auto slot = world.someWaiter();
    world.killWorker(slot);
    world.startWorker(slot);
    return 1;
}

std::size_t stopHolder(World& world)
{
    const auto slot = world.someHolder();
    world.stopWorker(slot);
    waitAroundTheLeases(world);
    world.resumeWorker(slot);
    return 1;
}

std::size_t stopWaiter(World& world)
{
    const auto slot = world.someWaiter();
    world.stopWorker(slot);
    std::this_thread::sleep_for(world.between(100, 1000));
    world.resumeWorker(slot);
    return 1;
}

// --- The server ------------------------------------------------------------------------------------------------------

std::size_t killConnections(World& world)
{
    std::size_t killed = 0;
    for (int round = 0; round < 3; ++round) {
        std::istringstream list(world.redis().command({"CLIENT", "LIST"}).text());
        for (std::string line; std::getline(list, line);) {
            const auto end = line.find(' ');
            if (line.find(" name=chaos:") != std::string::npos && line.starts_with("id=") &&
                world.random()() % 3 != 0) {
                const auto reply = world.redis().command({"CLIENT", "KILL", "ID", line.substr(3, end - 3)});
                killed += reply.isInteger() ? static_cast<std::size_t>(reply.integer()) : 0;
            }
        }
        std::this_thread::sleep_for(world.between(0, 100));
    }
    return killed;
}

std::size_t restartServer(World& world)
{
    world.backend().crash(world.between(0, 400));
    return 1;
}

std::size_t freezeServer(World& world)
{
    world.server().freeze();
    waitAroundTheLeases(world);
    world.server().thaw();
    return 1;
}

/// How many requests the server refused because it did not know the script.
std::size_t unknownScripts(World& world)
{
    const std::string field = "errorstat_NOSCRIPT:count=";
    const auto stats = world.redis().command({"INFO", "errorstats"}).text();
    const auto at = stats.find(field);
    return at == std::string::npos ? 0 : std::stoul(stats.substr(at + field.size()));
}

std::size_t flushScripts(World& world)
{
    const auto before = unknownScripts(world);
    for (int round = 0; round < 5; ++round) {
        world.redis().command({"SCRIPT", "FLUSH"});
        std::this_thread::sleep_for(world.between(5, 50));
    }
    (void)eventually([&] { return unknownScripts(world) > before; });
    return unknownScripts(world) - before;
}

// --- The network -----------------------------------------------------------------------------------------------------

std::size_t delayReplies(World& world)
{
    return withScripts(world, Direction::reply, Action::delay(world.between(20, 120)), 25);
}

/// Delays replies for longer than the clients wait for them.
std::size_t delayRepliesBeyondTheTimeout(World& world)
{
    return withScripts(world, Direction::reply, Action::delay(world.between(320, 900)), 4);
}

std::size_t delayRequests(World& world)
{
    return withScripts(world, Direction::request, Action::delay(world.between(20, 500)), 10);
}

std::size_t loseReplies(World& world)
{
    return withScripts(world, Direction::request, Action::cutAfterForward(), 10);
}

std::size_t loseRequests(World& world)
{
    return withScripts(world, Direction::request, Action::cut(), 10);
}

std::size_t doubleRequests(World& world)
{
    return withScripts(world, Direction::request, Action::duplicate(), 200);
}

std::size_t cutReplies(World& world)
{
    return withScripts(world, Direction::reply, Action::truncate(1 + world.random()() % 4), 10);
}

std::size_t loseNotifications(World& world)
{
    return withRule(world, every(Direction::push, "message"), Action::drop(), 100);
}

std::size_t doubleNotifications(World& world)
{
    return withRule(world, every(Direction::push, "message"), Action::duplicate(), 100);
}

/// One direction of some connections is silent for a while, then all its bytes come at once.
std::size_t halfOpen(World& world, Direction direction, const std::string& command, std::size_t connections)
{
    auto& proxy = world.proxy();
    const auto rule = proxy.add(every(direction, command), Action::stallDirection(), connections);
    (void)proxy.awaitHits(rule, 1);
    waitAroundTheLeases(world);
    proxy.remove(rule);
    proxy.resume();
    return proxy.hits(rule);
}

std::size_t halfOpenRequests(World& world)
{
    return halfOpen(world, Direction::request, "EVALSHA", 6);
}

std::size_t halfOpenReplies(World& world)
{
    return halfOpen(world, Direction::reply, "EVALSHA", 6);
}

std::size_t halfOpenNotifications(World& world)
{
    return halfOpen(world, Direction::push, "message", 2);
}

std::size_t cutOff(World& world)
{
    auto& proxy = world.proxy();
    const auto connections = proxy.connections();
    proxy.stall();
    waitAroundTheLeases(world);
    if (world.random()() % 2 == 0) {
        proxy.closeAll(FaultProxy::Close::reset);
    }
    proxy.resume();
    return connections;
}

// --- Faults with which no run could pass
// -----------------------------------------------------------------------------------

std::size_t doNothing(World&)
{
    return 0;
}

std::size_t endTheServer(World& world)
{
    world.proxy().refuse();
    world.proxy().closeAll();
    return 1;
}

std::size_t endGroups(World& world)
{
    for (auto* member : world.someMembers(groupServers / 2 + 1)) {
        member->proxy().stall();
    }
    return 1;
}

} // namespace

void waitAroundTheLeases(World& world)
{
    std::this_thread::sleep_for(world.random()() % 3 == 0 ? world.between(2050, 2600) : world.between(150, 900));
}

const std::vector<Fault>& impossibleFaults()
{
    static const std::vector<Fault> all{
        {"nothing at all", doNothing},
        {"the server, for good", endTheServer},
        {"a majority of the groups' servers, for good", endGroups},
    };
    return all;
}

const std::vector<Fault>& faults()
{
    static const std::vector<Fault> all{
        {"kill -9 of a holder", killHolder},
        {"kill -9 of a waiter", killWaiter},
        {"SIGSTOP of a holder", stopHolder},
        {"SIGSTOP of a waiter", stopWaiter},
        {"CLIENT KILL", killConnections},
        {"kill -9 of the server, AOF", restartServer},
        {"SIGSTOP of the server", freezeServer},
        {"SCRIPT FLUSH", flushScripts},
        {"replies delayed", delayReplies},
        {"replies later than the time-out", delayRepliesBeyondTheTimeout},
        {"requests delayed", delayRequests},
        {"replies lost", loseReplies},
        {"requests lost", loseRequests},
        {"requests doubled", doubleRequests}, // replies are not doubled: TCP doubles none, and a client could not tell
        {"replies cut", cutReplies},
        {"notifications lost", loseNotifications},
        {"notifications doubled", doubleNotifications},
        {"half open, requests", halfOpenRequests},
        {"half open, replies", halfOpenReplies},
        {"half open, notifications", halfOpenNotifications},
        {"cut off", cutOff},
    };
    return all;
}

} // namespace redislock::test::chaos
