// The replication stream as grants.
#include "history/history_parts.hpp"
#include "history/keys.hpp"

#include <set>

namespace redislock::test::history {
namespace {

class StreamReader {
public:
    explicit StreamReader(History& history) : history_(history)
    {
        for (const auto& record : history.records) {
            if (record.op == Op::publish) {
                published_.insert({record.tx.value_or(0), record.lock});
            } else if (record.op == Op::pexpireat) {
                timed_.insert({record.tx.value_or(0), record.lock});
            } else if (record.op == Op::token) {
                tokens_[{record.tx.value_or(0), record.lock}] = *record.token;
            }
        }
    }

    void take(const Record& record)
    {
        switch (record.op) {
        case Op::hset:
            return set(record);
        case Op::pexpireat:
            return expire(record);
        case Op::del:
            return end(record, wasReleased(record) ? Grant::Freed::released : howItVanished(record));
        case Op::hdel:
            return end(record, Grant::Freed::removed);
        default:
            return;
        }
    }

private:
    Grant* current(const std::string& lock)
    {
        const auto found = current_.find(lock);
        return found == current_.end() ? nullptr : &history_.grants[found->second];
    }

    /// What tells nobody can only be told from an expiry.
    [[nodiscard]] bool wasReleased(const Record& record)
    {
        return history_.kind(record.lock).tellsEverybody
                   ? published_.count({record.tx.value_or(0), prefixed(lockChannel, record.lock)}) > 0
                   : howItVanished(record) == Grant::Freed::removed;
    }

    Grant::Freed howItVanished(const Record& record)
    {
        const auto* grant = current(record.lock);
        if (grant == nullptr || grant->expiries.empty()) {
            return Grant::Freed::removed;
        }
        // it came here after it was executed: too early for an expiry here is too early there
        return record.t + millisecond < history_.bootOf(grant->expiresMs()) ? Grant::Freed::removed
                                                                            : Grant::Freed::expired;
    }

    void set(const Record& record)
    {
        if (auto* grant = current(record.lock)) {
            if (grant->holder == record.holder) {
                grant->counts.push_back(record.count.value_or(0));
                return;
            }
            // a server that starts again forgets what is over without a word
            end(record,
                howItVanished(record) == Grant::Freed::expired ? Grant::Freed::expired : Grant::Freed::overwritten);
        }
        Grant grant;
        grant.lock = record.lock;
        grant.holder = record.holder;
        grant.made = record;
        grant.counts.push_back(record.count.value_or(0));
        grant.withoutExpiry = timed_.count({record.tx.value_or(0), record.lock}) == 0;
        if (const auto token = tokens_.find({record.tx.value_or(0), record.lock}); token != tokens_.end()) {
            grant.token = token->second;
        }
        current_[record.lock] = history_.grants.size();
        history_.grants.push_back(std::move(grant));
    }

    void expire(const Record& record)
    {
        if (auto* grant = current(record.lock)) {
            grant->expiries.push_back(record);
        } else {
            history_.orphans.push_back(record);
        }
    }

    void end(const Record& record, Grant::Freed how)
    {
        if (auto* grant = current(record.lock)) {
            grant->freed = record;
            grant->how = how;
            current_.erase(record.lock);
        }
    }

    History& history_;
    std::set<std::pair<std::int64_t, std::string>> published_;
    std::set<std::pair<std::int64_t, std::string>> timed_;
    std::map<std::pair<std::int64_t, std::string>, std::int64_t> tokens_;
    std::map<std::string, std::size_t> current_;
};

} // namespace

void readTruth(History& history)
{
    StreamReader reader(history);
    for (const auto& record : history.records) {
        history.hasTruth = history.hasTruth || record.op == Op::attached;
        reader.take(record);
    }
    if (history.hasTruth && !history.wallMinusBoot) {
        throw Refused("there is a replication stream, but no clock: expiry times cannot be compared");
    }
}

} // namespace redislock::test::history
