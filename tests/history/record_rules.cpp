#include "history/record_rules.hpp"

#include "history/kinds.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <tuple>
#include <vector>

namespace redislock::test::history {
namespace {

enum Field : unsigned {
    client = 1,
    holder = 2,
    lock = 4,
    deadline = 8,
    count = 16,
    lease = 32,
    offset = 64,
    tx = 128,
    expires = 256,
    word = 512, ///< "error"
    process = 1024,
    token = 2048,
    kind = 4096,
};

/// The fields that a line of a kind needs; it may have other fields.
struct Rule {
    Op op;
    Phase phase;
    unsigned needs = 0;
    std::vector<std::string_view> words{}; ///< that "error" may be; empty: any
};

const std::vector<Rule>& rules()
{
    constexpr unsigned call = process | lock;
    constexpr unsigned told = process | client | holder | lock;
    constexpr unsigned streamed = lock | offset | tx;
    static const std::vector<Rule> all{
        {Op::lock, Phase::invoke, call | lease | word, {"renewed", "fixed"}},
        {Op::lock, Phase::ok, call | deadline},
        {Op::lock, Phase::fail, call},
        {Op::lock, Phase::unknown, call},
        {Op::unlock, Phase::invoke, call},
        {Op::unlock, Phase::ok, call | word, {"released", "passedOn", "stillHeld", "alreadyLost"}},
        {Op::unlock, Phase::fail, call},
        {Op::unlock, Phase::unknown, call},
        {Op::countDown, Phase::invoke, call},
        {Op::countDown, Phase::ok, call | count},
        {Op::countDown, Phase::unknown, call},
        {Op::await, Phase::invoke, call},
        {Op::await, Phase::ok, call},
        {Op::await, Phase::fail, call},
        {Op::await, Phase::unknown, call},
        {Op::settings, Phase::event, process | client | count | word},
        {Op::sample, Phase::event, call | deadline},
        {Op::acquired, Phase::event, told},
        {Op::renewed, Phase::event, told},
        {Op::renewalFailed, Phase::event, told},
        {Op::atRisk, Phase::event, told},
        {Op::lost, Phase::event, told},
        {Op::released, Phase::event, told},
        {Op::unconfirmed, Phase::event, told},
        {Op::resources, Phase::invoke, process | count | word},
        {Op::resources, Phase::ok, process | count | word},
        {Op::attached, Phase::event, offset},
        {Op::detached, Phase::event},
        {Op::hset, Phase::event, streamed | holder | count},
        {Op::hdel, Phase::event, streamed | holder},
        {Op::del, Phase::event, streamed},
        {Op::pexpireat, Phase::event, streamed | expires},
        {Op::publish, Phase::event, streamed},
        {Op::mode, Phase::event, streamed | kind},
        {Op::queued, Phase::event, streamed | holder | expires},
        {Op::unqueued, Phase::event, streamed | holder | word, {"first", "left"}},
        {Op::freed, Phase::event, streamed | expires},
        {Op::token, Phase::event, streamed | token},
        {Op::request, Phase::event, lock | holder | word, {"lock", "renew", "unlock"}},
        {Op::fault, Phase::invoke, word},
        {Op::fault, Phase::ok, word},
        {Op::killed, Phase::event, process},
        {Op::stopped, Phase::event, process},
        {Op::resumed, Phase::event, process},
        {Op::starved, Phase::event, count},
        {Op::clock, Phase::event, offset},
        {Op::member, Phase::event, lock | count | word},
        {Op::emptied, Phase::event, lock},
        {Op::leftKey, Phase::event, lock | count},
        {Op::latch, Phase::invoke, lock | count},
        {Op::latch, Phase::ok, lock | count},
        {Op::permits, Phase::invoke, lock | count},
        {Op::permits, Phase::ok, lock | count},
        {Op::quiet, Phase::event, count | word},
        {Op::promoted, Phase::invoke, count},
        {Op::promoted, Phase::ok, count},
        {Op::moved, Phase::invoke, lock},
        {Op::moved, Phase::ok, lock},
        {Op::moved, Phase::fail, lock},
    };
    return all;
}

/// The first needed field that the line lacks; empty: the line has all of them.
std::string_view missingField(const Record& record, unsigned needs)
{
    const std::array<std::tuple<unsigned, bool, std::string_view>, 13> fields{{
        {process, record.pid != 0, "pid"},
        {client, !record.client.empty(), "client"},
        {holder, !record.holder.empty(), "holder"},
        {lock, !record.lock.empty(), "lock"},
        {deadline, record.deadline.has_value(), "D"},
        {count, record.count.has_value(), "count"},
        {lease, record.leaseMs.has_value(), "lease"},
        {offset, record.offset.has_value(), "offset"},
        {tx, record.tx.has_value(), "tx"},
        {expires, record.expiresMs.has_value(), "expires"},
        {word, !record.error.empty(), "error"},
        {token, record.token.has_value(), "token"},
        {kind, !record.kind.empty(), "kind"},
    }};
    for (const auto& [field, isThere, name] : fields) {
        if ((needs & field) != 0 && !isThere) {
            return name;
        }
    }
    return {};
}

/// The field whose value is too large to calculate with; empty: there is none. Times end before the year 2096, and the
/// machine has run for less than 31 years.
std::string_view fieldOutOfRange(const Record& record)
{
    constexpr std::int64_t mostMs = 4'000'000'000'000;
    constexpr Nanoseconds mostUptime = 1'000'000'000'000'000'000;
    constexpr Nanoseconds most = mostMs * 1'000'000;
    const auto isIn = [](std::optional<std::int64_t> value, std::int64_t low, std::int64_t high) {
        return !value || (*value >= low && *value <= high);
    };
    const std::array<std::pair<bool, std::string_view>, 10> fields{{
        {isIn(record.t, 0, mostUptime), "t"},
        {isIn(record.deadline, 0, most), "D"},
        {isIn(record.count, -mostMs, mostMs), "count"},
        {isIn(record.leaseMs, 0, mostMs), "lease"},
        {isIn(record.permits, 1, mostMs), "permits"},
        {isIn(record.waitMs, 0, mostMs), "wait"},
        {isIn(record.offset, 0, most), "offset"},
        {isIn(record.tx, 0, std::numeric_limits<std::int64_t>::max()), "tx"},
        {isIn(record.expiresMs, 0, mostMs), "expires"},
        {isIn(record.token, 0, std::numeric_limits<std::int64_t>::max()), "token"},
    }};
    const auto found = std::find_if(fields.begin(), fields.end(), [](const auto& field) { return !field.first; });
    return found == fields.end() ? std::string_view() : found->second;
}

std::string inQuotes(std::string_view text)
{
    return "'" + std::string(text) + "'";
}

bool isOfAThread(Op op)
{
    return op == Op::lock || op == Op::unlock || op == Op::countDown || op == Op::await || op == Op::sample;
}

bool isOfTheStream(Op op)
{
    return op >= Op::hset && op <= Op::freed;
}

} // namespace

std::string complaintAbout(const Record& record)
{
    const auto rule = std::find_if(rules().begin(), rules().end(),
                                   [&](const Rule& r) { return r.op == record.op && r.phase == record.phase; });
    if (rule == rules().end()) {
        return "there is no " + inQuotes(nameOf(record.op)) + " with the phase " + inQuotes(nameOf(record.phase));
    }
    if (findKind(record.kind) == nullptr) {
        return "there is no kind " + inQuotes(record.kind);
    }
    const bool isLeased = findKind(record.kind)->isLeased;
    if (const auto field = missingField(record, isLeased ? rule->needs : rule->needs & ~deadline); !field.empty()) {
        return inQuotes(nameOf(record.op)) + " (" + std::string(nameOf(record.phase)) + ") needs the field " +
               inQuotes(field);
    }
    if (const auto field = fieldOutOfRange(record); !field.empty()) {
        return "the field " + inQuotes(field) + " is out of range";
    }
    if (!rule->words.empty() && std::find(rule->words.begin(), rule->words.end(), record.error) == rule->words.end()) {
        return "the field 'error' of " + inQuotes(nameOf(record.op)) + " cannot be " + inQuotes(record.error);
    }
    return {};
}

std::string OrderOfLines::complaintAbout(const Record& record)
{
    if (isOfAThread(record.op)) {
        auto& latest = threads_[{record.pid, record.thread}];
        if (record.t < latest) {
            return "it is earlier than the line before it of the same thread";
        }
        latest = record.t;
    } else if (record.op == Op::attached || record.op == Op::detached) {
        streamed_ = offset_ = 0;
    } else if (isOfTheStream(record.op)) {
        if (record.t < streamed_ || *record.offset < offset_) {
            return "it is earlier than the line before it of the replication stream";
        }
        streamed_ = record.t;
        offset_ = *record.offset;
    }
    return {};
}

} // namespace redislock::test::history
