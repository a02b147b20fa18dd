// What a server tells about itself, and what the monitor's user may do there.
#include "redislock/detail/protocol/info.hpp"
#include "redislock/detail/protocol/key_schema.hpp"
#include "runtime/monitor/inspector.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace redislock::detail {

namespace {

struct Need {
    std::string right;
    std::vector<std::string> request;
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
        {"+hset", {"HSET", name, "f", "1"}},
        {"+hlen", {"HLEN", name}},
        {"+hkeys", {"HKEYS", name}},
        {"+pexpire", {"PEXPIRE", name, "1000"}},
        {"+del", {"DEL", name}},
        {"+publish", {"PUBLISH", channel, "0"}},
        {"+subscribe", {"SUBSCRIBE", channel}},
        {"+unsubscribe", {"UNSUBSCRIBE", channel}},
        {"+time", {"TIME"}},
        {"+get", {"GET", token}},
        {"+set", {"SET", token, "1"}},
        {"+incr", {"INCR", token}},
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

} // namespace

ServerReport Inspector::server(std::string_view name)
{
    open();
    ServerReport report;
    const Reply reply = askOne({"INFO"});
    if (isGiven(reply, "+info")) {
        const std::string_view info = reply.text;
        const auto valkey = infoField(info, "valkey_version");
        report.version =
            valkey.empty() ? "Redis " + std::string(infoField(info, "redis_version")) : "Valkey " + std::string(valkey);
        report.role = infoField(info, "role");
        report.replicas = infoNumber(info, "connected_slaves");
        report.masterLink = infoField(info, "master_link_status");
        report.evictionPolicy = infoField(info, "maxmemory_policy");
        report.maxMemory = infoNumber(info, "maxmemory");
        report.usedMemory = infoNumber(info, "used_memory");
        report.isLoading = infoNumber(info, "loading") != 0;
        report.appendsToFile = infoNumber(info, "aof_enabled") != 0;
    }
    if (const auto save = setting("save")) {
        report.savesSnapshots = !save->empty();
    }
    report.appendSync = setting("appendfsync");
    report.lackingRights = lackingRights(name);
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

/// The requests are queued in a transaction, so that the server judges the user's rights, and then discarded.
std::optional<std::vector<std::string>> Inspector::lackingRights(std::string_view name)
{
    if (!isGiven(askOne({"MULTI"}), "+multi")) {
        return std::nullopt;
    }
    const auto needs = needsOf(std::string(name));
    Pipeline requests;
    for (const auto& need : needs) {
        requests.add(need.request);
    }
    requests.add({"DISCARD"});
    const auto replies = ask(requests);
    if (!isGiven(replies.back(), "+discard")) {
        return std::nullopt;
    }
    std::vector<std::string> lacking;
    for (std::size_t i = 0; i < needs.size(); ++i) {
        if (replies[i].isError()) {
            const auto rule = lackedBy(needs[i], classify(replies[i].text).error);
            if (!rule.empty() && std::find(lacking.begin(), lacking.end(), rule) == lacking.end()) {
                lacking.push_back(rule);
            }
        }
    }
    return lacking;
}

} // namespace redislock::detail
