#include "simulation/keyspace.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

namespace redislock::simulation {

namespace {

Reply integer(std::int64_t value)
{
    return {Reply::Kind::integer, value, {}, {}};
}

Reply text(std::string value)
{
    return {Reply::Kind::text, 0, std::move(value), {}};
}

Reply error(std::string value)
{
    return {Reply::Kind::error, 0, std::move(value), {}};
}

Reply wrongType()
{
    return error("WRONGTYPE Operation against a key holding the wrong kind of value");
}

Reply notAnInteger()
{
    return error("ERR value is not an integer or out of range");
}

Reply array(std::vector<Reply> elements)
{
    return {Reply::Kind::array, 0, {}, std::move(elements)};
}

/// A number as Redis reads it: without leading zeros, and nothing but the number.
std::optional<std::int64_t> number(const std::string& word)
{
    std::int64_t value = 0;
    std::from_chars(word.data(), word.data() + word.size(), value);
    return std::to_string(value) == word ? std::optional(value) : std::nullopt;
}

/// A predicate: whether a member's score is between the two words.
auto hasScore(const std::string& low, const std::string& high)
{
    return [from = number(low).value_or(0), to = number(high).value_or(0)](const auto& member) {
        const auto score = number(member.second).value_or(0);
        return score >= from && score <= to;
    };
}

constexpr std::size_t some = 0;

} // namespace

struct Keyspace::Command {
    std::string_view name;
    std::size_t words; ///< some: two or more
    bool writes;
    bool needsMemory;
    std::optional<Type> type; ///< of its key; nothing: any
    Reply (Keyspace::*run)(const Words&);
};

const std::vector<Keyspace::Command>& Keyspace::commands()
{
    constexpr bool reads = false;
    constexpr bool writes = true;
    constexpr bool frees = false; ///< memory, or leaves it
    constexpr bool takes = true;
    constexpr auto hash = Type::hash;
    constexpr auto list = Type::list;
    constexpr auto sortedSet = Type::sortedSet;
    static const std::vector<Command> all{
        {"TIME", 1, reads, frees, {}, &Keyspace::time},
        {"EXISTS", 2, reads, frees, {}, &Keyspace::exists},
        {"PTTL", 2, reads, frees, {}, &Keyspace::pttl},
        {"PEXPIRE", 3, writes, frees, {}, &Keyspace::pexpire},
        {"PERSIST", 2, writes, frees, {}, &Keyspace::persistKey},
        {"DEL", some, writes, frees, {}, &Keyspace::del},
        {"GET", 2, reads, frees, Type::string, &Keyspace::get},
        {"SET", 3, writes, takes, {}, &Keyspace::set},
        {"SET", 4, writes, takes, {}, &Keyspace::setIfAbsent},
        {"SET", 5, writes, takes, {}, &Keyspace::setWithTime},
        {"INCR", 2, writes, takes, Type::string, &Keyspace::incr},
        {"INCRBY", 3, writes, takes, Type::string, &Keyspace::incrby},
        {"DECR", 2, writes, takes, Type::string, &Keyspace::decr},
        {"DECRBY", 3, writes, takes, Type::string, &Keyspace::decrby},
        {"HEXISTS", 3, reads, frees, hash, &Keyspace::hexists},
        {"HGET", 3, reads, frees, hash, &Keyspace::hget},
        {"HMGET", some, reads, frees, hash, &Keyspace::hmget},
        {"HGETALL", 2, reads, frees, hash, &Keyspace::hgetall},
        {"HLEN", 2, reads, frees, hash, &Keyspace::hlen},
        {"HKEYS", 2, reads, frees, hash, &Keyspace::hkeys},
        {"HSET", 4, writes, takes, hash, &Keyspace::hset},
        {"HDEL", 3, writes, frees, hash, &Keyspace::hdel},
        {"LLEN", 2, reads, frees, list, &Keyspace::hlen},
        {"LINDEX", 3, reads, frees, list, &Keyspace::lindex},
        {"LRANGE", 4, reads, frees, list, &Keyspace::lrange},
        {"LPOP", 2, writes, frees, list, &Keyspace::lpop},
        {"LREM", 4, writes, frees, list, &Keyspace::lrem},
        {"LPUSH", 3, writes, takes, list, &Keyspace::lpush},
        {"RPUSH", 3, writes, takes, list, &Keyspace::rpush},
        {"ZSCORE", 3, reads, frees, sortedSet, &Keyspace::zscore},
        {"ZADD", 4, writes, takes, sortedSet, &Keyspace::zadd},
        {"ZREM", 3, writes, frees, sortedSet, &Keyspace::zrem},
        {"ZCARD", 2, reads, frees, sortedSet, &Keyspace::hlen},
        {"ZCOUNT", 4, reads, frees, sortedSet, &Keyspace::zcount},
        {"ZRANGE", 5, reads, frees, sortedSet, &Keyspace::zrange},
        {"ZREMRANGEBYSCORE", 4, writes, frees, sortedSet, &Keyspace::zremrangebyscore},
        {"PUBLISH", 3, reads, frees, {}, &Keyspace::publishMessage},
        {"PUBSUB", 3, reads, frees, {}, &Keyspace::countListeners},
    };
    return all;
}

const std::string* Keyspace::Key::find(std::string_view field) const noexcept
{
    const auto found = std::find_if(fields.begin(), fields.end(), [field](const auto& f) { return f.first == field; });
    return found == fields.end() ? nullptr : &found->second;
}

const Keyspace::Key* Keyspace::find(const std::string& name, std::int64_t nowMs) const noexcept
{
    const auto found = keys_.find(name);
    const bool over = found == keys_.end() || (found->second.expiresAtMs && nowMs > *found->second.expiresAtMs);
    return over ? nullptr : &found->second;
}

void Keyspace::persist(const std::string& name)
{
    if (const auto found = keys_.find(name); found != keys_.end()) {
        found->second.expiresAtMs.reset();
    }
}

Reply Keyspace::execute(const Words& words)
{
    const auto& known = commands();
    const auto isNamed = [&](const Command& c) { return c.name == words[0]; };
    const auto command = std::find_if(known.begin(), known.end(), [&](const Command& c) {
        return isNamed(c) && (c.words == some ? words.size() > 1 : c.words == words.size());
    });
    if (command == known.end()) {
        return error(std::any_of(known.begin(), known.end(), isNamed)
                         ? "ERR Wrong number of args calling Redis command from script"
                         : "ERR Unknown Redis command called from script");
    }
    if (auto reply = refused(*command)) {
        return *reply;
    }
    if (command->type) {
        if (const Key* key = alive(words[1]); key != nullptr && key->type != *command->type) {
            return wrongType();
        }
    }
    return (this->*command->run)(words);
}

/// A server that may not write refuses only a script's first write, and no later one: the script could not be undone.
std::optional<Reply> Keyspace::refused(const Command& command)
{
    if (!command.writes || wrote_) {
        return std::nullopt;
    }
    switch (refusal) {
    case Refusal::outOfMemory:
        if (command.needsMemory) {
            return error("OOM command not allowed when used memory > 'maxmemory'.");
        }
        break;
    case Refusal::notEnoughReplicas:
        return error("NOREPLICAS Not enough good replicas to write.");
    case Refusal::readOnly:
        return error("READONLY You can't write against a read only replica.");
    case Refusal::none:
        break;
    }
    wrote_ = true;
    return std::nullopt;
}

Keyspace::Key* Keyspace::alive(const std::string& name)
{
    const auto found = keys_.find(name);
    if (found == keys_.end()) {
        return nullptr;
    }
    if (found->second.expiresAtMs && nowMs_ > *found->second.expiresAtMs) {
        keys_.erase(found);
        return nullptr;
    }
    return &found->second;
}

/// The key; a new key of that type if there is none.
Keyspace::Key& Keyspace::made(const std::string& name, Type type)
{
    if (Key* key = alive(name)) {
        return *key;
    }
    return keys_[name] = Key{type, {}, std::nullopt};
}

/// Removes the first such field, or all of them; a key without fields is removed. @return how many were removed.
std::int64_t Keyspace::removed(const std::string& name, std::string_view field, bool isEvery)
{
    Key* key = alive(name);
    if (key == nullptr) {
        return 0;
    }
    std::int64_t count = 0;
    std::erase_if(key->fields,
                  [&](const auto& f) { return f.first == field && (isEvery || count == 0) && ++count > 0; });
    if (key->fields.empty()) {
        keys_.erase(name);
    }
    return count;
}

Reply Keyspace::time(const Words& /*words*/)
{
    const std::int64_t ms = epochMs + nowMs_;
    return array({text(std::to_string(ms / 1000)), text(std::to_string(ms % 1000 * 1000))});
}

Reply Keyspace::exists(const Words& words)
{
    return integer(alive(words[1]) == nullptr ? 0 : 1);
}

Reply Keyspace::del(const Words& words)
{
    std::int64_t there = 0;
    for (std::size_t i = 1; i < words.size(); ++i) {
        there += alive(words[i]) == nullptr ? 0 : 1;
        keys_.erase(words[i]);
    }
    return integer(there);
}

Reply Keyspace::pexpire(const Words& words)
{
    const auto ms = number(words[2]);
    if (!ms) {
        return notAnInteger();
    }
    Key* key = alive(words[1]);
    if (key == nullptr) {
        return integer(0);
    }
    if (*ms <= 0) {
        keys_.erase(words[1]);
    } else {
        key->expiresAtMs = nowMs_ + *ms;
    }
    touched_ = true;
    return integer(1);
}

Reply Keyspace::pttl(const Words& words)
{
    const Key* key = alive(words[1]);
    if (key == nullptr) {
        return integer(-2);
    }
    return integer(key->expiresAtMs ? *key->expiresAtMs - nowMs_ : -1);
}

Reply Keyspace::persistKey(const Words& words)
{
    Key* key = alive(words[1]);
    const bool had = key != nullptr && key->expiresAtMs;
    if (had) {
        key->expiresAtMs.reset();
    }
    return integer(had ? 1 : 0);
}

Reply Keyspace::get(const Words& words)
{
    const Key* key = alive(words[1]);
    return key == nullptr ? Reply{} : text(key->fields.at(0).first);
}

Reply Keyspace::set(const Words& words)
{
    keys_[words[1]] = Key{Type::string, {{words[2], {}}}, std::nullopt};
    return {Reply::Kind::status, 0, "OK", {}};
}

Reply Keyspace::setIfAbsent(const Words& words)
{
    if (words[3] != "NX") {
        return error("ERR syntax error");
    }
    return alive(words[1]) == nullptr ? set(words) : Reply{};
}

Reply Keyspace::setWithTime(const Words& words)
{
    if (words[3] != "PX") {
        return error("ERR syntax error");
    }
    const auto ms = number(words[4]);
    if (!ms) {
        return notAnInteger();
    }
    if (*ms <= 0) {
        return error("ERR invalid expire time in 'set' command");
    }
    keys_[words[1]] = Key{Type::string, {{words[2], {}}}, nowMs_ + *ms};
    return {Reply::Kind::status, 0, "OK", {}};
}

Reply Keyspace::incr(const Words& words)
{
    return add(words[1], 1);
}

Reply Keyspace::incrby(const Words& words)
{
    return add(words[1], number(words[2]));
}

Reply Keyspace::decr(const Words& words)
{
    return add(words[1], -1);
}

Reply Keyspace::decrby(const Words& words)
{
    const auto less = number(words[2]);
    return less ? add(words[1], -*less) : notAnInteger();
}

Reply Keyspace::add(const std::string& name, std::optional<std::int64_t> difference)
{
    const Key* old = alive(name);
    const auto value = old == nullptr ? 0 : number(old->fields[0].first);
    if (!value || !difference) {
        return notAnInteger();
    }
    std::int64_t sum = 0;
    if (__builtin_add_overflow(*value, *difference, &sum)) {
        return error("ERR increment or decrement would overflow");
    }
    made(name, Type::string).fields = {{std::to_string(sum), {}}};
    return integer(sum);
}

Reply Keyspace::hset(const Words& words)
{
    auto& fields = made(words[1], Type::hash).fields;
    for (auto& [name, value] : fields) {
        if (name == words[2]) {
            value = words[3];
            return integer(0);
        }
    }
    fields.emplace_back(words[2], words[3]);
    return integer(1);
}

Reply Keyspace::hget(const Words& words)
{
    const Key* key = alive(words[1]);
    const std::string* value = key == nullptr ? nullptr : key->find(words[2]);
    return value == nullptr ? Reply{} : text(*value);
}

Reply Keyspace::hmget(const Words& words)
{
    if (words.size() < 3) {
        return error("ERR Wrong number of args calling Redis command from script");
    }
    const Key* key = alive(words[1]);
    Reply reply = array({});
    for (std::size_t i = 2; i < words.size(); ++i) {
        const std::string* value = key == nullptr ? nullptr : key->find(words[i]);
        reply.elements.push_back(value == nullptr ? Reply{} : text(*value));
    }
    return reply;
}

Reply Keyspace::hexists(const Words& words)
{
    const Key* key = alive(words[1]);
    return integer(key != nullptr && key->find(words[2]) != nullptr ? 1 : 0);
}

Reply Keyspace::hlen(const Words& words)
{
    const Key* key = alive(words[1]);
    return integer(key == nullptr ? 0 : static_cast<std::int64_t>(key->fields.size()));
}

Reply Keyspace::hkeys(const Words& words)
{
    Reply reply = array({});
    if (const Key* key = alive(words[1])) {
        for (const auto& field : key->fields) {
            reply.elements.push_back(text(field.first));
        }
    }
    return reply;
}

Reply Keyspace::hgetall(const Words& words)
{
    Reply reply = array({});
    if (const Key* key = alive(words[1])) {
        for (const auto& [field, value] : key->fields) {
            reply.elements.push_back(text(field));
            reply.elements.push_back(text(value));
        }
    }
    return reply;
}

Reply Keyspace::hdel(const Words& words)
{
    return integer(removed(words[1], words[2], true));
}

/// Counts from the end if the number is negative.
Reply Keyspace::lindex(const Words& words)
{
    const auto index = number(words[2]);
    if (!index) {
        return notAnInteger();
    }
    const Key* key = alive(words[1]);
    const std::int64_t size = key == nullptr ? 0 : std::ssize(key->fields);
    const std::int64_t at = *index < 0 ? size + *index : *index;
    return at < 0 || at >= size ? Reply{} : text(key->fields[static_cast<std::size_t>(at)].first);
}

/// Supports only positive indexes, counted from the front.
Reply Keyspace::lrange(const Words& words)
{
    const auto first = number(words[2]);
    const auto last = number(words[3]);
    if (!first || !last || *first < 0 || *last < 0) {
        return error("ERR the model counts the elements of a range from the front");
    }
    Reply reply = array({});
    if (const Key* key = alive(words[1])) {
        for (std::int64_t i = *first; i <= *last && i < std::ssize(key->fields); ++i) {
            reply.elements.push_back(text(key->fields[static_cast<std::size_t>(i)].first));
        }
    }
    return reply;
}

Reply Keyspace::lpop(const Words& words)
{
    const Key* key = alive(words[1]);
    if (key == nullptr) {
        return {};
    }
    const std::string first = key->fields.front().first;
    removed(words[1], first, false);
    return text(first);
}

/// Supports only the removal of all equal elements.
Reply Keyspace::lrem(const Words& words)
{
    if (words[2] != "0") {
        return error("ERR the model removes all equal elements of a list only");
    }
    return integer(removed(words[1], words[3], true));
}

Reply Keyspace::lpush(const Words& words)
{
    auto& fields = made(words[1], Type::list).fields;
    fields.emplace(fields.begin(), words[2], std::string());
    return integer(static_cast<std::int64_t>(fields.size()));
}

Reply Keyspace::rpush(const Words& words)
{
    auto& fields = made(words[1], Type::list).fields;
    fields.emplace_back(words[2], std::string());
    return integer(static_cast<std::int64_t>(fields.size()));
}

Reply Keyspace::zscore(const Words& words)
{
    const Key* key = alive(words[1]);
    const std::string* score = key == nullptr ? nullptr : key->find(words[2]);
    return score == nullptr ? Reply{} : text(*score);
}

/// Supports only whole numbers.
Reply Keyspace::zadd(const Words& words)
{
    const auto score = number(words[2]);
    if (!score) {
        return error("ERR value is not a valid float");
    }
    auto& fields = made(words[1], Type::sortedSet).fields;
    const auto before = fields.size();
    std::erase_if(fields, [&](const auto& f) { return f.first == words[3]; });
    const bool isNew = fields.size() == before;
    const auto place = std::find_if(fields.begin(), fields.end(), [&](const auto& f) {
        const auto other = number(f.second).value_or(0);
        return other > *score || (other == *score && f.first > words[3]);
    });
    fields.emplace(place, words[3], std::to_string(*score));
    return integer(isNew ? 1 : 0);
}

Reply Keyspace::zrem(const Words& words)
{
    return integer(removed(words[1], words[2], true));
}

Reply Keyspace::zcount(const Words& words)
{
    const Key* key = alive(words[1]);
    return integer(
        key == nullptr ? 0 : std::count_if(key->fields.begin(), key->fields.end(), hasScore(words[2], words[3])));
}

/// Supports only the first member, with its score.
Reply Keyspace::zrange(const Words& words)
{
    if (words[2] != "0" || words[3] != "0" || words[4] != "WITHSCORES") {
        return error("ERR the model knows the first of a sorted set only");
    }
    const Key* key = alive(words[1]);
    return key == nullptr ? array({}) : array({text(key->fields[0].first), text(key->fields[0].second)});
}

Reply Keyspace::zremrangebyscore(const Words& words)
{
    Key* key = alive(words[1]);
    if (key == nullptr) {
        return integer(0);
    }
    const auto removed = std::erase_if(key->fields, hasScore(words[2], words[3]));
    if (key->fields.empty()) {
        keys_.erase(words[1]);
    }
    return integer(static_cast<std::int64_t>(removed));
}

Reply Keyspace::publishMessage(const Words& words)
{
    return integer(publish ? publish(words[1], words[2]) : 0);
}

/// PUBSUB NUMSUB of one channel.
Reply Keyspace::countListeners(const Words& words)
{
    return array({text(words[2]), integer(listeners ? listeners(words[2]) : 0)});
}

} // namespace redislock::simulation
