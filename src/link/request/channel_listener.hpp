/// @file
/// Listeners to what is published.
#pragma once

#include "link/request/subscription_table.hpp"

#include <cstdint>
#include <memory>
#include <string_view>

namespace redislock::detail {

/// What a listener is told.
enum class Notice : std::uint8_t {
    confirmed, ///< from now on the listener misses nothing
    message,
    refused, ///< the listener will hear nothing
};

/// Whether messages on a channel are heard.
enum class Listening : std::uint8_t { no, asked, confirmed, refused };

/// Whether a waiter has to ask as often as a SpinLock's, since no message will wake it. @param attempts its requests so
/// far: who has polled once, and still waits for the subscription, does not count on it any more
constexpr bool isUnheard(Listening listening, std::uint32_t attempts) noexcept
{
    return listening == Listening::refused || (listening == Listening::asked && attempts >= 2);
}

/// Waits for messages on a channel. `hear` is called on the background thread, without a mutex.
struct ChannelListener {
    std::weak_ptr<void> whose;
    std::uint64_t part = 0; ///< tells several listeners of one owner apart
    void (*hear)(void* whose, std::uint64_t part, Notice notice, std::string_view text) = nullptr;

    friend bool operator==(const ChannelListener& a, const ChannelListener& b) noexcept
    {
        return a.part == b.part && !a.whose.owner_before(b.whose) && !b.whose.owner_before(a.whose);
    }
};

/// Passes on to a listener what came, if the listener is still there. @param text of a message
inline void tell(const ChannelListener& listener, SubscriptionTable<ChannelListener>::Incoming::Kind kind,
                 std::string_view text)
{
    using Kind = SubscriptionTable<ChannelListener>::Incoming::Kind;
    if (const auto whose = listener.whose.lock()) {
        const auto heard = kind == Kind::confirmed ? Notice::confirmed : Notice::refused;
        listener.hear(whose.get(), listener.part, kind == Kind::message ? Notice::message : heard, text);
    }
}

} // namespace redislock::detail
