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
        return how == Unlocked::released ? "" : fmt::format("the lock could not be released: {}", toString(how));
    } catch (const LockError& error) {
        return error.what();
    }
}

/// Says what the library finds remarkable.
class Remarks final : public Observer {
    void warned(std::string_view what) noexcept override { complain(std::string(what)); }
};

/// Empty: there is enough memory.
std::string memoryProblemOf(const ServerReport& server)
{
    const auto limit = static_cast<double>(server.maxMemory.value_or(0));
    const auto used = static_cast<double>(server.usedMemory.value_or(0));
    if (limit == 0 || used <= 0.9 * limit) {
        return {};
    }
    return used >= limit
               ? "its memory is full, so it refuses new locks; raise maxmemory"
               : fmt::format("its memory is {:.0f} % full, and at 100 % it refuses new locks; raise maxmemory",
                             std::min(100 * used / limit, 99.0));
}

/// What may harm locks on such a server.
std::vector<std::string> problemsOf(const ServerReport& server)
{
    std::vector<std::string> problems;
    if (server.tls && server.tls->daysLeft < 7) {
        problems.push_back(fmt::format("its certificate expires in {} days", server.tls->daysLeft));
    }
    if (server.role == "slave") {
        problems.emplace_back("it is a replica, which grants no locks");
    }
    if (server.isLoading == true) {
        problems.emplace_back("it is loading its data");
    }
    if (!server.evictionPolicy.empty() && server.evictionPolicy != "noeviction") {
        problems.push_back("it evicts keys when memory runs out, and locks with them (maxmemory-policy " +
                           server.evictionPolicy + "); set noeviction");
    }
    if (auto memory = memoryProblemOf(server); !memory.empty()) {
        problems.push_back(std::move(memory));
    }
    if (server.appendsToFile == false && server.savesSnapshots == false) {
        problems.emplace_back("it saves nothing, so a restart frees all locks; set appendonly yes");
    }
    if (server.lackingRights && !server.lackingRights->empty()) {
        problems.push_back("the user lacks rights: " + listed(*server.lackingRights));
    }
    if (server.cluster && !server.cluster->isWhole) {
        problems.emplace_back("some slots of the cluster have no node");
    }
    for (const auto& shard : server.cluster ? server.cluster->shards : std::vector<ShardReport>()) {
        if (shard.replicas.empty()) {
            problems.push_back(shard.address + " has no replica, so its locks end with it");
        }
        if (!shard.evictionPolicy.empty() && shard.evictionPolicy != "noeviction") {
            problems.push_back(shard.address +
                               " evicts keys when memory runs out, and locks with them (maxmemory-policy " +
                               shard.evictionPolicy + "); set noeviction");
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
    fmt::print("coverage     {}\n",
               !cluster.needsFullCoverage   ? "unknown: cluster-require-full-coverage could not be read"
               : *cluster.needsFullCoverage ? "a dead shard stops all others (cluster-require-full-coverage yes)"
                                            : "a dead shard does not stop the others");
    fmt::print("partition    {}\n", cluster.nodeTimeout
                                        ? fmt::format("can lose locks granted in the last {} ms (cluster-node-timeout)",
                                                      cluster.nodeTimeout->count())
                                        : std::string("unknown: cluster-node-timeout could not be read"));
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
                   server.sentinels->quorum ? std::to_string(*server.sentinels->quorum) : "unknown");
    }
    if (server.minReplicasToWrite && (server.sentinels || !server.followers.empty())) {
        fmt::print(
            "fail-over    {}\n",
            *server.minReplicasToWrite == 0
                ? "loses locks that no replica has yet, and the old master grants locks until it learns of it: set "
                  "min-replicas-to-write 1"
                : fmt::format("the master grants no locks unless {} replicas follow (min-replicas-to-write)",
                              *server.minReplicasToWrite));
    }
}

void describeServer(const ServerReport& server, const Client& client, std::optional<bool> wasTaken)
{
    const std::string unknown = "unknown";
    const auto orUnknown = [&](const std::string& text) { return text.empty() ? unknown : text; };
    const auto onOrOff = [&](std::optional<bool> is) { return is ? (*is ? "on" : "off") : unknown; };
    const auto amount = [&](std::optional<std::uint64_t> bytes) {
        constexpr std::uint64_t mega = 1024 * 1024;
        return !bytes               ? unknown
               : *bytes < mega      ? fmt::format("{} KiB", *bytes / 1024)
               : *bytes < 10 * mega ? fmt::format("{:.2f} MiB", static_cast<double>(*bytes) / mega)
                                    : fmt::format("{} MiB", *bytes / mega);
    };
    const auto& sentinels = client.config().sentinels;
    fmt::print("server       {} at {}\n", orUnknown(server.version),
               sentinels        ? "the address that the Sentinels give for " + inQuotes(sentinels->name)
               : server.cluster ? "the node of the cluster that has the name"
                                : client.config().endpoint.str());
    if (server.tls) {
        const auto& tls = *client.config().tls;
        fmt::print("tls          {}, {}\n", server.tls->protocol, server.tls->cipher);
        fmt::print("certificate  {}, by {}, {} days left\n", server.tls->subject, server.tls->issuer,
                   server.tls->daysLeft);
        if (tls.verify != Tls::Verify::full) {
            fmt::print("not checked  {}\n",
                       tls.verify == Tls::Verify::none ? "the certificate" : "the host name in the certificate");
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
    fmt::print("memory       used: {}, limit: {}, eviction: {}\n", amount(server.usedMemory),
               server.maxMemory == 0 ? "none" : amount(server.maxMemory), orUnknown(server.evictionPolicy));
    fmt::print("rights       {}\n", !server.lackingRights           ? unknown
                                    : server.lackingRights->empty() ? "all that RedisLock and FencedLock need"
                                                                    : "some are missing");
    fmt::print("a lock       {}\n", !wasTaken   ? "was not tried, since the name is in use"
                                    : *wasTaken ? "was taken and released"
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
        problems.push_back(inQuotes(name) + " is not a lock: " + ec.message());
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
        complain("cannot tell whether the user may use locks: " + inQuotes(name) +
                 " is in use; give another name, or the user +multi and +discard");
        return exitError;
    }
    return problems.empty() ? exitFine : exitNo;
}

} // namespace redislock::tool
