#include "history/record.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace redislock::test::history {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 27> opNames{
    "unknown", "lock",     "unlock",      "settings",  "sample",   "acquired", "renewed", "renewalFailed", "atRisk",
    "lost",    "released", "unconfirmed", "resources", "attached", "hset",     "hdel",    "del",           "pexpireat",
    "publish", "request",  "fault",       "killed",    "stopped",  "resumed",  "clock",   "leftKey",       "quiet"};
static_assert(opNames.size() == static_cast<std::size_t>(Op::quiet) + 1);

constexpr std::array<std::string_view, 5> phaseNames{"invoke", "ok", "fail", "unknown", "event"};

/// The fields, named once for both directions.
template <class Self, class Visit>
void forEachField(Self& record, Visit visit)
{
    visit("client", record.client);
    visit("holder", record.holder);
    visit("lock", record.lock);
    visit("D", record.deadline);
    visit("count", record.count);
    visit("lease", record.leaseMs);
    visit("wait", record.waitMs);
    visit("offset", record.offset);
    visit("tx", record.tx);
    visit("expires", record.expiresMs);
    visit("error", record.error);
}

struct Writer {
    Json& json;

    void operator()(const char* name, const std::string& value) const
    {
        if (!value.empty()) {
            json[name] = value;
        }
    }
    void operator()(const char* name, const std::optional<std::int64_t>& value) const
    {
        if (value) {
            json[name] = *value;
        }
    }
};

struct Reader {
    const Json& json;

    template <class Value>
    void operator()(const char* name, Value& value) const
    {
        if (const auto found = json.find(name); found != json.end()) {
            if constexpr (std::is_same_v<Value, std::string>) {
                value = found->get<std::string>();
            } else {
                value = found->get<std::int64_t>();
            }
        }
    }
};

template <class Enum, class Names>
Enum valueOf(const std::string& name, const Names& names, Enum otherwise)
{
    const auto found = std::find(names.begin(), names.end(), name);
    return found == names.end() ? otherwise : static_cast<Enum>(found - names.begin());
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
        const auto json = Json::parse(line);
        Record record;
        record.t = json.at("t").get<Nanoseconds>();
        record.pid = json.value("pid", 0);
        record.thread = json.value("thread", 0);
        record.op = valueOf(json.at("op").get<std::string>(), opNames, Op::unknown);
        record.phase = valueOf(json.at("phase").get<std::string>(), phaseNames, Phase::event);
        forEachField(record, Reader{json});
        return record;
    } catch (const nlohmann::json::exception& error) {
        throw std::runtime_error(std::string("not a line of a history: ") + error.what());
    }
}

std::vector<Record> parseHistory(std::string_view text, const std::string& source)
{
    std::vector<Record> records;
    int number = 0;
    for (auto end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
        const auto line = text.substr(0, end);
        text.remove_prefix(end + 1);
        ++number;
        if (line.empty() || line.starts_with("//")) {
            continue;
        }
        const auto where = source + ":" + std::to_string(number);
        try {
            records.push_back(fromLine(line));
        } catch (const std::runtime_error& error) {
            throw std::runtime_error(where + ": " + error.what());
        }
        records.back().source = where;
    }
    std::stable_sort(records.begin(), records.end(), [](const auto& a, const auto& b) { return a.t < b.t; });
    return records;
}

std::vector<Record> readHistory(const std::filesystem::path& path)
{
    namespace fs = std::filesystem;
    std::vector<fs::path> files;
    if (fs::is_directory(path)) {
        for (const auto& entry : fs::directory_iterator(path)) {
            if (entry.path().extension() == ".jsonl") {
                files.push_back(entry.path());
            }
        }
        std::sort(files.begin(), files.end());
    } else {
        files.push_back(path);
    }
    std::vector<Record> all;
    for (const auto& file : files) {
        std::ifstream in(file, std::ios::binary);
        if (!in) {
            throw std::runtime_error("cannot read " + file.string());
        }
        const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
        auto records = parseHistory(text, file.filename().string());
        std::move(records.begin(), records.end(), std::back_inserter(all));
    }
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.t < b.t; });
    return all;
}

} // namespace redislock::test::history
