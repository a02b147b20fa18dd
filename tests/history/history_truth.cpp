// The replication stream as grants and waiters.
#include "history/history_parts.hpp"
#include "history/keys.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>

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
                timed_.insert({record.tx.value_or(0), record.lock, record.holder});
            } else if (record.op == Op::token) {
                tokens_[{record.tx.value_or(0), record.lock}] = *record.token;
            }
        }
    }

    void take(const Record& record)
    {
        switch (record.op) {
        case Op::mode:
            return setMode(record);
        case Op::hset:
            return set(record);
        case Op::pexpireat:
            return expire(record);
        case Op::del:
            return endAll(record);
        case Op::hdel:
            return remove(record);
        case Op::freed:
            return free(record);
        case Op::queued:
            return queue(record);
        case Op::unqueued:
            return unqueue(record);
        case Op::emptied:
            return forget(record);
        default:
            return;
        }
    }

private:
    /// A key as it is now.
    struct Key {
        bool isReadWrite = false;
        bool isSemaphore = false;
        std::optional<Record> expiry{};
        std::map<std::string, std::size_t> grants{}; ///< by holder
        std::int64_t removedIn = 0;                  ///< the script that removed a holder
    };

    /// Without a message only the time tells a release from an expiry.
    bool wasReleased(const Record& record, const Key& key, const Grant& grant)
    {
        if (!key.isReadWrite && !history_.kind(record.lock).tellsEverybody) {
            return howItVanished(record, grant) == Grant::Freed::removed;
        }
        const auto channel = key.isReadWrite ? readWriteChannel : lockChannel;
        const bool told = published_.count({record.tx.value_or(0), prefixed(channel, record.lock)}) > 0;
        // the last reader that left also removed the readers that had died
        return told && !(grant.shares && howItVanished(record, grant) == Grant::Freed::expired);
    }

    Grant::Freed howItVanished(const Record& record, const Grant& grant) const
    {
        if (grant.expiries.empty()) {
            return Grant::Freed::removed;
        }
        // the record came after its execution: if it came too early for an expiry, it was executed too early for one
        return record.t + millisecond < history_.bootOf(grant.expiresMs()) ? Grant::Freed::removed
                                                                           : Grant::Freed::expired;
    }

    /// A server that starts again drops expired holds without a command in the stream.
    void pushAside(const Record& record, const Key& key, Grant& grant) const
    {
        const bool isOver = howItVanished(record, grant) == Grant::Freed::expired;
        end(record, key, grant, isOver ? Grant::Freed::expired : Grant::Freed::overwritten);
    }

    /// A key is made, or its writer goes on as a reader.
    void setMode(const Record& record)
    {
        auto& key = keys_[record.lock];
        if (key.removedIn != record.tx) {
            for (const auto& [holder, grant] : key.grants) {
                pushAside(record, key, history_.grants[grant]);
            }
            key = {};
        }
        key.isReadWrite = true;
    }

    /// Beside readers others may read; beside a writer only its own thread may, of which Redis knows only the client.
    static bool mayJoin(const Key& key, std::string_view there, std::string_view comes)
    {
        return key.isSemaphore ||
               (key.isReadWrite && !isWriter(comes) && (!isWriter(there) || clientOf(there) == clientOf(comes)));
    }

    void set(const Record& record)
    {
        auto& key = keys_[record.lock];
        if (const auto found = key.grants.find(record.holder); found != key.grants.end()) {
            history_.grants[found->second].counts.push_back(record.count.value_or(0));
            return;
        }
        key.isSemaphore = history_.kind(record.lock).exclusion == "S11";
        std::erase_if(key.grants, [&](const auto& other) {
            const bool goes = !mayJoin(key, other.first, record.holder);
            if (goes) {
                pushAside(record, key, history_.grants[other.second]);
            }
            return goes;
        });
        key.grants[record.holder] = history_.grants.size();
        history_.grants.push_back(made(record, key));
    }

    [[nodiscard]] Grant made(const Record& record, const Key& key) const
    {
        const auto tx = record.tx.value_or(0);
        Grant grant;
        grant.lock = record.lock;
        grant.holder = record.holder;
        grant.made = record;
        grant.counts.push_back(record.count.value_or(0));
        grant.shares = key.isSemaphore || (key.isReadWrite && !isWriter(record.holder));
        grant.besideWriter = std::any_of(key.grants.begin(), key.grants.end(), [&](const auto& other) {
            return other.first != record.holder && isWriter(other.first);
        });
        grant.withoutExpiry = timed_.count({tx, record.lock, grant.shares ? record.holder : ""}) == 0;
        if (const auto token = tokens_.find({tx, record.lock}); token != tokens_.end()) {
            grant.token = token->second;
        }
        if (const auto waiting = queues_.find(record.lock); waiting != queues_.end() && !waiting->second.empty()) {
            grant.turnOf = history_.waiters[waiting->second.front()].came.holder;
        }
        if (key.isReadWrite && !grant.shares && key.expiry) { // the key gets its time before its writer
            grant.expiries.push_back(*key.expiry);
        }
        return grant;
    }

    void expire(const Record& record)
    {
        const auto found = keys_.find(record.lock);
        if (found == keys_.end() ||
            (!record.holder.empty() && found->second.grants.find(record.holder) == found->second.grants.end())) {
            history_.orphans.push_back(record);
            return;
        }
        auto& key = found->second;
        if (record.holder.empty()) {
            key.expiry = record;
        }
        for (const auto& [holder, index] : key.grants) {
            auto& grant = history_.grants[index];
            if (grant.shares ? holder == record.holder : record.holder.empty()) {
                grant.expiries.push_back(record);
            }
        }
    }

    void endAll(const Record& record)
    {
        const auto found = keys_.find(record.lock);
        if (found == keys_.end()) {
            return;
        }
        for (const auto& [holder, index] : found->second.grants) {
            auto& grant = history_.grants[index];
            end(record, found->second, grant,
                wasReleased(record, found->second, grant) ? Grant::Freed::released : howItVanished(record, grant));
        }
        keys_.erase(found);
    }

    void forget(const Record& record)
    {
        const auto found = keys_.find(record.lock);
        if (found == keys_.end()) {
            return;
        }
        for (const auto& [holder, index] : found->second.grants) {
            end(record, found->second, history_.grants[index], Grant::Freed::emptied);
        }
        keys_.erase(found);
    }

    void remove(const Record& record)
    {
        const auto key = keys_.find(record.lock);
        if (key == keys_.end()) {
            return;
        }
        auto& [lock, state] = *key;
        state.removedIn = record.tx.value_or(0);
        if (const auto found = state.grants.find(record.holder); found != state.grants.end()) {
            end(record, state, history_.grants[found->second],
                state.isReadWrite || state.isSemaphore ? Grant::Freed::released : Grant::Freed::removed);
            state.grants.erase(found);
        }
        if (!state.isReadWrite && !state.isSemaphore) {
            keys_.erase(key);
        }
    }

    /// Frees the permits whose leases are over.
    void free(const Record& record)
    {
        auto& key = keys_[record.lock];
        std::erase_if(key.grants, [&](const auto& entry) {
            auto& grant = history_.grants[entry.second];
            const bool isOver = grant.expiresMs() <= *record.expiresMs;
            if (isOver) {
                end(record, key, grant, Grant::Freed::expired);
            }
            return isOver;
        });
    }

    static void end(const Record& record, const Key& key, Grant& grant, Grant::Freed how)
    {
        grant.keyExpiresMs = key.expiry ? *key.expiry->expiresMs : 0;
        grant.freed = record;
        grant.how = how;
    }

    /// The place of a waiter in the queue of its lock.
    std::vector<std::size_t>::iterator placeOf(const Record& record)
    {
        auto& waiting = queues_[record.lock];
        return std::find_if(waiting.begin(), waiting.end(),
                            [&](std::size_t waiter) { return history_.waiters[waiter].came.holder == record.holder; });
    }

    void queue(const Record& record)
    {
        const auto place = placeOf(record);
        if (place != queues_[record.lock].end()) {
            history_.waiters[*place].asked = record;
            return;
        }
        queues_[record.lock].push_back(history_.waiters.size());
        history_.waiters.push_back({.came = record, .asked = record});
    }

    void unqueue(const Record& record)
    {
        const auto place = placeOf(record);
        if (place == queues_[record.lock].end()) {
            return;
        }
        auto& waiter = history_.waiters[*place];
        const auto key = keys_.find(record.lock);
        const bool isGranted = key != keys_.end() && key->second.grants.count(record.holder) > 0;
        waiter.left = record;
        waiter.how = record.error == "left" ? Waiter::Leaving::byItself
                     : isGranted            ? Waiter::Leaving::granted
                                            : Waiter::Leaving::removed;
        queues_[record.lock].erase(place);
    }

    History& history_;
    std::set<std::pair<std::int64_t, std::string>> published_;
    std::set<std::tuple<std::int64_t, std::string, std::string>> timed_; ///< script, lock, reader
    std::map<std::pair<std::int64_t, std::string>, std::int64_t> tokens_;
    std::map<std::string, Key> keys_;
    std::map<std::string, std::vector<std::size_t>> queues_; ///< by lock: the waiters
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
