/// @file
/// The other half of a FencedLock: a resource that refuses late writers.
#pragma once

#include "redislock/identity.hpp"
#include "redislock/requirements.hpp"

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace redislock {

/// How often the holder of one token may write.
enum class TokenUse : std::uint8_t {
    manyTimes, ///< as often as it likes, until a holder of a greater token has written
    once,      ///< once: a request that is sent twice, or that comes again after a failure, is refused the second time
};

/// The enumerator's name; for other values "unknown".
constexpr std::string_view toString(TokenUse use) noexcept
{
    return use == TokenUse::manyTimes ? "manyTimes" : use == TokenUse::once ? "once" : "unknown";
}

/// Stands before a resource that lives in this process, and lets no holder write after one with a greater token.
///
/// A holder that was stopped for longer than its lease does not know that it lost the lock. Its write carries its
/// token, and the gate has seen a greater one by then. A gate knows what it has seen, and nothing else: keep it as long
/// as the resource, and begin with the token that is stored beside the data where those outlive the process.
///
/// **Thread safety**: safe; writes go through one at a time. **Blocking**: behind another write. **Cost**: a mutex.
/// Source: Kleppmann 2016, "How to do distributed locking".
///
/// @code
/// redislock::TokenGate gate;
/// if (!gate.admit(token, [&] { ledger.append(entry); })) {
///     return "somebody else has had the lock since";
/// }
/// @endcode
class TokenGate {
public:
    /// @param seen the greatest token that has written so far; zero: none has
    explicit TokenGate(FencingToken seen = {}) noexcept : greatest_(seen) {}

    /// Writes, unless a greater token has written, or this one has and may not again. Check and write are one step: no
    /// other write comes between them.
    ///
    /// A write that throws has been admitted: it may have done half of its work. What it throws comes out.
    /// @return whether it was admitted. A token of zero, which no hold has, is never admitted.
    template <class Write>
    bool admit(FencingToken token, Write&& write, TokenUse use = TokenUse::manyTimes)
    {
        const std::lock_guard lock(mutex_);
        if (token == FencingToken{} || token < greatest_ || (token == greatest_ && use == TokenUse::once)) {
            return false;
        }
        greatest_ = token;
        std::forward<Write>(write)();
        return true;
    }

    /// The greatest token that has written; zero: none has.
    [[nodiscard]] FencingToken greatest() const
    {
        const std::lock_guard lock(mutex_);
        return greatest_;
    }

private:
    mutable std::mutex mutex_;
    FencingToken greatest_;
};

/// The same for a resource that lives in Redis: a Lua script that does what @p body does, unless a greater token has
/// written, or this one has and may not again. It is one step, as every script is.
///
/// Send it with `EVAL` or `EVALSHA` through your own client of Redis:
///
/// | argument | |
/// |---|---|
/// | `KEYS[1]` | where the greatest token is kept; in the same slot of a cluster as the other keys |
/// | `KEYS[2]` and on | the keys of @p body |
/// | `ARGV[1]` | the token, in decimal |
/// | `ARGV[2]` | how many milliseconds `KEYS[1]` is kept after this write: for longer than any writer can be late |
/// | `ARGV[3]` and on | the arguments of @p body |
///
/// @return the text. The script answers what @p body returns, or the error `FENCED …`, and has then changed nothing; or
///   the error `ERR …` for a token or a time that is not a whole number above zero.
///
/// **Needs** Redis 5. **Does not guarantee** anything against a writer that does not use it.
///
/// @code
/// const auto script = redislock::fencedScript("return redis.call('set', KEYS[2], ARGV[3])");
/// @endcode
inline std::string fencedScript(std::string_view body, TokenUse use = TokenUse::manyTimes)
{
    constexpr std::string_view check = R"(local token, seen = ARGV[1], redis.call('get', KEYS[1]) or '0'
if not string.find(token, '^[1-9]%d*$') or not string.find(ARGV[2], '^[1-9]%d*$') then
    return redis.error_reply('ERR the token and its time have to be whole numbers above zero')
end
-- not as numbers, which are exact to 2^53 only
local order = #token - #seen
if order == 0 then order = token < seen and -1 or token > seen and 1 or 0 end
)";
    constexpr std::string_view judge =
        R"( then return redis.error_reply('FENCED the token ' .. token .. ' is refused: ' .. seen .. ' has written') end
redis.call('set', KEYS[1], token, 'px', ARGV[2])
)";
    return std::string(check) + (use == TokenUse::once ? "if order <= 0" : "if order < 0") + std::string(judge) +
           std::string(body);
}

} // namespace redislock
