/// @file
/// The names of keys and channels in Redis.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::detail {

/// No prefix: just the name in braces, so that the keys made of it are in the name's hash slot.
inline constexpr std::string_view inBraces{};

/// `prefix:{name}`, or `prefix:name` when the name contains a `{` anywhere: Redisson's rule, so that both libraries
/// meet.
inline void appendPrefixed(std::string& out, std::string_view prefix, std::string_view name)
{
    const bool tagged = name.find('{') != std::string_view::npos;
    out.append(prefix);
    if (!prefix.empty()) {
        out.push_back(':');
    }
    out.append(tagged ? "" : "{").append(name).append(tagged ? "" : "}");
}
inline std::size_t prefixedSize(std::string_view prefix, std::string_view name) noexcept
{
    const bool tagged = name.find('{') != std::string_view::npos;
    return prefix.size() + (prefix.empty() ? 0 : 1) + name.size() + (tagged ? 0 : 2);
}
inline std::string prefixed(std::string_view prefix, std::string_view name)
{
    std::string key;
    key.reserve(prefixedSize(prefix, name));
    appendPrefixed(key, prefix, name);
    return key;
}

inline constexpr std::string_view readWriteChannelPrefix = "redisson_rwlock";
inline constexpr std::string_view tokenPrefix = "redisson_lock_token";
inline constexpr std::string_view queuePrefix = "redisson_lock_queue";
inline constexpr std::string_view queueTimesPrefix = "redisson_lock_timeout";
inline constexpr std::string_view queuePlacesPrefix = "redislock_places";
inline constexpr std::string_view lockChannelPrefix = "redisson_lock__channel";

/// The channel on which the end of a plain lock is published.
inline std::string lockChannel(std::string_view name)
{
    return prefixed(lockChannelPrefix, name);
}

/// `{name}:part`, or `name:part` when the name contains a `{` anywhere.
inline std::string suffixed(std::string_view name, std::string_view part)
{
    const bool tagged = name.find('{') != std::string_view::npos;
    std::string key(tagged ? "" : "{");
    return key.append(name).append(tagged ? ":" : "}:").append(part);
}

/// The channel on which the free permits of a semaphore of either kind are published.
inline std::string semaphoreChannel(std::string_view name)
{
    return prefixed("redisson_sc", name);
}

/// The channel of a latch: Redisson puts the name in braces even if it contains some.
inline std::string latchChannel(std::string_view name)
{
    return std::string("redisson_countdownlatch__channel__{").append(name).append("}");
}

/// The key that keeps the answer to a request about a name, for repetitions of the request.
inline std::string requestKey(std::string_view name, std::string_view id)
{
    return prefixed("redislock_request", name).append(":").append(id);
}

/// The keys of a script as rules of an ACL name them: `*` stands for what differs from request to request or from
/// holder to holder, which is all that follows the name in braces. @param keys the first, if there is one, is the name.
inline std::vector<std::string> keyPatterns(std::vector<std::string> keys)
{
    if (keys.size() < 2) {
        return keys;
    }
    const auto braced = prefixed(inBraces, keys.front());
    for (std::size_t i = 1; i < keys.size(); ++i) {
        const auto at = keys[i].find(braced);
        const auto end = at + braced.size();
        if (at != std::string::npos && (at == 0 || end < keys[i].size())) {
            keys[i].resize(end);
            keys[i].push_back('*');
        }
    }
    return keys;
}

} // namespace redislock::detail
