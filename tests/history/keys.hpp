/// @file
/// The names of keys and channels, as doc/keys.md has them. Not taken from the library: what it writes is judged by them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace redislock::test::history {

/// `prefix:{lock}`, or `prefix:lock` where the name has braces.
inline std::string prefixed(std::string_view prefix, const std::string& lock)
{
    return std::string(prefix) + (lock.find('{') == std::string::npos ? ":{" + lock + "}" : ":" + lock);
}

/// The lock that a key with this prefix belongs to; nothing: the key has another prefix.
inline std::optional<std::string> lockOfPrefixed(std::string_view prefix, std::string_view key)
{
    if (!key.starts_with(prefix) || key.substr(prefix.size(), 1) != ":") {
        return std::nullopt;
    }
    key.remove_prefix(prefix.size() + 1);
    const bool isTagged = key.find('{', 1) == std::string_view::npos && key.starts_with('{') && key.ends_with('}');
    return std::string(isTagged ? key.substr(1, key.size() - 2) : key);
}

inline constexpr std::string_view lockChannel = "redisson_lock__channel";
inline constexpr std::string_view tokenKey = "redisson_lock_token";

} // namespace redislock::test::history
