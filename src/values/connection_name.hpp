/// @file
/// What is in the names of connections.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace redislock::detail {

inline constexpr std::size_t maxConnectionName = 128;

/// Which client a connection belongs to.
struct ConnectionIdentity {
    std::string label; ///< `Config::clientName`, or `redislock`
    std::string clientId;
    std::string host;
    std::uint64_t process = 0;

    friend bool operator==(const ConnectionIdentity&, const ConnectionIdentity&) = default;
};

/// Whether a text has the form of a client's random UUID, here and in Redisson.
inline bool isClientId(std::string_view text) noexcept
{
    constexpr std::string_view form = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    return text.size() == form.size() && std::equal(text.begin(), text.end(), form.begin(), [](char c, char wanted) {
               const bool isHex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
               return wanted == '-' ? c == '-' : isHex;
           });
}

/// `label:client id:host:process`, at most 128 bytes of visible ASCII. A host that is too long is shortened; a byte of
/// it that does not fit into a name, or would end it, is written as `_`.
/// @param label visible ASCII, at most 64 bytes; empty: `redislock`.
inline std::string connectionName(std::string_view label, std::string_view clientId, std::string_view host,
                                  std::uint64_t process)
{
    std::string name(label.empty() ? std::string_view("redislock") : label);
    name.append(":").append(clientId).append(":");
    const std::string end = ":" + std::to_string(process);
    const std::size_t room = maxConnectionName - std::min(maxConnectionName, name.size() + end.size());
    for (const char c : host.substr(0, room)) {
        name.push_back(c > ' ' && c <= '~' && c != ':' ? c : '_');
    }
    return name.append(end);
}

/// Reads such a name; nothing for any other text.
inline std::optional<ConnectionIdentity> identityOf(std::string_view name)
{
    constexpr std::size_t idSize = 36;
    const auto lastColon = name.rfind(':');
    if (lastColon == std::string_view::npos || lastColon == 0) {
        return std::nullopt;
    }
    const auto digits = name.substr(lastColon + 1);
    std::uint64_t process = 0;
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), process);
    const auto hostColon = name.rfind(':', lastColon - 1);
    if (digits.empty() || failure != std::errc() || end != digits.data() + digits.size() ||
        hostColon == std::string_view::npos || hostColon < idSize + 1 || name[hostColon - idSize - 1] != ':') {
        return std::nullopt;
    }
    const auto id = name.substr(hostColon - idSize, idSize);
    if (!isClientId(id)) {
        return std::nullopt;
    }
    return ConnectionIdentity{std::string(name.substr(0, hostColon - idSize - 1)), std::string(id),
                              std::string(name.substr(hostColon + 1, lastColon - hostColon - 1)), process};
}

} // namespace redislock::detail
