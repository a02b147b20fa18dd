// The faults of the servers of groups. Only one of them loses its memory at a time, and none twice within a lease: no
// RedLock promises anything if a majority forgets, and no MultiLock if one server does. A hold that had no more members
// than it needs may all the same be lost, or taken twice: the history tells the checker what was forgotten.
#include "chaos/faults.hpp"

#include <thread>
#include <utility>
#include <vector>

namespace redislock::test::chaos {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t minority = (groupServers - 1) / 2;
constexpr std::size_t majority = groupServers / 2 + 1;

std::size_t crashMember(World& world)
{
    world.someMembers(1).front()->crash(world.between(0, 400));
    return 1;
}

std::size_t freezeMembers(World& world)
{
    const auto members = world.someMembers(1 + world.random()() % minority);
    for (auto* member : members) {
        member->server().freeze();
    }
    waitAroundTheLeases(world);
    for (auto* member : members) {
        member->server().thaw();
    }
    return members.size();
}

std::size_t emptyMember(World& world)
{
    return world.afterALease([&](Backend& member) { return member.empty(world.recorder()); });
}

std::size_t restartMemberEmpty(World& world)
{
    return world.afterALease(
        [&](Backend& member) { return member.crashAndForget(world.between(0, 400), world.recorder()); });
}

/// For some time applies a rule to all scripts of as many servers as a RedLock can do without.
std::size_t withMinority(World& world, const Match& match, const Action& action, std::size_t most)
{
    std::vector<std::pair<FaultProxy*, RuleId>> rules;
    for (auto* member : world.someMembers(minority)) {
        rules.emplace_back(&member->proxy(), member->proxy().add(match, action, most));
    }
    std::size_t hits = 0;
    for (const auto& [proxy, rule] : rules) {
        (void)proxy->awaitHits(rule, most, 2s);
        proxy->remove(rule);
        hits += proxy->hits(rule);
    }
    return hits;
}

/// Delays members for longer than a RedLock waits for one.
std::size_t slowMembers(World& world)
{
    return withMinority(world, every(Direction::reply), Action::delay(world.between(60, 200)), 20);
}

/// Members are granted, or released, but the answers are lost.
std::size_t loseRepliesOfMembers(World& world)
{
    return withMinority(world, every(Direction::request), Action::cutAfterForward(), 10);
}

/// Cuts off too many servers for any group.
std::size_t cutOffMajority(World& world)
{
    const auto members = world.someMembers(majority);
    std::size_t connections = 0;
    for (auto* member : members) {
        connections += member->proxy().connections();
        member->proxy().stall();
    }
    waitAroundTheLeases(world);
    for (auto* member : members) {
        if (world.random()() % 2 == 0) {
            member->proxy().closeAll(FaultProxy::Close::reset);
        }
        member->proxy().resume();
    }
    return connections;
}

} // namespace

const std::vector<Fault>& groupFaults()
{
    static const std::vector<Fault> all{
        {"group: kill -9 of a server, AOF", crashMember}, {"group: SIGSTOP of servers", freezeMembers},
        {"group: FLUSHALL of a server", emptyMember},     {"group: server started empty", restartMemberEmpty},
        {"group: replies delayed", slowMembers},          {"group: replies lost", loseRepliesOfMembers},
        {"group: majority cut off", cutOffMajority},
    };
    return all;
}

} // namespace redislock::test::chaos
