/// @file
/// The other half of a FencedLock: a resource that refuses writes of former holders.
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
    manyTimes, ///< any number of times, until a holder of a greater token has written
    once,      ///< once: a request that is sent twice, or repeated after a failure, is refused the second time
};

/// The enumerator's name; for other values "unknown".
constexpr std::string_view toString(TokenUse use) noexcept
{
    return use == TokenUse::manyTimes ? "manyTimes" : use == TokenUse::once ? "once" : "unknown";
}

/// Guards a resource in this process: no holder can write after a holder with a greater token.
///
/// A holder that was paused for longer than its lease does not know that it lost the lock. Its write carries its token,
/// and by then the gate has seen a greater one. A gate knows only the tokens that it has seen: keep it as long as the
/// resource, and if the data outlive the process, start it with a token that is stored beside them.
///
/// **Thread safety**: safe; one write runs at a time. **Blocking**: while another write runs. **Cost**: a mutex.
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
    /// @param seen the greatest token that has written so far; zero: none
    explicit TokenGate(FencingToken seen = {}) noexcept : greatest_(seen) {}

    /// Runs @p write, unless a greater token has written, or this one has and may not write again. Check and write are
    /// one step: no other write comes between them.
    ///
    /// A write that throws counts as admitted: it may have done half of its work. Its exception passes through.
    /// @return whether it was admitted. The token zero, which no hold has, is never admitted.
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

/// The same for a resource in Redis: a Lua script that runs @p body, unless a greater token has written, or this one
/// has and may not write again. Like every script, it is one step.
///
/// Send it with `EVAL` or `EVALSHA` through your own Redis client:
///
/// | argument | |
/// |---|---|
/// | `KEYS[1]` | where the greatest token is kept; in the same slot of a cluster as the other keys |
/// | `KEYS[2]` and on | the keys of @p body |
/// | `ARGV[1]` | the token, in decimal |
/// | `ARGV[2]` | how many milliseconds `KEYS[1]` is kept after this write: for longer than any writer can be late |
/// | `ARGV[3]` and on | the arguments of @p body |
///
/// @return the text. The script returns what @p body returns, or the error `FENCED …`, having changed nothing; or the
/// error `ERR …` for a token or a time that is not a whole number above zero.
///
/// **Needs** Redis 6.2. **Does not guarantee** anything against a writer that does not use it.
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
