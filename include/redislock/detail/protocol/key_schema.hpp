/// @file
/// The names of keys and channels in Redis.
#pragma once

#include <string>
#include <string_view>

namespace redislock::detail {

/// `prefix:{name}`, or `prefix:name` when the name contains a `{` anywhere: Redisson's rule, so that both libraries meet.
inline std::string prefixed(std::string_view prefix, std::string_view name)
{
    std::string key(prefix);
    if (name.find('{') == std::string_view::npos) {
        key.append(":{").append(name).append("}");
    } else {
        key.append(":").append(name);
    }
    return key;
}

/// The channel on which the end of a plain lock is published.
inline std::string lockChannel(std::string_view name)
{
    return prefixed("redisson_lock__channel", name);
}

} // namespace redislock::detail
