// Fail-overs in a cluster, and slots that move meanwhile.
#include "chaos/failover_run.hpp"
#include "chaos/failovers.hpp"
#include "chaos/habits.hpp"
#include "support/deployments.hpp"
#include "support/packets.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>

namespace redislock::test::chaos {
namespace {

using namespace std::chrono_literals;
using history::Op;
using history::Phase;

/// The ports of the masters in the answer to CLUSTER SLOTS, those with the most slots first: a slot that moved shortly
/// before a fail-over may stay with the former master for a while.
std::vector<std::string> mastersIn(const Value& reply)
{
    std::map<std::int64_t, std::int64_t> slots;
    for (const auto& range : reply.elements) {
        slots[range.elements.at(2).elements.at(1).integer()] +=
            1 + range.elements.at(1).integer() - range.elements.at(0).integer();
    }
    std::vector<std::string> ports;
    for (; !slots.empty();) {
        const auto most = std::ranges::max_element(slots, {}, [](const auto& each) { return each.second; });
        ports.push_back(std::to_string(most->first));
        slots.erase(most);
    }
    return ports;
}

Site siteOf(Cluster& cluster)
{
    Site site;
    for (std::size_t i = 0; i < cluster.size(); ++i) {
        site.servers.push_back(&cluster.node(i));
        site.namers.push_back(&cluster.node(i));
    }
    site.masters = cluster.size() / 2;
    site.url = cluster.url();
    site.durability = "durability=replicas:1";
    site.question = {"CLUSTER", "SLOTS"};
    site.portsNamed = mastersIn;
    site.heal = [&cluster] { cluster.heal(); };
    return site;
}

class ClusterFaults {
public:
    ClusterFaults(Cluster& cluster, FailOverRun& run) : cluster_(cluster), run_(run)
    {
        for (const auto& [kind, end] : locksThatFailOver()) {
            names_.insert(names_.end(), {plainLock(end), durableLock(end)});
        }
    }

    std::vector<FailOverFault> all(bool withPackets)
    {
        std::vector<FailOverFault> faults{
            {"CLUSTER FAILOVER", [this] { return failOverByCommand(); }},
            {"kill -9 of a master", [this] { return run_.isReplacedAfter([&] { someMaster().kill(); }); }},
            {"SIGSTOP of a master", [this] { return run_.stop(someMaster(), 300); }},
            {"SIGSTOP until a fail-over", [this] { return run_.stopUntilItIsReplaced(someMaster()); }},
            {"SIGSTOP of a replica", [this] { return run_.stop(someReplica(), 300); }},
            {"kill -9 of a replica", [this] { return killReplica(); }},
            {"slots moved", [this] { return moveSlots(); }},
            {"a slot open for long", [this] { return leaveOpen(); }},
            {"a half-moved slot's source killed", [this] { return killSource(); }},
        };
        if (withPackets) {
            faults.push_back({"a master cut off from the others", [this] { return cutOff(); }});
        }
        return faults;
    }

private:
    const std::string& someName() { return names_[run_.someOf(names_.size())]; }
    testing::RedisServer& someMaster() { return cluster_.node(cluster_.ownerOf(someName())); }
    testing::RedisServer& someReplica() { return cluster_.node(cluster_.replicaOf(cluster_.ownerOf(someName()))); }

    bool failOverByCommand()
    {
        return run_.isReplacedAfter([&] { RawRedis(someReplica()).command({"CLUSTER", "FAILOVER"}); });
    }

    bool killReplica()
    {
        someReplica().kill();
        run_.sleep(100, 1500);
        return true;
    }

    /// Its clients reach it all the same: the holders of its locks are on the side of the minority.
    bool cutOff()
    {
        std::optional<PacketFilter> filter;
        const bool isReplaced =
            run_.isReplacedAfter([&] { filter.emplace(cluster_.rulesToCutOff(cluster_.ownerOf(someName()))); });
        run_.sleep(0, 1500);
        return isReplaced && filter->hits() > 0;
    }

    /// A slot on its way from one master to another, as the history has it.
    struct Move {
        std::string name;
        std::size_t from;
        std::size_t to;
    };

    /// Begins a move, with some of the keys.
    Move open()
    {
        const auto& name = someName();
        const Move move{name, cluster_.ownerOf(name), cluster_.masterWithout(name)};
        run_.recorder().write({.lock = name, .op = Op::moved, .phase = Phase::invoke});
        cluster_.open(name, move.from, move.to);
        for (const auto& key : cluster_.keysAt(name, move.from)) {
            if (run_.someOf(2) == 0) {
                cluster_.moveKey(key, move.from, move.to);
            }
        }
        return move;
    }

    void close(const Move& move)
    {
        cluster_.moveKeys(move.name, move.from, move.to);
        cluster_.moveKeys(move.name, move.from, move.to);
        cluster_.close(move.name, move.to);
        run_.recorder().write({.lock = move.name, .op = Op::moved, .phase = Phase::ok});
    }

    bool moveSlots()
    {
        for (auto left = 1 + run_.someOf(4); left > 0; --left) {
            close(open());
        }
        return true;
    }

    bool leaveOpen()
    {
        const auto move = open();
        run_.sleep(300, 2000);
        close(move);
        return true;
    }

    /// The node that is promoted knows nothing of the move, and has the slot.
    bool killSource()
    {
        const auto move = open();
        run_.sleep(0, 300);
        const bool isReplaced = run_.isReplacedAfter([&] { cluster_.node(move.from).kill(); });
        cluster_.abandon(move.name, move.to);
        run_.recorder().write({.lock = move.name, .op = Op::moved, .phase = Phase::fail});
        return isReplaced;
    }

    Cluster& cluster_;
    FailOverRun& run_;
    std::vector<std::string> names_;
};

} // namespace

void failOverCluster(const Plan& plan, std::chrono::seconds time, const std::string& only, bool withPackets,
                     Injected& injected)
{
    // compressed values would hide from the record of a replica's stream which holders came with a key that was moved
    Cluster cluster(3, 1, {.arguments = {"--rdbcompression", "no"}},
                    withPackets ? Cluster::Addresses::own : Cluster::Addresses::shared);
    FailOverRun run(plan, siteOf(cluster));
    ClusterFaults faults(cluster, run);
    run.injectAll(faults.all(withPackets), only, time, injected);
    run.finish();
}

} // namespace redislock::test::chaos
