/// @file
/// The names of keys and channels according to doc/keys.md. They are not taken from the library, whose keys they judge.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace redislock::test::history {

/// `prefix:{lock}`, or `prefix:lock` if the name has braces.
inline std::string prefixed(std::string_view prefix, const std::string& lock)
{
    return std::string(prefix) + (lock.find('{') == std::string::npos ? ":{" + lock + "}" : ":" + lock);
}

/// The lock of `{lock}`, or of a name that has braces itself.
inline std::string withoutBraces(std::string_view name)
{
    const bool isTagged = name.find('{', 1) == std::string_view::npos && name.starts_with('{') && name.ends_with('}');
    return std::string(isTagged ? name.substr(1, name.size() - 2) : name);
}

/// The lock that a key with this prefix belongs to; nothing: the key has another prefix.
inline std::optional<std::string> lockOfPrefixed(std::string_view prefix, std::string_view key)
{
    if (!key.starts_with(prefix) || key.substr(prefix.size(), 1) != ":") {
        return std::nullopt;
    }
    key.remove_prefix(prefix.size() + 1);
    return withoutBraces(key);
}

/// The lock and the holder of a key `{lock}:<holder>:rwlock_timeout:<level>`.
struct HoldKey {
    std::string lock;
    std::string holder;
};

/// Nothing: the key is not a key of a reader's hold.
inline std::optional<HoldKey> holdKeyOf(std::string_view key)
{
    const auto end = key.rfind(":rwlock_timeout:");
    const auto number = end == std::string_view::npos ? end : key.rfind(':', end - 1);
    const auto client = number == std::string_view::npos ? number : key.rfind(':', number - 1);
    if (client == std::string_view::npos) {
        return std::nullopt;
    }
    return HoldKey{withoutBraces(key.substr(0, client)), std::string(key.substr(client + 1, end - client - 1))};
}

/// The holder without the ending of writers' fields.
inline std::string_view withoutHalf(std::string_view holder)
{
    constexpr std::string_view writers = ":write";
    return holder.ends_with(writers) ? holder.substr(0, holder.size() - writers.size()) : holder;
}

inline bool isWriter(std::string_view holder)
{
    return withoutHalf(holder).size() < holder.size();
}

/// The client of a holder `<client>:<number>`.
inline std::string clientOf(std::string_view holder)
{
    const auto both = withoutHalf(holder);
    return std::string(both.substr(0, both.rfind(':')));
}

/// The semaphore of a key `{semaphore}:timeout`; nothing: the key is not such a key.
inline std::optional<std::string> semaphoreOfLeases(std::string_view key)
{
    constexpr std::string_view leases = ":timeout";
    return key.ends_with(leases) ? std::optional(withoutBraces(key.substr(0, key.size() - leases.size())))
                                 : std::nullopt;
}

inline constexpr std::string_view lockChannel = "redisson_lock__channel";
inline constexpr std::string_view readWriteChannel = "redisson_rwlock";
inline constexpr std::string_view tokenKey = "redisson_lock_token";
inline constexpr std::string_view requestKey = "redislock_request";
inline constexpr std::string_view queueKey = "redisson_lock_queue";
inline constexpr std::string_view queueTimesKey = "redisson_lock_timeout";
inline constexpr std::string_view placesKey = "redislock_places";

/// Whether the key says that a writer waits for readers.
inline bool isWaitingWriter(std::string_view key)
{
    return key.ends_with(":redislock_writer");
}

/// Whether the key is one of the three keys of a fair lock's queue.
inline bool isOfAQueue(std::string_view key)
{
    return lockOfPrefixed(queueKey, key) || lockOfPrefixed(queueTimesKey, key) || lockOfPrefixed(placesKey, key);
}

} // namespace redislock::test::history
