/// @file
/// Which waiter tries next when a lock may have become free.
#pragma once

#include <cstdint>

namespace redislock::detail {

/// What to do with the first waiter of this client.
enum class HandOn : std::uint8_t {
    nobody,   ///< there is no waiter, or it is leaving
    remember, ///< its try is under way, and may have been answered before this: it must try once more
    race,     ///< its request would overtake the release, on another connection: it tries when the release is answered
    look,     ///< it is awake, or its last request is still on a connection: it looks for itself
    send,     ///< it sleeps: its request is sent for it, so that it need not be woken first
};

/// The first waiter, as far as it matters here.
struct FirstInLine {
    bool leaves = false;    ///< or a hold was passed on to it
    bool submitted = false; ///< a try was sent for it
    bool sameLane = true;   ///< its requests go over the connection of the release
    bool sleeps = false;    ///< and none of its requests is on a connection
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

} // namespace redislock::detail
