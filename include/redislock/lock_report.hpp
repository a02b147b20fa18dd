/// @file
/// What Redis tells about a lock.
#pragma once

#include "redislock/export.hpp"
#include "redislock/observer.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace redislock {

/// A holder of a lock, or a waiter in its queue.
struct REDISLOCK_EXPORT LockHolder {
    /// As in Redis, but without `:write`: `<client id>:<number>`; in a transaction of Redisson's, `:` and its id
    /// follow.
    std::string name;
    /// The UUID of its client, as Client::id(); for Redisson, the UUID of its connection manager.
    std::string clientId;
    std::uint32_t count = 0; ///< how often it holds the lock; 0 for a waiter
    bool writes = false;     ///< of a read/write lock: it holds the lock to write

    // Where it is. Empty, or 0, where that is not known: for Redisson's clients, for clients whose Config::naming is
    // Naming::asGiven or whose connections are gone, and where CLIENT LIST may not be asked.
    std::string program;       ///< `Config::clientName`, or `redislock`
    std::string host;          ///< the name of its machine or container; shortened if it is long
    std::uint64_t process = 0; ///< its process id there
    std::string address;       ///< the source address of one of its connections
    /// How long its oldest connection has existed. Redis does not know since when a lock has been held.
    std::optional<std::chrono::seconds> connectedFor;
    /// How long ago one of its connections last sent anything. A client that renews sends something in each third
    /// of its `Config::watchdogTimeout`.
    std::optional<std::chrono::seconds> silentFor;

    /// Whether both are the same hold, at the same place. How long its client has been connected, or silent, is not
    /// compared.
    friend bool operator==(const LockHolder& one, const LockHolder& other)
    {
        const auto compared = [](const LockHolder& each) {
            return std::tie(each.name, each.clientId, each.count, each.writes, each.program, each.host, each.process,
                            each.address);
        };
        return compared(one) == compared(other);
    }
};

/// A lock that is held, as Redis shows it at one moment. See LockMonitor and Lock::explain().
struct REDISLOCK_EXPORT LockReport {
    std::string name; ///< its key in Redis
    /// `fairLock` if somebody waits in its queue, `fencedLock` if there is a token, `readLock` or `writeLock` according
    /// to what is held; `redisLock` for all others, which look the same in Redis.
    ObjectKind kind = ObjectKind::redisLock;
    /// The holder, or some of many readers.
    std::vector<LockHolder> holders;
    bool hasMoreHolders = false; ///< there are more readers than `holders` names
    /// How long Redis will keep the lock without further renewal; empty: the key has no time to live, so this library
    /// did not make it.
    std::optional<std::chrono::milliseconds> timeLeft;
    /// How many wait: for a fair lock, the length of its queue; for others, the number of clients that listen for its
    /// release, each for one waiter or many. Waiters that poll without listening (SpinLock, a RetryPolicy) are not
    /// counted. Empty: not known.
    std::optional<std::uint64_t> waiters;
    /// The waiters in the queue of a fair lock, the next one first; only from LockMonitor::find().
    std::vector<LockHolder> queue;

    friend bool operator==(const LockReport&, const LockReport&) = default;
};

} // namespace redislock
