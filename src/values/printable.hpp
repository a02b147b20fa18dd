/// @file
/// Makes foreign bytes fit for messages.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace redislock::detail {

/// The bytes as printable ASCII, at most @p limit characters: `\\` for a backslash, `\x00` for any other byte outside
/// 0x20 … 0x7e. A longer text ends with `...`; no escape is cut in two.
inline std::string printable(std::string_view bytes, std::size_t limit = 80)
{
    constexpr std::string_view hex = "0123456789abcdef";
    constexpr std::string_view cut = "...";
    std::string text;
    std::size_t kept = 0; // how much of the text leaves room for the dots
    for (const char byte : bytes) {
        const auto code = static_cast<unsigned char>(byte);
        if (code < 0x20 || code > 0x7e) {
            text.append({'\\', 'x', hex[code >> 4U], hex[code & 0xfU]});
        } else if (byte == '\\') {
            text.append("\\\\");
        } else {
            text.push_back(byte);
        }
        if (text.size() > limit) {
            return text.replace(kept, std::string::npos, cut.substr(0, std::min(limit, cut.size())));
        }
        if (text.size() + cut.size() <= limit) {
            kept = text.size();
        }
    }
    return text;
}

} // namespace redislock::detail
