#include "simulation/keyspace.hpp"

#include <algorithm>
#include <charconv>

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

} // namespace

struct Keyspace::Command {
    std::string_view name;
    std::size_t words;
    bool writes;
    bool needsMemory;
    bool hashOnly;
    Reply (Keyspace::*run)(const Words&);
};

const std::vector<Keyspace::Command>& Keyspace::commands()
{
    static const std::vector<Command> all{
        {"PTTL", 2, false, false, false, &Keyspace::pttl},
        {"HEXISTS", 3, false, false, true, &Keyspace::hexists},
        {"HGET", 3, false, false, true, &Keyspace::hget},
        {"HLEN", 2, false, false, true, &Keyspace::hlen},
        {"HKEYS", 2, false, false, true, &Keyspace::hkeys},
        {"HSET", 4, true, true, true, &Keyspace::hset},
        {"PEXPIRE", 3, true, false, false, &Keyspace::pexpire},
        {"DEL", 2, true, false, false, &Keyspace::del},
        {"PUBLISH", 3, false, false, false, &Keyspace::publishMessage},
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
    const auto command = std::find_if(known.begin(), known.end(), [&](const Command& c) { return c.name == words[0]; });
    if (command == known.end()) {
        return error("ERR Unknown Redis command called from script");
    }
    if (command->words != words.size()) {
        return error("ERR Wrong number of args calling Redis command from script");
    }
    if (auto reply = refused(*command)) {
        return *reply;
    }
    if (command->hashOnly) {
        if (const Key* key = alive(words[1]); key != nullptr && !key->isHash) {
            return wrongType();
        }
    }
    return (this->*command->run)(words);
}

/// A server that may not write refuses a script's first write, and no later one: the script could not be undone.
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

Reply Keyspace::del(const Words& words)
{
    const bool there = alive(words[1]) != nullptr;
    keys_.erase(words[1]);
    return integer(there ? 1 : 0);
}

Reply Keyspace::pexpire(const Words& words)
{
    std::int64_t ms = 0;
    const char* end = words[2].data() + words[2].size();
    if (const auto parsed = std::from_chars(words[2].data(), end, ms); parsed.ec != std::errc{} || parsed.ptr != end) {
        return error("ERR value is not an integer or out of range");
    }
    Key* key = alive(words[1]);
    if (key == nullptr) {
        return integer(0);
    }
    if (ms <= 0) {
        keys_.erase(words[1]);
    } else {
        key->expiresAtMs = nowMs_ + ms;
    }
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

Reply Keyspace::hset(const Words& words)
{
    alive(words[1]); // what is over is gone before it is written anew
    auto& fields = keys_[words[1]].fields;
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
    Reply reply{Reply::Kind::array, 0, {}, {}};
    if (const Key* key = alive(words[1])) {
        for (const auto& field : key->fields) {
            reply.elements.push_back(text(field.first));
        }
    }
    return reply;
}

Reply Keyspace::publishMessage(const Words& words)
{
    return integer(publish ? publish(words[1], words[2]) : 0);
}

} // namespace redislock::simulation
