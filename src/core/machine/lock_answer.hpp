/// @file
/// What Redis answers to a request for a lock, for permits, or for an open latch, and how long a grant may be believed.
#pragma once

#include "link/request/event.hpp"
#include "redislock/clock.hpp"
#include "redislock/lease_time.hpp"
#include "wire/reply.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace redislock::detail {

/// What to take off a lease for clocks that run at different rates, and for Redis' whole milliseconds.
constexpr std::chrono::milliseconds driftOf(std::chrono::milliseconds lease) noexcept
{
    return (lease + std::chrono::milliseconds(99)) / 100 + std::chrono::milliseconds(2);
}

/// Until when a grant may be believed: counted from before its request was sent, whenever the reply came.
constexpr TimePoint deadlineOf(TimePoint sentAt, std::chrono::milliseconds lease) noexcept
{
    return saturatingAdd(sentAt, lease - driftOf(lease));
}

/// How long before the deadline a hold counts as at risk.
constexpr std::chrono::nanoseconds riskMarginOf(std::chrono::nanoseconds lease,
                                                std::chrono::nanoseconds commandTimeout) noexcept
{
    return std::max(lease / 10, std::min(2 * commandTimeout, lease / 4));
}

/// Whether the grants of a kind of lock come with tokens.
enum class Tokens : std::uint8_t { none, given };

/// What Redis answered to an acquire. Each script has its own answers, and an answer of another script is not believed.
struct LockAnswer {
    enum class Kind : std::uint8_t { granted, busy, gone };
    Kind kind = Kind::busy;
    /// For busy: how long the holder has the lock at least; nothing for a key without time to live.
    std::optional<std::chrono::milliseconds> timeToLive{};
    std::uint64_t token = 0; ///< for granted, by a fenced lock
    bool others = false;     ///< for busy, by a fair lock: those ahead may know the waiter's own channel only

    /// The answer of a lock script: nil, or the token in an array; of an outermost hold, also the holder's time in
    /// milliseconds (-1: none) with the holder, and for a fair lock 1 or 0 for `others`; of a nested hold, also -3.
    static std::optional<LockAnswer> from(const Reply& reply, Tokens tokens, Level level) noexcept
    {
        if (reply.kind == Reply::Kind::integer) {
            const bool isGone = level == Level::nested && reply.integer == -3;
            return isGone ? std::optional(LockAnswer{Kind::gone}) : std::nullopt;
        }
        if (const auto refused = level == Level::outermost ? refusal(reply) : std::nullopt) {
            return refused;
        }
        return tokens == Tokens::none ? grantedByNil(reply) : grantedWithToken(reply);
    }

    /// A lock script's answer that others have the lock; nothing for any other reply.
    static std::optional<LockAnswer> refusal(const Reply& reply) noexcept
    {
        if (!isRefusal(reply)) {
            return std::nullopt;
        }
        LockAnswer answer = busyFor(reply.elements.front().integer);
        answer.others = reply.elements.size() > 2 && reply.elements.back().integer == 1;
        return answer;
    }
    /// The holder in such an answer; empty where none is named.
    static std::string_view holderIn(const Reply& reply) noexcept
    {
        return isRefusal(reply) ? std::string_view(reply.elements[1].text) : std::string_view();
    }

    /// The answer of the semaphore's script: nil, or -1.
    static std::optional<LockAnswer> ofSemaphore(const Reply& reply) noexcept
    {
        const bool none = reply.kind == Reply::Kind::integer && reply.integer == -1;
        return none ? std::optional(LockAnswer{Kind::busy}) : grantedByNil(reply);
    }

    /// The answer of the script of leased permits: nil, or the time in milliseconds until a lease is over (-1: not
    /// known).
    static std::optional<LockAnswer> ofPermits(const Reply& reply) noexcept
    {
        const bool none = reply.kind == Reply::Kind::integer && reply.integer >= -1;
        return none ? std::optional(busyFor(reply.integer)) : grantedByNil(reply);
    }

    /// The answer of the script that reads a latch, a number: an open latch counts as granted. When a closed one will
    /// open is not known.
    static std::optional<LockAnswer> ofLatch(const Reply& reply) noexcept
    {
        const bool open = reply.integer <= 0;
        return reply.kind == Reply::Kind::integer ? std::optional(LockAnswer{open ? Kind::granted : Kind::busy})
                                                  : std::nullopt;
    }

private:
    /// A time (PTTL of a key that is gone already would be -2), a holder or nil, and perhaps 0 or 1.
    static bool isRefusal(const Reply& reply) noexcept
    {
        using Is = Reply::Kind;
        const auto& parts = reply.elements;
        const bool isOne = reply.kind == Is::array && (parts.size() == 2 || parts.size() == 3) &&
                           parts[0].kind == Is::integer && parts[0].integer >= -2 &&
                           (parts[1].kind == Is::text || parts[1].kind == Is::nil);
        return isOne && (parts.size() == 2 || (parts[2].kind == Is::integer && (parts[2].integer | 1) == 1));
    }

    static LockAnswer busyFor(std::int64_t ms) noexcept
    {
        return ms == -1 ? LockAnswer{Kind::busy}
                        : LockAnswer{Kind::busy,
                                     std::chrono::milliseconds(std::clamp<std::int64_t>(ms, 0, maxLease.count()))};
    }

    static std::optional<LockAnswer> grantedByNil(const Reply& reply) noexcept
    {
        return reply.kind == Reply::Kind::nil ? std::optional(LockAnswer{Kind::granted}) : std::nullopt;
    }

    static std::optional<LockAnswer> grantedWithToken(const Reply& reply) noexcept
    {
        if (reply.kind != Reply::Kind::array || reply.elements.size() != 1 ||
            reply.elements.front().kind != Reply::Kind::text) {
            return std::nullopt;
        }
        LockAnswer answer{Kind::granted};
        const std::string_view token = reply.elements.front().text;
        const char* end = token.data() + token.size();
        const auto read = std::from_chars(token.data(), end, answer.token);
        return read.ec == std::errc() && read.ptr == end && answer.token > 0 ? std::optional(answer) : std::nullopt;
    }
};

/// The time left until then, as observers are told it; 0 means that it is not known: nothing.
inline std::optional<std::chrono::milliseconds> leftUntil(TimePoint until, TimePoint now) noexcept
{
    using std::chrono::milliseconds;
    return until == TimePoint{}
               ? std::nullopt
               : std::optional(std::max(milliseconds{}, std::chrono::floor<milliseconds>(until - now)));
}

} // namespace redislock::detail
