/// @file
/// How a lock goes to the next caller: when inside a client without a request, which waiter asks next, and what a
/// release sends to the waiter that it chose.
#pragma once

#include "redislock/clock.hpp"
#include "redislock/identity.hpp"
#include "redislock/lease_time.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace redislock::detail {

/// When Redis granted the lock to a holder longer ago than this, no caller inherits it any more. So it is
/// noticed then, and not only at the next renewal, that others came, or that Redis has lost the lock. 10 ms; more where
/// a request takes more than a tenth of that, but at most 100 ms.
constexpr std::chrono::nanoseconds longestInheritance(std::chrono::nanoseconds roundTrip) noexcept
{
    using std::chrono::milliseconds;
    return std::clamp<std::chrono::nanoseconds>(10 * roundTrip, milliseconds(10), milliseconds(100));
}

/// A hold whose last level ends, as far as it matters here.
struct EndingHold {
    TimePoint ownUntil{};   ///< from when on nobody inherits the hold
    TimePoint atRiskFrom{}; ///< when its lease is at risk
    bool isRenewed = false;
    bool isHeldTooLong = false; ///< it is not renewed any more
    bool isMember = false;      ///< of a group
    bool isConfirmed = false;   ///< Redis has it with count 1, and no request that names the holder is under way
    bool isAnswered = false;    ///< every request that named the holder was answered: no copy of one may still come
};

/// The next caller in the queue.
struct NextCaller {
    bool isRenewed = false; ///< whether it asks for a renewed lease
    bool isMember = false;
    bool sleeps = false;   ///< and none of its requests is under way, or may be granted
    bool isDurable = true; ///< whether the hold is as durable as it asks
    bool leaves = false;
};

/// Whether the next caller inherits the hold. @param mayFollow whether it is still this client's turn
constexpr bool mayInherit(const EndingHold& hold, const NextCaller& next, bool mayFollow, TimePoint now) noexcept
{
    const bool isSafe = hold.isRenewed && !hold.isHeldTooLong && now < hold.atRiskFrom && hold.isConfirmed &&
                        hold.isAnswered && !hold.isMember;
    const bool isReady = next.isRenewed && next.sleeps && next.isDurable && !next.leaves && !next.isMember;
    return isSafe && isReady && mayFollow && now < hold.ownUntil;
}

/// What to do with the first waiter of this client.
enum class Follow : std::uint8_t {
    nobody,   ///< there is no waiter, or it is leaving
    remember, ///< its try is under way, and may have been answered before this: it must try once more
    race,     ///< its request would overtake the release, on another connection: it tries when the release is answered
    look,     ///< it is awake, or its last request is still on a connection: it looks for itself
    send,     ///< it sleeps: its request is sent for it, so that it need not be woken first
};

/// The first waiter, as far as it matters here.
struct FirstInLine {
    bool leaves = false;    ///< or it has inherited a hold
    bool submitted = false; ///< a try was sent for it
    bool sameLane = true;   ///< its requests go over the connection of the release
    bool sleeps = false;    ///< and none of its requests is on a connection
};

/// @param first null: nobody waits.
constexpr Follow howToFollow(const FirstInLine* first) noexcept
{
    if (first == nullptr || first->leaves) {
        return Follow::nobody;
    }
    if (first->submitted) {
        return Follow::remember;
    }
    if (!first->sameLane) {
        return Follow::race;
    }
    return first->sleeps ? Follow::send : Follow::look;
}

/// A message on a client's channel: the hold with that number has the lock, or may ask for it.
struct GrantMessage {
    HolderId holder{};
    std::uint32_t request = 0;         ///< the hold's request that took, or kept, the place in the queue
    std::chrono::milliseconds lasts{}; ///< 0: not granted, the hold has to ask
    std::string_view name;             ///< of the lock; a view into the message

    /// "<number> <request> <ms> <name>". Anyone who may publish on the channel can send anything.
    static std::optional<GrantMessage> from(std::string_view text) noexcept
    {
        GrantMessage message;
        std::uint64_t number = 0;
        std::int64_t ms = 0;
        if (!takeNumber(text, number) || !takeNumber(text, message.request) || !takeNumber(text, ms) || ms < 0 ||
            ms > maxLease.count()) {
            return std::nullopt;
        }
        message.holder = HolderId{number};
        message.lasts = std::chrono::milliseconds(ms);
        message.name = text;
        return message;
    }

private:
    /// Takes a number and the space behind it from the front of the text.
    template <class Number>
    static bool takeNumber(std::string_view& text, Number& number) noexcept
    {
        const char* end = text.data() + text.size();
        const auto read = std::from_chars(text.data(), end, number);
        if (read.ec != std::errc() || read.ptr == end || *read.ptr != ' ') {
            return false;
        }
        text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()) + 1);
        return true;
    }
};

} // namespace redislock::detail
