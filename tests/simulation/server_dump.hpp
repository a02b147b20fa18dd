/// @file
/// All data of a real server.
#pragma once

#include "simulation/keyspace.hpp"
#include "support/raw_redis.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace redislock::simulation {

/// A key as in the model, except for its time: the rest of it in ms, -1 for none; and members of sorted sets are
/// ordered by name.
struct DumpedKey {
    Keyspace::Type type{};
    std::vector<std::pair<std::string, std::string>> fields;
    std::int64_t leftMs = 0;
};

inline constexpr const char* dumpScript = R"(
local all = {}
for i, key in ipairs(redis.call('KEYS', '*')) do
    local kind = redis.call('TYPE', key).ok
    local content
    if kind == 'hash' then
        content = redis.call('HGETALL', key)
    elseif kind == 'zset' then
        content = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
    elseif kind == 'list' then
        content = redis.call('LRANGE', key, 0, -1)
    else
        content = {redis.call('GET', key)}
    end
    all[i] = {key, kind, redis.call('PTTL', key), content}
end
return all)";

inline std::map<std::string, DumpedKey> dumpOf(test::RawRedis& redis)
{
    const test::Value all = redis.command({"EVAL", dumpScript, "0"});
    if (!all.isArray()) {
        throw std::runtime_error("the server could not be dumped");
    }
    std::map<std::string, DumpedKey> keys;
    for (const auto& entry : all.elements) {
        const std::string kind = entry.elements[1].text();
        const auto& content = entry.elements[3].elements;
        auto& key = keys[entry.elements[0].text()];
        key.leftMs = entry.elements[2].integer();
        key.type = kind == "hash"   ? Keyspace::Type::hash
                   : kind == "zset" ? Keyspace::Type::sortedSet
                   : kind == "list" ? Keyspace::Type::list
                                    : Keyspace::Type::string;
        const bool isPairs = key.type == Keyspace::Type::hash || key.type == Keyspace::Type::sortedSet;
        for (std::size_t i = 0; i < content.size(); i += isPairs ? 2 : 1) {
            key.fields.emplace_back(content[i].text(), isPairs ? content[i + 1].text() : std::string());
        }
        if (key.type == Keyspace::Type::sortedSet) {
            std::sort(key.fields.begin(), key.fields.end());
        }
    }
    return keys;
}

} // namespace redislock::simulation
