/// @file
/// The semaphores and latches of a client.
#pragma once

#include "redislock/detail/logic/settled_records.hpp"

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace redislock::detail {

class Core;
class NamedCounter;

/// Which of them are in use, and the records of their answered requests.
class Counters {
public:
    explicit Counters(Core& core) noexcept : core_(core) {}

    /// @return the one that is known of that name and kind; null: none was, and this one is from now on.
    std::shared_ptr<NamedCounter> knownOrAdd(NamedCounter& fresh);
    void forget(NamedCounter& counter) noexcept;
    /// Deletes the records for which no request has come, if there is a connection for that.
    void forgetRecords();
    /// The client ends: waiters are told.
    void close();

    SettledRecords records;

private:
    class Forgetting;

    Core& core_;
    std::unordered_map<std::string, NamedCounter*> names_; ///< each until its destructor took it out
};

} // namespace redislock::detail
