/// @file
/// The data of a Redis server.
#pragma once

#include "wire/reply.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redislock::simulation {

using detail::Reply;

/// Why a server refuses to write.
enum class Refusal : std::uint8_t { none, outOfMemory, notEnoughReplicas, readOnly };

/// The keys of a server, their expiry, and the commands that the library's scripts use; any other command is an error,
/// as an unknown command is in Redis. `tests/simulation/model_test.cpp` compares it with a real server.
///
/// Its milliseconds are counted from the start of a run; TIME returns the time since 1970.
class Keyspace {
public:
    using Words = std::vector<std::string>;

    enum class Type : std::uint8_t { hash, string, list, sortedSet };

    struct Key {
        Type type = Type::hash;
        /// For a hash: its fields and their values. For a string: the string, without a value. For a list: its
        /// elements, without values. For a sorted set: its members and their scores, the lowest first.
        std::vector<std::pair<std::string, std::string>> fields;
        std::optional<std::int64_t> expiresAtMs; ///< the last millisecond of its life

        [[nodiscard]] const std::string* find(std::string_view field) const noexcept;
        bool operator==(const Key&) const = default;
    };

    /// The answer of TIME at the beginning of a run, in ms.
    static constexpr std::int64_t epochMs = 1'800'000'000'000;

    /// Called by PUBLISH. @return how many clients got the message.
    std::function<std::int64_t(const std::string& channel, const std::string& message)> publish;
    /// Called by PUBSUB NUMSUB. @return how many clients listen.
    std::function<std::int64_t(const std::string& channel)> listeners;
    Refusal refusal = Refusal::none;

    /// The following commands belong to one script, for which time stands still.
    void beginScript(std::int64_t nowMs) noexcept
    {
        nowMs_ = nowMs;
        wrote_ = touched_ = false;
    }

    /// Executes one command of that script.
    Reply execute(const Words& words);

    /// A key that has not expired; null when there is none.
    [[nodiscard]] const Key* find(const std::string& name, std::int64_t nowMs) const noexcept;

    [[nodiscard]] const std::map<std::string, Key>& keys() const noexcept { return keys_; }

    /// Whether the script has set a time to live: that is written even where it changes nothing.
    [[nodiscard]] bool touched() const noexcept { return touched_; }
    /// The data of another server.
    void load(std::map<std::string, Key> keys) noexcept { keys_ = std::move(keys); }

    // Changes by other programs.
    void erase(const std::string& name) { keys_.erase(name); }
    void persist(const std::string& name);
    void writeString(const std::string& name) { keys_[name] = Key{Type::string, {{"1", {}}}, std::nullopt}; }
    void clear() noexcept { keys_.clear(); }

private:
    struct Command;
    static const std::vector<Command>& commands();

    std::optional<Reply> refused(const Command& command);
    Key* alive(const std::string& name);
    Key& made(const std::string& name, Type type);
    std::int64_t removed(const std::string& name, std::string_view field, bool isEvery);
    Reply time(const Words& words);
    Reply exists(const Words& words);
    Reply del(const Words& words);
    Reply pexpire(const Words& words);
    Reply pttl(const Words& words);
    Reply persistKey(const Words& words);
    Reply get(const Words& words);
    Reply set(const Words& words);
    Reply setIfAbsent(const Words& words);
    Reply setWithTime(const Words& words);
    Reply incr(const Words& words);
    Reply incrby(const Words& words);
    Reply decr(const Words& words);
    Reply decrby(const Words& words);
    Reply add(const std::string& name, std::optional<std::int64_t> difference);
    Reply hset(const Words& words);
    Reply hget(const Words& words);
    Reply hmget(const Words& words);
    Reply hgetall(const Words& words);
    Reply hexists(const Words& words);
    Reply hlen(const Words& words);
    Reply hkeys(const Words& words);
    Reply hdel(const Words& words);
    Reply lindex(const Words& words);
    Reply lrange(const Words& words);
    Reply lpop(const Words& words);
    Reply lrem(const Words& words);
    Reply lpush(const Words& words);
    Reply rpush(const Words& words);
    Reply zscore(const Words& words);
    Reply zadd(const Words& words);
    Reply zrem(const Words& words);
    Reply zcount(const Words& words);
    Reply zrange(const Words& words);
    Reply zremrangebyscore(const Words& words);
    Reply publishMessage(const Words& words);
    Reply countListeners(const Words& words);

    std::map<std::string, Key> keys_;
    std::int64_t nowMs_ = 0;
    bool wrote_ = false;
    bool touched_ = false;
};

} // namespace redislock::simulation
