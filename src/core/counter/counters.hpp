/// @file
/// The semaphores and latches of a client.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace redislock::detail {

/// Records to be deleted, by the name of the counter whose requests they answer: one of the counter's next requests
/// deletes them, whichever object makes it. Kept by the client, not by an object: many objects live for one call. Not
/// thread-safe, no I/O.
class SettledRecords {
public:
    static constexpr std::size_t most = 128; ///< so many may wait for a next request; then all are deleted at once

    void add(std::string_view name, std::string record)
    {
        names_[std::string(name)].push_back(std::move(record));
        ++size_;
    }

    /// Moves at most @p count records of a name behind @p keys.
    void take(const std::string& name, std::size_t count, std::vector<std::string>& keys)
    {
        const auto found = names_.find(name);
        if (found == names_.end()) {
            return;
        }
        auto& records = found->second;
        for (count = std::min(count, records.size()); count > 0; --count) {
            keys.push_back(std::move(records.back()));
            records.pop_back();
            --size_;
        }
        if (records.empty()) {
            names_.erase(found);
        }
    }

    /// All records, those of one name together.
    std::vector<std::vector<std::string>> takeAll()
    {
        std::vector<std::vector<std::string>> all;
        all.reserve(names_.size());
        for (auto& [name, records] : names_) {
            all.push_back(std::move(records));
        }
        names_.clear();
        size_ = 0;
        return all;
    }

    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool isFull() const noexcept { return size_ >= most; }

private:
    std::unordered_map<std::string, std::vector<std::string>> names_;
    std::size_t size_ = 0;
};

class Core;
class NamedCounter;

/// The semaphores and latches in use, and the records of their answered requests.
class Counters {
public:
    explicit Counters(Core& core) noexcept : core_(core) {}

    /// @return the counter known by that name and kind; null: there was none, and @p fresh is the known one from now
    /// on.
    std::shared_ptr<NamedCounter> knownOrAdd(NamedCounter& fresh);
    void forget(NamedCounter& counter) noexcept;
    /// Deletes the records that no later request has deleted, if there is a connection for that.
    void forgetRecords();
    /// The client ends: ends the waiters.
    void close();

    SettledRecords records;

private:
    class Forgetting;

    Core& core_;
    std::unordered_map<std::string, NamedCounter*> names_; ///< a counter is in it until its destructor takes it out
};

} // namespace redislock::detail
