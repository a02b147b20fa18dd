/// @file
/// The names of keys and channels in Redis.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace redislock::detail {

/// `prefix:{name}`, or `prefix:name` when the name contains a `{` anywhere: Redisson's rule, so that both libraries meet.
inline void appendPrefixed(std::string& out, std::string_view prefix, std::string_view name)
{
    const bool tagged = name.find('{') != std::string_view::npos;
    out.append(prefix).append(tagged ? ":" : ":{").append(name).append(tagged ? "" : "}");
}
inline std::size_t prefixedSize(std::string_view prefix, std::string_view name) noexcept
{
    return prefix.size() + name.size() + (name.find('{') == std::string_view::npos ? 3 : 1);
}
inline std::string prefixed(std::string_view prefix, std::string_view name)
{
    std::string key;
    key.reserve(prefixedSize(prefix, name));
    appendPrefixed(key, prefix, name);
    return key;
}

inline constexpr std::string_view lockChannelPrefix = "redisson_lock__channel";

/// The channel on which the end of a plain lock is published.
inline std::string lockChannel(std::string_view name)
{
    return prefixed(lockChannelPrefix, name);
}

} // namespace redislock::detail
