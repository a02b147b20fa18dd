/// @file
/// What the release of a fair lock tells the client of the waiter that gets the lock.
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

/// A message on the channel of a client: the hold with that number has the lock, or may ask for it.
struct GrantMessage {
    HolderId holder{};
    std::uint32_t request = 0; ///< the request of the hold that took, or kept, the place for which it was granted
    std::chrono::milliseconds lasts{}; ///< 0: it has to ask
    std::string_view name;             ///< of the lock; of the message

    /// "<number> <request> <ms> <name>". Who may publish on the channel may send anything.
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
    /// Takes a number and the space behind it.
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
