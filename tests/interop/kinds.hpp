/// @file
/// The kinds of lock that both languages have, and the versions of Redisson.
#pragma once

#include "redislock/client.hpp"
#include "redislock/lock.hpp"

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::test {

/// A kind of lock in both languages.
struct LockKind {
    std::string_view name; ///< in the names of the tests
    std::string_view java; ///< as the driver calls it
    Lock (*make)(const Client&, const std::string&);
    bool told = true;      ///< a waiter subscribes to a channel, and is woken by its messages
    bool reentrant = true; ///< a holder may lock again
    bool shared = true;    ///< excludes the other kinds on one name
    int since = 3;         ///< the first major version of Redisson that has it
};

/// The kinds that let in one thread at a time. Add a new kind here, and all tests of LockInterop run for it.
inline constexpr std::array lockKinds{
    LockKind{.name = "RedisLock",
             .java = "lock",
             .make = [](const Client& client, const std::string& name) -> Lock { return client.getLock(name); }},
    LockKind{.name = "SpinLock",
             .java = "spinLock",
             .make = [](const Client& client, const std::string& name) -> Lock { return client.getSpinLock(name); },
             .told = false},
    LockKind{
        .name = "NonReentrantLock",
        .java = "nonReentrant",
        .make = [](const Client& client, const std::string& name) -> Lock { return client.getNonReentrantLock(name); },
        .reentrant = false,
        .since = 4},
    LockKind{.name = "FencedLock",
             .java = "fencedLock",
             .make = [](const Client& client, const std::string& name) -> Lock { return client.getFencedLock(name); },
             .since = 4},
    LockKind{.name = "FairLock",
             .java = "fairLock",
             .make = [](const Client& client, const std::string& name) -> Lock { return client.getFairLock(name); }},
    LockKind{.name = "WriteLock",
             .java = "writeLock",
             .make = [](const Client& client, const std::string& name) -> Lock {
                 return client.getReadWriteLock(name).writeLock();
             },
             .shared = false},
};

/// The versions that were built, from REDISLOCK_REDISSON_VERSIONS of tests/interop/CMakeLists.txt.
std::vector<std::string> redissonVersions();

/// Whether a version has a kind.
bool has(const std::string& redisson, const LockKind& kind);

/// `Redisson4_7_0`: a version in the name of a test, by which CMakeLists.txt chooses tests.
std::string testName(const std::string& redisson);

} // namespace redislock::test
