/// @file
/// A lock in segments.
#pragma once

#include "redislock/export.hpp"
#include "redislock/fwd.hpp"
#include "redislock/multi_lock.hpp"
#include "redislock/redis_lock.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redislock {

/// Locks for one resource of many parts: a fixed number of RedisLocks over which keys are spread, so that callers that
/// want different keys seldom wait for each other, without a lock for every key.
///
/// Segment i is the RedisLock named `name:i`, i from 0 on, in decimal. The names have no braces of their own, so in a
/// cluster they spread over all slots; a name that has a hash tag (`{…}`) keeps all segments in the slot of that tag.
///
/// A key belongs to segment `hash(key) % segments()`, where hash is 64-bit FNV-1a over the key's bytes. That never
/// changes, so programs in other languages may compute it too.
///
/// **Guarantees** those of RedisLock, for each segment. Two keys of one segment exclude each other: a thread that locks
/// two keys may get the same lock twice (it is re-entrant), and threads that lock several keys in different orders can
/// wait for each other for ever: lock all() instead, or sort the keys by segmentOf().
/// **Does not guarantee** anything between programs that use different numbers of segments for one name.
///
/// **Thread safety**, **Blocking**, **If the lock is lost**: as RedisLock. **Lifetime**: cheap to copy; may outlive its
/// Client. **Cost**: one lock object in this process for each segment; in Redis, keys only for segments that are held.
///
/// @code
/// redislock::SegmentedLock accounts = client.getSegmentedLock("accounts", 64);
/// { redislock::LockGuard held(accounts.lockFor("iban:DE02…")); book(); }
/// redislock::GroupGuard everything(accounts.all());
/// @endcode
class REDISLOCK_EXPORT SegmentedLock {
public:
    /// The largest number of segments.
    static constexpr std::size_t maxSegments = 1024;

    /// Moving copies: a moved-from lock is still the same lock.
    SegmentedLock(const SegmentedLock&) = default;
    SegmentedLock& operator=(const SegmentedLock&) = default; ///< as above

    /// The lock of the segment to which a key belongs. Does no I/O. @param key any bytes, any length.
    [[nodiscard]] const RedisLock& lockFor(std::string_view key) const& noexcept { return locks_[segmentOf(key)]; }
    /// Not for a temporary object, whose locks would be destroyed with it.
    const RedisLock& lockFor(std::string_view key) const&& = delete;
    /// The lock of a segment. @throws std::out_of_range for @p index not below segments().
    [[nodiscard]] const RedisLock& segment(std::size_t index) const { return locks_.at(index); }
    /// The segment to which a key belongs, below segments().
    [[nodiscard]] std::size_t segmentOf(std::string_view key) const noexcept { return hash(key) % locks_.size(); }
    /// How many segments there are.
    [[nodiscard]] std::size_t segments() const noexcept { return locks_.size(); }
    /// The name as given to the Client.
    [[nodiscard]] const std::string& name() const noexcept { return name_; }

    /// All segments as one lock, for work on the whole resource. Does no I/O; locking it asks for all segments at once.
    [[nodiscard]] MultiLock all() const;

    /// FNV-1a, 64 bits (Fowler, Noll, Vo), of the bytes of @p key.
    static constexpr std::uint64_t hash(std::string_view key) noexcept
    {
        std::uint64_t sum = 0xcbf29ce484222325U;
        for (const char c : key) {
            sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
        }
        return sum;
    }

private:
    friend class Client;
    SegmentedLock(std::string name, std::vector<RedisLock> locks) noexcept
        : name_(std::move(name)), locks_(std::move(locks))
    {
    }

    std::string name_;
    std::vector<RedisLock> locks_;
};

} // namespace redislock
