#include "simulation/group_world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace redislock::simulation {

using namespace std::chrono_literals;

/// Shows each request to the server's own checker and to the checker of groups.
class GroupWorld::Watch final : public Witness {
public:
    Watch(SafetyChecker& own, const GroupChecker& groups) noexcept : own_(own), groups_(groups) {}

    void copied(const Request& request) override { own_.copied(request); }
    void before(const Request& request, VirtualTime now) override { own_.before(request, now); }
    void after(const Request& request, const Reply& reply, VirtualTime now) override
    {
        own_.after(request, reply, now);
        groups_.check(now);
    }

private:
    SafetyChecker& own_;
    const GroupChecker& groups_;
};

GroupWorld::GroupWorld(LuaRuntime& lua, std::uint64_t seed, bool traced, GroupSabotage sabotage)
    : Stage(seed, traced),
      threads_(1 + static_cast<std::size_t>(chance_.unit() * 2)),
      checker_([this](std::size_t server) -> const Keyspace& { return servers_[server]->model.keyspace(); },
               [this](const HeldMember& member) { return servers_[member.server]->checker.isExcused(member.holder); }),
      sabotage_(std::move(sabotage))
{
    drawGroups();
    const std::size_t count = workload_.groups[0].isMajority ? workload_.groups[0].members.size() : 2;
    for (std::size_t i = 0; i < count; ++i) {
        servers_.push_back(std::make_unique<Server>(lua, pushTo(i)));
        watches_.push_back(std::make_unique<Watch>(servers_[i]->checker, checker_));
        addServer(servers_[i]->model, *watches_[i]);
        for (const char* name : {"stock:0", "stock:1"}) {
            servers_[i]->views.push_back({name, detail::LockKind::redisLock});
        }
    }
    processes_.resize(2 + static_cast<std::size_t>(chance_.unit() * 2));
    for (std::size_t i = 0; i < processes_.size(); ++i) {
        Config config;
        config.watchdogTimeout = oneOf({1000ms, 3000ms, 10'000ms, 30'000ms});
        config.commandTimeout = oneOf({100ms, 500ms, 3000ms});
        config.connectTimeout = oneOf({100ms, 500ms, 3000ms});
        config.unreachableAfter = oneOf({1000ms, 3000ms, 10'000ms});
        configs_.push_back(config);
        longestLease_ = std::max<VirtualTime>({longestLease_, config.watchdogTimeout, 10s});
    }
    startProcesses(processes_.size());
}

GroupWorld::~GroupWorld() = default;

/// A RedLock; or two MultiLocks with a member in common, which name their members in opposite order.
void GroupWorld::drawGroups()
{
    workload_.meanThink = oneOf({1ms, 5ms, 30ms, 200ms});
    workload_.meanHold = oneOf({1ms, 5ms, 20ms, 80ms});
    workload_.longHold = oneOf({0.02, 0.05, 0.15});
    workload_.calledOff = oneOf({0.0, 0.1, 0.4});
    workload_.fixedLease = oneOf({0.0, 0.3, 0.8});
    if (chance_.unit() < 0.6) {
        Group red{.name = "red", .members = {}, .isMajority = true};
        const auto count = oneOf({3U, 5U});
        for (std::size_t i = 0; i < count; ++i) {
            red.members.push_back({i, 0});
        }
        workload_.groups.push_back(std::move(red));
    } else {
        workload_.groups.push_back({.name = "left", .members = {{0, 0}, {1, 0}}});
        workload_.groups.push_back({.name = "right", .members = {{1, 0}, {0, 1}, {1, 1}}});
    }
}

void GroupWorld::populate(std::size_t index)
{
    Process& process = processes_[index];
    std::vector<SimClient*> clients;
    for (std::size_t i = 0; i < servers_.size(); ++i) {
        process.clients.push_back(
            SimClient::make(SimClient::World{scheduler_, network(i), servers_[i]->checker, trace_}, host(index),
                            configs_[index], servers_[i]->views, chance_.next()));
        clients.push_back(process.clients.back().get());
    }
    const GroupActor::World world{scheduler_, checker_, trace_, statistics_};
    for (std::size_t i = 0; i < threads_; ++i) {
        process.actors.push_back(
            std::make_unique<GroupActor>(world, host(index), clients, workload_, i + 1, chance_.next()));
    }
}

void GroupWorld::depopulate(std::size_t index)
{
    processes_[index].actors.clear();
    processes_[index].clients.clear();
}

void GroupWorld::tellSituations(std::size_t index, std::size_t server, const TellSituation& tell) const
{
    const Process& process = processes_[index];
    process.clients[server]->forEachSituation([&](Situation situation, const std::string&) { tell(situation); });
    for (const auto& actor : process.actors) {
        actor->tellSituations(server, tell);
    }
}

void GroupWorld::dataLost(std::size_t server)
{
    servers_[server]->checker.excuseAll();
}

void GroupWorld::touchKey(std::size_t index, Fault fault)
{
    Server& server = *servers_[index];
    const std::string& name = oneOf({0, 1}) == 0 ? server.views[0].name : server.views[1].name;
    if (server.model.keyspace().find(name, millisecondOf(scheduler_.now())) == nullptr) {
        return;
    }
    server.checker.excuse(name);
    if (fault == Fault::keyDeleted) {
        server.model.keyspace().erase(name);
    } else {
        server.checker.persisted(name);
        server.model.keyspace().persist(name);
    }
}

void GroupWorld::troubled(std::size_t process, std::size_t server, Purpose /*purpose*/, VirtualTime until)
{
    auto& trouble = processes_[process].clients[server]->lastTrouble;
    trouble = std::max(trouble, until);
}

// --- The phases ------------------------------------------------------------------------------------------------------

void GroupWorld::run()
{
    runWithFaults(100 + static_cast<std::uint64_t>(chance_.unit() * 50));
    settle();
    if (chance_.unit() < 0.5) {
        crash(anyProcess());
    }
    runUntil(scheduler_.now() + longestAbsence + 1s);
    stopAll();
    commit(sabotage_.beforeProbes);
    loseMinority();
    probeAll();
    commit(sabotage_.beforeResidue);
    checkResidue();
}

void GroupWorld::commit(const GroupSabotage::Deed& deed)
{
    if (!deed) {
        return;
    }
    GroupSabotage::Hands hands{scheduler_, {}, {}};
    for (const auto& server : servers_) {
        hands.servers.push_back(&server->model);
        hands.checkers.push_back(&server->checker);
    }
    deed(hands);
}

/// No more faults; an operator frees locks that nobody else would free.
void GroupWorld::settle()
{
    endFaults();
    for (const auto& server : servers_) {
        for (const auto& view : server->views) {
            const auto* key = server->model.keyspace().find(view.name, millisecondOf(scheduler_.now()));
            if (key != nullptr && !key->expiresAtMs) {
                server->checker.excuse(view.name);
                server->model.keyspace().erase(view.name);
            }
        }
    }
}

void GroupWorld::stopAll()
{
    trace_("world", "all threads stop");
    for (auto& process : processes_) {
        for (auto& actor : process.actors) {
            actor->stop();
        }
    }
    awaitIdle(processes_, 2 * longestLease_ + 60s, "a thread did not come to its end");
    runUntil(scheduler_.now() + longestLease_ + longestLease_ / 50); // until the leases of a crashed process are over
}

/// Stops some servers of a RedLock: too few to matter.
void GroupWorld::loseMinority()
{
    const auto& group = workload_.groups[0];
    const auto most = group.members.size() - group.needed();
    const auto count = static_cast<std::size_t>(chance_.unit() * static_cast<double>(most + 1));
    for (std::size_t i = 0; i < count; ++i) {
        trace_("world", "server {} is gone", i);
        network(i).cutAll();
        network(i).setDownUntil(scheduler_.now() + 24h);
    }
}

/// Lets every process acquire and release every group once.
void GroupWorld::probeAll()
{
    for (auto& process : processes_) {
        for (std::size_t group = 0; group < workload_.groups.size(); ++group) {
            process.actors.front()->probe(group);
            awaitIdle(processes_, 20s, "a group could not be taken and released in time");
        }
    }
}

void GroupWorld::checkResidue()
{
    runUntil(scheduler_.now() + longestLease_ + 5s);
    for (std::size_t i = 0; i < servers_.size(); ++i) {
        const Keyspace& keyspace = servers_[i]->model.keyspace();
        for (const auto& [name, key] : keyspace.keys()) {
            if (keyspace.find(name, millisecondOf(scheduler_.now())) != nullptr) {
                throw Violation("S13 groups", fmt::format("{} of server {} is left", name, i));
            }
        }
        for (const auto& process : processes_) {
            if (const auto left = process.clients[i]->residue(); !left.empty() && !network(i).isDown()) {
                throw Violation("R1 nothing is left", left);
            }
        }
    }
}

} // namespace redislock::simulation
