// Whether a server is fit for locks.
#include "settings.hpp"
#include "table.hpp"

#include "values/printable.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace redislock::tool {

namespace {

std::string listed(const std::vector<std::string>& rights)
{
    return detail::printable(fmt::format("{}", fmt::join(rights, " ")), 1000);
}

/// Takes the lock and gives it back, by the scripts that `run` uses. @return why that failed; empty: it did not;
/// nothing: others have the lock.
std::optional<std::string> whyNotTaken(const FencedLock& lock)
{
    try {
        if (!lock.tryLock(oneAttempt, std::chrono::seconds(10))) {
            return std::nullopt;
        }
        const Unlocked how = lock.unlock();
        return how == Unlocked::released ? "" : fmt::format("a lock could not be given back: {}", toString(how));
    } catch (const LockError& error) {
        return error.what();
    }
}

/// Says what the library finds remarkable.
class Remarks final : public Observer {
    void warned(std::string_view what) noexcept override { complain(std::string(what)); }
};

/// What may harm locks on such a server.
std::vector<std::string> problemsOf(const ServerReport& server)
{
    std::vector<std::string> problems;
    if (server.tls && server.tls->daysLeft < 7) {
        problems.push_back(fmt::format("its certificate expires in {} days", server.tls->daysLeft));
    }
    if (server.role == "slave") {
        problems.emplace_back("it is a replica: it takes no locks");
    }
    if (server.isLoading == true) {
        problems.emplace_back("it is loading its data");
    }
    if (!server.evictionPolicy.empty() && server.evictionPolicy != "noeviction") {
        problems.push_back("it drops keys, and locks with them, when memory runs out (maxmemory-policy " +
                           server.evictionPolicy + "): set noeviction");
    }
    if (server.maxMemory.value_or(0) > 0 && server.usedMemory >= server.maxMemory) {
        problems.emplace_back("its memory is full");
    }
    if (server.appendsToFile == false && server.savesSnapshots == false) {
        problems.emplace_back("it saves nothing: a restart frees all locks");
    }
    if (server.lackingRights && !server.lackingRights->empty()) {
        problems.push_back("the user lacks rights: " + listed(*server.lackingRights));
    }
    if (server.cluster && !server.cluster->isWhole) {
        problems.emplace_back("the cluster is not whole: some slots have no node");
    }
    for (const auto& shard : server.cluster ? server.cluster->shards : std::vector<ShardReport>()) {
        if (shard.replicas.empty()) {
            problems.push_back(shard.address + " has no replica: its locks end with it");
        }
        if (!shard.evictionPolicy.empty() && shard.evictionPolicy != "noeviction") {
            problems.push_back(shard.address + " drops keys when memory runs out (maxmemory-policy " +
                               shard.evictionPolicy + "): set noeviction");
        }
    }
    return problems;
}

/// The nodes of a cluster, and what they do in an outage.
void describeCluster(const ClusterReport& cluster)
{
    for (const auto& shard : cluster.shards) {
        std::uint64_t behind = 0;
        for (const auto& replica : shard.replicas) {
            behind = std::max(behind, replica.bytesBehind);
        }
        fmt::print("shard        {}: {} slots, {} replicas{}\n", shard.address, shard.slots, shard.replicas.size(),
                   shard.replicas.empty() ? std::string() : fmt::format(", {} bytes behind", behind));
    }
    fmt::print("coverage     {}\n", !cluster.needsFullCoverage ? "not told what one dead shard does to the others"
                                    : *cluster.needsFullCoverage
                                        ? "one dead shard stops all: cluster-require-full-coverage yes"
                                        : "a dead shard stops no other");
    fmt::print("partition    {}\n",
               cluster.nodeTimeout
                   ? fmt::format("can take back what was granted in the last {} ms (cluster-node-timeout)",
                                 cluster.nodeTimeout->count())
                   : std::string("what it can take back is not told"));
    fmt::print("channels     {}\n", cluster.hasShardedChannels ? "sharded" : "classic");
}

/// What is known of those who would take the master's place.
void describeDeputies(const ServerReport& server)
{
    for (const auto& replica : server.followers) {
        fmt::print("replica      {}: {}, {} bytes behind\n", replica.address, replica.state, replica.bytesBehind);
    }
    if (server.sentinels) {
        fmt::print("sentinels    {} seen, quorum {}\n", server.sentinels->seen,
                   server.sentinels->quorum ? std::to_string(*server.sentinels->quorum) : "not told");
    }
    if (server.minReplicasToWrite && (server.sentinels || !server.followers.empty())) {
        fmt::print("fail-over    {}\n",
                   *server.minReplicasToWrite == 0
                       ? "loses what no replica has yet, and the old master takes locks until it learns of it: set "
                         "min-replicas-to-write 1"
                       : fmt::format("the master takes no locks unless {} replicas follow (min-replicas-to-write)",
                                     *server.minReplicasToWrite));
    }
}

void describeServer(const ServerReport& server, const Client& client, std::optional<bool> wasTaken)
{
    const std::string unknown = "not told";
    const auto orUnknown = [&](const std::string& text) { return text.empty() ? unknown : text; };
    const auto onOrOff = [&](std::optional<bool> is) { return is ? (*is ? "on" : "off") : unknown; };
    const auto inMiB = [&](std::optional<std::uint64_t> bytes) {
        return bytes ? fmt::format("{} MiB", *bytes / 1024 / 1024) : unknown;
    };
    const auto& sentinels = client.config().sentinels;
    fmt::print("server       {} at {}\n", orUnknown(server.version),
               sentinels        ? "the address that the Sentinels have of " + inQuotes(sentinels->name)
               : server.cluster ? "the node of the cluster that has the name"
                                : client.config().endpoint.str());
    if (server.tls) {
        const auto& tls = *client.config().tls;
        fmt::print("tls          {}, {}\n", server.tls->protocol, server.tls->cipher);
        fmt::print("certificate  {}, by {}, {} days left\n", server.tls->subject, server.tls->issuer,
                   server.tls->daysLeft);
        if (tls.verify != Tls::Verify::full) {
            fmt::print("not checked  {}\n", tls.verify == Tls::Verify::none
                                                ? "anything of the certificate"
                                                : "whether the certificate is for the host");
        }
    }
    fmt::print("role         {}{}\n", orUnknown(server.role),
               server.role == "master" && server.replicas ? fmt::format(", {} replicas", *server.replicas)
                                                          : std::string());
    describeDeputies(server);
    if (server.cluster) {
        describeCluster(*server.cluster);
    }
    fmt::print("persistence  append-only file {}{}, snapshots {}\n", onOrOff(server.appendsToFile),
               server.appendsToFile == true && server.appendSync ? " (appendfsync " + *server.appendSync + ")" : "",
               onOrOff(server.savesSnapshots));
    fmt::print("memory       used: {}, limit: {}, eviction: {}\n", inMiB(server.usedMemory),
               server.maxMemory == 0 ? "none" : inMiB(server.maxMemory), orUnknown(server.evictionPolicy));
    fmt::print("rights       {}\n", !server.lackingRights           ? unknown
                                    : server.lackingRights->empty() ? "all that RedisLock and FencedLock need"
                                                                    : "some are missing");
    fmt::print("a lock       {}\n", !wasTaken   ? "was not tried: its name is in use"
                                    : *wasTaken ? "was taken and given back"
                                                : "could not be taken");
}

} // namespace

void warnOfRights(const LockMonitor& monitor)
{
    if (!monitor.missingRights().empty()) {
        complain("less is known without these rights: " + listed(monitor.missingRights()));
    }
}

int doctor(const Settings& settings)
{
    Config config = Config::fromUrl(settings.url);
    config.observer = std::make_shared<Remarks>();
    const Client client(config);
    client.connect();
    const auto name = settings.name.empty() ? "redislock:doctor" : settings.name;
    LockMonitor monitor(settings.url);
    const auto server = monitor.server(name);
    const auto why = whyNotTaken(client.getFencedLock(name));
    const auto wasTaken = why ? std::optional(why->empty()) : std::nullopt;
    auto problems = problemsOf(server);
    std::error_code ec;
    if (!wasTaken && !monitor.find(name, ec) && ec == Errc::wrongType) {
        problems.push_back(inQuotes(name) + " is no lock: " + ec.message());
    }
    if (wasTaken == false) {
        problems.push_back(*why);
    }
    if (settings.json) {
        fmt::print("{}\n", jsonOf(server, wasTaken, problems));
    } else {
        describeServer(server, client, wasTaken);
        for (const auto& problem : problems) {
            fmt::print("{}  {}\n", red("problem    "), problem);
        }
    }
    if (problems.empty() && !wasTaken && !server.lackingRights) {
        complain("whether the user may use locks could not be found out: " + inQuotes(name) + " is in use");
        return exitError;
    }
    return problems.empty() ? exitFine : exitNo;
}

} // namespace redislock::tool
