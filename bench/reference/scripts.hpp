/// @file
/// The scripts of the reference. Frozen: changing a byte of them makes all earlier figures incomparable.
///
/// They have the effects of Redisson's lock on the hash, its time to live and the channel, and do nothing else: if the
/// library's scripts check more, the comparison shows the cost.
#pragma once

#include <string_view>

namespace redislock::bench {

/// KEYS[1] name; ARGV[1] lease in ms, ARGV[2] holder. Returns nil: acquired; otherwise the remaining time in ms.
inline constexpr std::string_view lockScript = R"lua(
if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then
    redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
    redis.call('PEXPIRE', KEYS[1], ARGV[1])
    return nil
end
return redis.call('PTTL', KEYS[1])
)lua";

/// KEYS[1] name, KEYS[2] channel; ARGV[1] message, ARGV[2] lease in ms, ARGV[3] holder. Returns nil: not held by this
/// holder; 0: still held; 1: freed.
inline constexpr std::string_view unlockScript = R"lua(
if redis.call('HEXISTS', KEYS[1], ARGV[3]) == 0 then
    return nil
end
if redis.call('HINCRBY', KEYS[1], ARGV[3], -1) > 0 then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    return 0
end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', KEYS[2], ARGV[1])
return 1
)lua";

/// KEYS[1] name; ARGV[1] token. Returns 1: deleted; 0: another's.
inline constexpr std::string_view compareAndDeleteScript = R"lua(
if redis.call('GET', KEYS[1]) == ARGV[1] then
    return redis.call('DEL', KEYS[1])
end
return 0
)lua";

} // namespace redislock::bench
