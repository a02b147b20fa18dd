// What a server tells about itself, and what the monitor's user may do there.
#include "watch/inspector.hpp"
#include "wire/info.hpp"
#include "wire/key_schema.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

namespace redislock::detail {

namespace {

struct Need {
    std::string right;
    std::vector<std::string> request;
    bool writes = false;
};

/// What plain and fenced locks need, each need as a request about that name.
std::vector<Need> needsOf(const std::string& name)
{
    const auto channel = lockChannel(name);
    const auto token = prefixed(tokenPrefix, name);
    const std::string sha(40, '0');
    return {
        {"+ping", {"PING"}},
        {"+evalsha", {"EVALSHA", sha, "1", name}},
        {"+eval", {"EVAL", "return 0", "1", name}},
        {"+pttl", {"PTTL", name}},
        {"+hexists", {"HEXISTS", name, "f"}},
        {"+hget", {"HGET", name, "f"}},
        {"+hset", {"HSET", name, "f", "1"}, true},
        {"+hdel", {"HDEL", name, "f"}, true},
        {"+hlen", {"HLEN", name}},
        {"+hkeys", {"HKEYS", name}},
        {"+pexpire", {"PEXPIRE", name, "1000"}, true},
        {"+del", {"DEL", name}, true},
        {"+publish", {"PUBLISH", channel, "0"}},
        {"+subscribe", {"SUBSCRIBE", channel}},
        {"+unsubscribe", {"UNSUBSCRIBE", channel}},
        {"+time", {"TIME"}},
        {"+get", {"GET", token}},
        {"+set", {"SET", token, "1"}, true},
        {"+incr", {"INCR", token}, true},
    };
}

/// The rule that would allow the request; empty if it failed for another reason than a missing right.
std::string lackedBy(const Need& need, Reason why)
{
    if (why != Errc::permissionDenied && why != Reason(Cause::unknownCommand)) {
        return {};
    }
    if (why == Reason(Cause::channelDenied)) {
        return "&" + need.request[1];
    }
    const bool isScript = need.right.starts_with("+eval");
    return why == Reason(Cause::keyDenied) ? "~" + need.request[isScript ? 3 : 1] : need.right;
}

/// The replicas in the answer to INFO: `slave0:ip=…,port=…,state=online,offset=…,lag=0`.
std::vector<ReplicaReport> followersIn(std::string_view info)
{
    std::vector<ReplicaReport> all;
    const auto written = infoNumber(info, "master_repl_offset");
    for (std::size_t i = 0;; ++i) {
        std::string_view line = infoField(info, "slave" + std::to_string(i));
        if (line.empty()) {
            return all;
        }
        ReplicaReport replica;
        std::string host;
        while (!line.empty()) {
            const auto part = line.substr(0, line.find(','));
            line.remove_prefix(std::min(line.size(), part.size() + 1));
            const auto name = part.substr(0, part.find('='));
            const auto value = part.substr(std::min(part.size(), name.size() + 1));
            const auto number = std::strtoull(std::string(value).c_str(), nullptr, 10);
            if (name == "ip") {
                host = value;
            } else if (name == "port") {
                replica.address = Endpoint{host, static_cast<std::uint16_t>(number), {}}.str();
            } else if (name == "state") {
                replica.state = value;
            } else if (name == "offset") {
                replica.bytesBehind = written > number ? written - number : 0;
            } else if (name == "lag") {
                replica.silent = std::chrono::seconds(number);
            }
        }
        all.push_back(std::move(replica));
    }
}

} // namespace

ServerReport Inspector::server(std::string_view name)
{
    goToOwnerOf(name);
    const Endpoint here = at_;
    ServerReport report;
    const Reply reply = askOne({"INFO"});
    report.tls = connection_->tlsReport();
    if (isGiven(reply, "+info")) {
        const std::string_view info = reply.text;
        const auto read = [info]<class Value>(std::string_view field, std::optional<Value>& value) {
            if (!infoField(info, field).empty()) {
                value = static_cast<Value>(infoNumber(info, field));
            }
        };
        const std::string valkey(infoField(info, "valkey_version"));
        const std::string redis(infoField(info, "redis_version"));
        report.version = !valkey.empty() ? "Valkey " + valkey : redis.empty() ? redis : "Redis " + redis;
        report.role = infoField(info, "role");
        read("connected_slaves", report.replicas);
        report.followers = followersIn(info);
        report.masterLink = infoField(info, "master_link_status");
        report.evictionPolicy = infoField(info, "maxmemory_policy");
        read("maxmemory", report.maxMemory);
        read("used_memory", report.usedMemory);
        read("loading", report.isLoading);
        read("aof_enabled", report.appendsToFile);
    }
    if (const auto save = setting("save")) {
        report.savesSnapshots = !save->empty();
    }
    if (const auto least = setting("min-replicas-to-write")) {
        report.minReplicasToWrite = std::strtoull(least->c_str(), nullptr, 10);
    }
    if (const auto& sentinels = connection_->sentinels()) {
        const auto quorum = sentinels->quorum();
        report.sentinels = {sentinels->seen(), quorum == 0 ? std::nullopt : std::optional(quorum)};
    }
    if (!config_.cluster.empty()) {
        report.cluster = describeCluster(report.version);
        goTo(here);
    }
    report.appendSync = setting("appendfsync");
    report.lackingRights = lackingRights(name);
    return report;
}

ClusterReport Inspector::describeCluster(std::string_view version)
{
    ClusterReport report;
    const auto number = version.substr(std::min(version.find(' '), version.size() - 1) + 1);
    report.hasShardedChannels = version.starts_with("Valkey") || std::atoi(std::string(number).c_str()) >= 7;
    if (const auto needs = setting("cluster-require-full-coverage")) {
        report.needsFullCoverage = *needs == "yes";
    }
    if (const auto timeout = setting("cluster-node-timeout")) {
        report.nodeTimeout = std::chrono::milliseconds(std::strtoll(timeout->c_str(), nullptr, 10));
    }
    std::size_t all = 0;
    for (const auto& at : masters()) {
        ShardReport shard;
        shard.address = at.str();
        for (const auto& range : table_.ranges) {
            shard.slots += table_.nodes[range.node].at == at ? range.last - range.first + 1U : 0U;
        }
        all += shard.slots;
        try {
            goTo(at);
            if (const Reply reply = askOne({"INFO"}); isGiven(reply, "+info")) {
                shard.replicas = followersIn(reply.text);
                shard.evictionPolicy = infoField(reply.text, "maxmemory_policy");
            }
        } catch (const InspectionFailed&) { // a node that does not answer
            shard.evictionPolicy.clear();
        }
        report.shards.push_back(std::move(shard));
    }
    report.isWhole = all == slotCount;
    return report;
}

std::optional<std::string> Inspector::setting(const std::string& name)
{
    Reply reply = askOne({"CONFIG", "GET", name});
    if (!isGiven(reply, "+config|get") || reply.elements.size() != 2) {
        return std::nullopt;
    }
    return std::move(reply.elements[1].text);
}

/// The requests are queued in a transaction, so that the server judges the user's rights, and then discarded. Without a
/// transaction those that write nothing are made.
std::optional<std::vector<std::string>> Inspector::lackingRights(std::string_view name)
{
    auto needs = needsOf(std::string(name));
    if (!config_.cluster.empty()) {
        const auto channel = lockChannel(name);
        needs.push_back({"+cluster|slots", {"CLUSTER", "SLOTS"}});
        needs.push_back({"+asking", {"ASKING"}});
        needs.push_back({"+spublish", {"SPUBLISH", channel, "0"}});
        needs.push_back({"+ssubscribe", {"SSUBSCRIBE", channel}});
        needs.push_back({"+sunsubscribe", {"SUNSUBSCRIBE", channel}});
    }
    const auto denied = lackedBy({"+discard", {"DISCARD"}}, classify(askOne({"DISCARD"}).text).error);
    const bool isQueued = denied.empty() && isGiven(askOne({"MULTI"}), "+multi");
    if (!denied.empty()) {
        noteMissing(denied);
    }
    if (!isQueued) {
        std::erase_if(needs, [](const Need& need) { return need.writes; });
    }
    Pipeline requests;
    for (const auto& need : needs) {
        requests.add(need.request);
    }
    requests.add({isQueued ? "DISCARD" : "QUIT"}); // the connection may have stayed subscribed
    const auto replies = ask(requests);
    std::vector<std::string> lacking;
    for (std::size_t i = 0; i < needs.size(); ++i) {
        if (replies[i].isError()) {
            const auto rule = lackedBy(needs[i], classify(replies[i].text).error);
            if (!rule.empty() && std::find(lacking.begin(), lacking.end(), rule) == lacking.end()) {
                lacking.push_back(rule);
            }
        }
    }
    return isQueued || !lacking.empty() ? std::optional(lacking) : std::nullopt;
}

} // namespace redislock::detail
