/// @file
/// The scripts under lua/, embedded at build time.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace redislock::detail {

/// One Lua script: the code of its file, without comments and indentation.
struct Script {
    std::string_view name;                    ///< "<kind>/<verb>"
    std::span<const std::string_view> pieces; ///< its text; scripts share some of them
    std::string_view sha1;                    ///< 40 lower-case hex digits, what EVALSHA takes

    [[nodiscard]] std::string text() const
    {
        std::string whole;
        for (const auto piece : pieces) {
            whole.append(piece);
        }
        return whole;
    }
};

namespace scripts {

extern const Script redisLockLock;
extern const Script redisLockUnlock;
extern const Script redisLockRenew;
extern const Script redisLockPttl;
extern const Script redisLockHolder;
extern const Script redisLockForceUnlock;
extern const Script fencedLockLock;
extern const Script fairLockLock;
extern const Script fairLockUnlock;
extern const Script fairLockForceUnlock;
extern const Script readLockLock;
extern const Script readLockUnlock;
extern const Script readLockRenew;
extern const Script readLockPttl;
extern const Script readLockHolder;
extern const Script readLockForceUnlock;
extern const Script writeLockLock;
extern const Script writeLockUnlock;
extern const Script writeLockPttl;
extern const Script writeLockHolder;
extern const Script writeLockForceUnlock;
extern const Script counterGet;
extern const Script counterTrySet;
extern const Script counterDelete;
extern const Script semaphoreAcquire;
extern const Script semaphoreAdd;
extern const Script semaphoreDrain;
extern const Script semaphoreWithdraw;
extern const Script permitExpirableSemaphoreAcquire;
extern const Script permitExpirableSemaphoreRelease;
extern const Script permitExpirableSemaphoreCount;
extern const Script permitExpirableSemaphoreSet;
extern const Script permitExpirableSemaphoreLease;
extern const Script countDownLatchCountDown;

} // namespace scripts

} // namespace redislock::detail
