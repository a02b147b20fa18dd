/// @file
/// The semaphores and latches of a client.
#pragma once

#include "core/counter/settled_records.hpp"

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace redislock::detail {

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
