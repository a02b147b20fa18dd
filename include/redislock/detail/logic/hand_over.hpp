/// @file
/// Who tries next when a lock may have become free.
#pragma once

#include "redislock/detail/protocol/reply.hpp"

#include <cstdint>
#include <utility>

namespace redislock::detail {

/// What to do with the first waiter of this client.
enum class HandOn : std::uint8_t {
    nobody,   ///< there is none, or it is leaving
    remember, ///< its try is under way, and may have been answered before this: it is to try once more
    race,     ///< its request would overtake the release, on another connection: it tries when that is answered
    look,     ///< it does not sleep, or its last request is still on a connection: it looks for itself
    send,     ///< it sleeps: its request is sent for it, so that it need not be woken first
};

/// The first waiter, as far as that matters here.
struct FirstInLine {
    bool leaves = false;
    bool submitted = false; ///< a try was sent for it
    bool sameLane = true;   ///< its requests go over the connection of the release
    bool sleeps = false;    ///< and nothing of it is on a connection
};

/// @param first null: nobody waits.
constexpr HandOn handOnTo(const FirstInLine* first) noexcept
{
    if (first == nullptr || first->leaves) {
        return HandOn::nobody;
    }
    if (first->submitted) {
        return HandOn::remember;
    }
    if (!first->sameLane) {
        return HandOn::race;
    }
    return first->sleeps ? HandOn::send : HandOn::look;
}

/// The fairness between this client and others, of one name. A client may hand the lock on from one of its waiters to
/// the next, in one packet with the release, and nobody else would ever get it. So after some hand-overs in a row, if
/// others listen, its next waiter tries only when the release was answered, about when they do. Not thread-safe.
class HandOver {
public:
    static constexpr std::uint32_t most = 16; ///< hand-overs in a row while others listen

    /// A hold ends and somebody waits. @return whether the first waiter may be handed the lock; otherwise it races.
    bool mayFollow() noexcept
    {
        if (othersListen_ && ++inARow_ > most) {
            inARow_ = 0;
            race_ = true;
            return false;
        }
        return true;
    }

    /// The first waiter is to try when the release under way is answered.
    void race() noexcept { race_ = true; }
    /// That release was answered. @return whether the first waiter is to try now.
    bool takeRace() noexcept { return std::exchange(race_, false); }

    /// A release was answered. @param listens whether this client itself listens to the channel.
    void answered(const Reply& reply, bool listens) noexcept
    {
        // freed, and one more than so many were told
        if (reply.kind == Reply::Kind::integer && reply.integer >= 1) {
            othersListen_ = reply.integer - 1 > (listens ? 1 : 0);
        }
    }

private:
    std::uint32_t inARow_ = 0;
    bool othersListen_ = false; ///< the last release told somebody outside this client
    bool race_ = false;
};

} // namespace redislock::detail
