#include "table.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace redislock::tool {

namespace {

using nlohmann::ordered_json;

template <class Value>
ordered_json orNull(const std::optional<Value>& value)
{
    return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json objectOf(const LockHolder& holder)
{
    ordered_json object{{"holder", holder.name}, {"client", holder.clientId}};
    if (holder.count > 0) {
        object["count"] = holder.count;
    }
    if (holder.writes) {
        object["writes"] = true;
    }
    if (holder.process != 0) {
        object["program"] = holder.program;
        object["host"] = holder.host;
        object["process"] = holder.process;
        object["address"] = holder.address;
        object["connected_s"] =
            holder.connectedFor ? ordered_json(holder.connectedFor->count()) : ordered_json(nullptr);
        object["silent_s"] = holder.silentFor ? ordered_json(holder.silentFor->count()) : ordered_json(nullptr);
    }
    return object;
}

ordered_json arrayOf(const std::vector<LockHolder>& holders)
{
    auto array = ordered_json::array();
    for (const auto& holder : holders) {
        array.push_back(objectOf(holder));
    }
    return array;
}

constexpr auto replace = ordered_json::error_handler_t::replace; // what is not UTF-8 becomes U+FFFD

/// Names may contain any bytes, JSON only text, and no two names may look the same. In a string that is not UTF-8, or
/// contains U+FFFD, each byte above 0x7f becomes U+FFFD and two hexadecimal digits.
void makeText(ordered_json& value)
{
    constexpr std::string_view mark = "\xef\xbf\xbd"; // U+FFFD
    if (value.is_structured()) {
        std::for_each(value.begin(), value.end(), makeText);
    } else if (value.is_string() && value.dump(-1, ' ', false, replace).find(mark) != std::string::npos) {
        std::string text;
        for (const char byte : value.get_ref<const std::string&>()) {
            const auto code = static_cast<unsigned char>(byte);
            text += code < 0x80 ? std::string(1, byte) : fmt::format("{}{:02x}", mark, code);
        }
        value = text;
    }
}

std::string lineOf(ordered_json object)
{
    makeText(object);
    return object.dump();
}

} // namespace

std::string jsonOf(const LockReport& lock)
{
    ordered_json object{{"name", lock.name}, {"kind", std::string(toString(lock.kind))}};
    object["milliseconds_left"] = lock.timeLeft ? ordered_json(lock.timeLeft->count()) : ordered_json(nullptr);
    object["waiters"] = orNull(lock.waiters);
    object["holders"] = arrayOf(lock.holders);
    object["more_holders"] = lock.hasMoreHolders;
    object["queue"] = arrayOf(lock.queue);
    return lineOf(object);
}

std::string jsonOf(const ServerReport& server, std::optional<bool> wasTaken, const std::vector<std::string>& problems)
{
    const auto textOrNull = [](const std::string& text) {
        return text.empty() ? ordered_json(nullptr) : ordered_json(text);
    };
    ordered_json object;
    object["version"] = textOrNull(server.version);
    object["role"] = textOrNull(server.role);
    object["replicas"] = orNull(server.replicas);
    object["followers"] = ordered_json::array();
    for (const auto& replica : server.followers) {
        object["followers"].push_back({{"address", replica.address},
                                       {"state", replica.state},
                                       {"bytes_behind", replica.bytesBehind},
                                       {"silent_s", replica.silent.count()}});
    }
    object["min_replicas_to_write"] = orNull(server.minReplicasToWrite);
    object["sentinels"] = nullptr;
    if (server.sentinels) {
        object["sentinels"] = {{"seen", server.sentinels->seen}, {"quorum", orNull(server.sentinels->quorum)}};
    }
    object["cluster"] = nullptr;
    if (const auto& cluster = server.cluster) {
        ordered_json shards = ordered_json::array();
        for (const auto& shard : cluster->shards) {
            std::uint64_t behind = 0;
            for (const auto& replica : shard.replicas) {
                behind = std::max(behind, replica.bytesBehind);
            }
            shards.push_back({{"address", shard.address},
                              {"slots", shard.slots},
                              {"replicas", shard.replicas.size()},
                              {"bytes_behind", behind},
                              {"eviction_policy", textOrNull(shard.evictionPolicy)}});
        }
        object["cluster"] = {{"whole", cluster->isWhole},
                             {"full_coverage", orNull(cluster->needsFullCoverage)},
                             {"sharded_channels", cluster->hasShardedChannels},
                             {"shards", shards}};
        object["cluster"]["node_timeout_ms"] =
            cluster->nodeTimeout ? ordered_json(cluster->nodeTimeout->count()) : ordered_json(nullptr);
    }
    object["eviction_policy"] = textOrNull(server.evictionPolicy);
    object["max_memory"] = orNull(server.maxMemory);
    object["used_memory"] = orNull(server.usedMemory);
    object["appends_to_file"] = orNull(server.appendsToFile);
    object["saves_snapshots"] = orNull(server.savesSnapshots);
    object["tls"] = nullptr;
    if (server.tls) {
        object["tls"] = {{"protocol", server.tls->protocol},
                         {"cipher", server.tls->cipher},
                         {"subject", server.tls->subject},
                         {"issuer", server.tls->issuer},
                         {"days_left", server.tls->daysLeft}};
    }
    object["lacking_rights"] = orNull(server.lackingRights);
    object["lock_taken"] = orNull(wasTaken);
    object["problems"] = problems;
    return lineOf(object);
}

} // namespace redislock::tool
