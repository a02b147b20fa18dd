/// @file
/// What is known about a lock in Redis.
#pragma once

#include "redislock/export.hpp"
#include "redislock/observer.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace redislock {

/// A holder of a lock, or a waiter in its queue.
struct REDISLOCK_EXPORT LockHolder {
    /// As in Redis, but without `:write`: `<client id>:<number>`; in a transaction of Redisson's, `:` and its id
    /// follow.
    std::string name;
    /// The UUID of its client, as Client::id(); of Redisson, that of its connection manager.
    std::string clientId;
    std::uint32_t count = 0; ///< how often it holds the lock; 0 for a waiter
    bool writes = false;     ///< of a read/write lock: this is a hold to write

    // Where it is. Empty, or 0, where that is not known: for Redisson's clients, for clients whose Config::naming is
    // Naming::asGiven or whose connections are gone, and where CLIENT LIST may not be asked.
    std::string program;       ///< `Config::clientName`, or `redislock`
    std::string host;          ///< where it runs, as its system or container calls itself; shortened if that is long
    std::uint64_t process = 0; ///< its process id there
    std::string address;       ///< from where one of its connections comes to the server
    /// For how long its oldest connection has existed. Redis does not know since when a lock is held.
    std::optional<std::chrono::seconds> connectedFor;
    /// How long ago one of its connections last sent anything. A client that renews sends something in each third of
    /// its `Config::watchdogTimeout`.
    std::optional<std::chrono::seconds> silentFor;

    friend bool operator==(const LockHolder&, const LockHolder&) = default;
};

/// A lock that is held, as Redis shows it at one moment. See LockMonitor and Lock::explain().
struct REDISLOCK_EXPORT LockReport {
    std::string name; ///< its key in Redis
    /// `fairLock` where somebody waits in its queue, `fencedLock` where there is a token, `readLock` and `writeLock` by
    /// what is held; `redisLock` for all others: Redis shows the same for each of them.
    ObjectKind kind = ObjectKind::redisLock;
    /// Who has it: one, or some of many readers.
    std::vector<LockHolder> holders;
    bool hasMoreHolders = false; ///< there are more readers than `holders` names
    /// How long Redis keeps the lock without further renewal; nothing: a key without time to live, which is none of
    /// ours.
    std::optional<std::chrono::milliseconds> timeLeft;
    /// How many wait: of a fair lock the length of its queue; of the others how many clients listen for its end, be it
    /// for one waiter or many. A waiter that asks without listening (SpinLock, a RetryPolicy) is not seen. Nothing: not
    /// known.
    std::optional<std::uint64_t> waiters;
    /// Who waits in the queue of a fair lock, the next one first; only from LockMonitor::find().
    std::vector<LockHolder> queue;

    friend bool operator==(const LockReport&, const LockReport&) = default;
};

} // namespace redislock
