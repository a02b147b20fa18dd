/// @file
/// What the release of a fair lock sends to the client of the waiter that gets the lock.
#pragma once

#include "redislock/identity.hpp"
#include "redislock/lease_time.hpp"

#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace redislock::detail {

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
