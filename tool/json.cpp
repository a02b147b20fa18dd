#include "table.hpp"

#include <nlohmann/json.hpp>

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

/// Names may contain any bytes; those that are not UTF-8 are replaced.
std::string lineOf(const ordered_json& object)
{
    return object.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
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
    object["eviction_policy"] = textOrNull(server.evictionPolicy);
    object["max_memory"] = orNull(server.maxMemory);
    object["used_memory"] = orNull(server.usedMemory);
    object["appends_to_file"] = orNull(server.appendsToFile);
    object["saves_snapshots"] = orNull(server.savesSnapshots);
    object["lacking_rights"] = orNull(server.lackingRights);
    object["lock_taken"] = orNull(wasTaken);
    object["problems"] = problems;
    return lineOf(object);
}

} // namespace redislock::tool
