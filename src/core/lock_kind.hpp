/// @file
/// What distinguishes the kinds of lock.
#pragma once

#include "core/machine/lock_answer.hpp"
#include "redislock/observer.hpp"
#include "wire/script.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace redislock::detail {

enum class LockKind : std::uint8_t { redisLock, nonReentrantLock, spinLock, fencedLock, fairLock, readLock, writeLock };
inline constexpr std::size_t lockKinds = 7;
/// The kind as users know it.
constexpr ObjectKind objectKind(LockKind kind) noexcept
{
    return static_cast<ObjectKind>(kind); // the first ones are the locks
}
static_assert(objectKind(LockKind::writeLock) == ObjectKind::writeLock);

/// How the waiters of one client ask Redis.
enum class Asking : std::uint8_t {
    first, ///< only the first of them, and none while a hold of this client is valid
    each,  ///< each for itself: several may be let in at once
    queue, ///< each for itself: each has its own place in a queue in Redis, and its own channel
};

/// A script, and whether it is given the kind's other keys besides the name.
struct ScriptUse {
    const Script* script;
    bool withCompanions = false;
};

/// The end of a writer's name in Redis.
inline constexpr std::string_view writerSuffix = ":write";

/// One kind. There is a constant for each: a program carries the scripts of those kinds that it names.
struct KindTraits {
    LockKind kind;
    ScriptUse lock;
    ScriptUse unlock;
    ScriptUse renew;
    ScriptUse pttl;
    ScriptUse holder;
    ScriptUse forceUnlock;
    std::string_view channelPrefix; ///< empty: releases are not published
    std::string_view holderSuffix;  ///< end of the holder's name in Redis
    std::string_view companions[3]; ///< prefixes of the names of the other keys
    std::size_t companionCount = 0;
    std::size_t lockArguments = 3; ///< how many the lock script takes
    Asking asking = Asking::first;
    Tokens tokens = Tokens::none;
    bool isReentrant = true;
    bool keepsPlace = false; ///< the lock script keeps a place for a waiter, and the unlock script gives it up
    bool sharesTime = false; ///< other holders' renewals set the time to live of its key, and may set it shorter
    bool follows = true;     ///< the next waiter of this client may follow a release, before all others
    bool inherits = false;   ///< the next waiter of this client may inherit a hold

    static const KindTraits redisLock;
    static const KindTraits nonReentrantLock;
    static const KindTraits spinLock;
    static const KindTraits fencedLock;
    static const KindTraits fairLock;
    static const KindTraits readLock;
    static const KindTraits writeLock;
    static const KindTraits& of(LockKind kind) noexcept;
};

/// Appends the names of the kind's other keys as arguments.
void appendCompanions(std::string& out, const KindTraits& kind, std::string_view name);

} // namespace redislock::detail
