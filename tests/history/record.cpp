#include "history/record.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <stdexcept>

namespace redislock::test::history {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 42> opNames{
    "unknown",       "lock",    "unlock",    "countDown", "await",       "settings",  "sample",   "acquired", "renewed",
    "renewalFailed", "atRisk",  "lost",      "released",  "unconfirmed", "resources", "attached", "detached", "hset",
    "hdel",          "del",     "pexpireat", "publish",   "token",       "mode",      "queued",   "unqueued", "freed",
    "request",       "fault",   "killed",    "stopped",   "resumed",     "starved",   "clock",    "member",   "emptied",
    "leftKey",       "permits", "latch",     "quiet",     "promoted",    "moved"};
static_assert(opNames.size() == static_cast<std::size_t>(Op::moved) + 1);

constexpr std::array<std::string_view, 5> phaseNames{"invoke", "ok", "fail", "unknown", "event"};

/// The fields, named once for both directions.
template <class Self, class Visit>
void forEachField(Self& record, Visit visit)
{
    visit("client", record.client);
    visit("holder", record.holder);
    visit("lock", record.lock);
    visit("kind", record.kind);
    visit("D", record.deadline);
    visit("count", record.count);
    visit("lease", record.leaseMs);
    visit("wait", record.waitMs);
    visit("offset", record.offset);
    visit("tx", record.tx);
    visit("expires", record.expiresMs);
    visit("token", record.token);
    visit("permits", record.permits);
    visit("error", record.error);
}

struct Writer {
    Json& json;

    void operator()(const char* name, const Word& value) const
    {
        if (!value.empty()) {
            json[name] = value.str();
        }
    }
    void operator()(const char* name, const std::optional<std::int64_t>& value) const
    {
        if (value) {
            json[name] = *value;
        }
    }
};

std::int64_t integerOf(const Json& json, const std::string& name)
{
    if (!json.is_number_integer()) {
        throw std::runtime_error("the field '" + name + "' is no whole number");
    }
    if (json.is_number_unsigned() && json.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max()) {
        throw std::runtime_error("the field '" + name + "' is out of range");
    }
    return json.get<std::int64_t>();
}

int idOf(const Json& json, const std::string& name)
{
    const auto id = integerOf(json, name);
    if (id < 0 || id > std::numeric_limits<int>::max()) {
        throw std::runtime_error("the field '" + name + "' is out of range");
    }
    return static_cast<int>(id);
}

std::string wordOf(const Json& json, const std::string& name)
{
    if (!json.is_string()) {
        throw std::runtime_error("the field '" + name + "' is no text");
    }
    return json.get<std::string>();
}

/// Takes the fields out of a line: fields that are left at the end are unknown.
class Reader {
public:
    explicit Reader(Json& json) : json_(json) {}

    /// Null when the line does not have the field.
    [[nodiscard]] Json take(const char* name) const
    {
        const auto found = json_.find(name);
        if (found == json_.end()) {
            return {};
        }
        Json value = std::move(*found);
        json_.erase(found);
        return value;
    }

    [[nodiscard]] Json need(const char* name) const
    {
        auto value = take(name);
        if (value.is_null()) {
            throw std::runtime_error("the field '" + std::string(name) + "' is missing");
        }
        return value;
    }

    template <class Value>
    void operator()(const char* name, Value& value) const
    {
        if (const auto found = take(name); !found.is_null()) {
            if constexpr (std::is_same_v<Value, Word>) {
                value = wordOf(found, name);
            } else {
                value = integerOf(found, name);
            }
        }
    }

private:
    Json& json_;
};

template <class Enum, class Names>
Enum valueOf(const std::string& name, const Names& names, std::size_t first, const char* what)
{
    const auto found = std::find(names.begin() + static_cast<std::ptrdiff_t>(first), names.end(), name);
    if (found == names.end()) {
        throw std::runtime_error("there is no " + std::string(what) + " '" + name + "'");
    }
    return static_cast<Enum>(found - names.begin());
}

Record recordOf(Json& json)
{
    if (!json.is_object()) {
        throw std::runtime_error("it is no object");
    }
    const Reader reader(json);
    Record record;
    record.t = integerOf(reader.need("t"), "t");
    record.op = valueOf<Op>(wordOf(reader.need("op"), "op"), opNames, 1, "op");
    record.phase = valueOf<Phase>(wordOf(reader.need("phase"), "phase"), phaseNames, 0, "phase");
    const auto pid = reader.take("pid");
    record.pid = pid.is_null() ? 0 : idOf(pid, "pid");
    const auto thread = reader.take("thread");
    record.thread = thread.is_null() ? 0 : idOf(thread, "thread");
    forEachField(record, reader);
    if (!json.empty()) {
        throw std::runtime_error("there is no field '" + json.begin().key() + "'");
    }
    return record;
}

} // namespace

std::string_view nameOf(Op op)
{
    return opNames.at(static_cast<std::size_t>(op));
}

std::string_view nameOf(Phase phase)
{
    return phaseNames.at(static_cast<std::size_t>(phase));
}

std::string toLine(const Record& record)
{
    Json json;
    json["t"] = record.t;
    json["pid"] = record.pid;
    json["thread"] = record.thread;
    json["op"] = nameOf(record.op);
    json["phase"] = nameOf(record.phase);
    forEachField(record, Writer{json});
    // names of locks may be any bytes
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Record fromLine(std::string_view line)
{
    try {
        auto json = Json::parse(line);
        return recordOf(json);
    } catch (const nlohmann::json::exception& error) {
        throw std::runtime_error(std::string("not a line of a history: ") + error.what());
    }
}

} // namespace redislock::test::history
