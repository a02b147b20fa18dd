/// @file
/// What the lines of INFO and CLIENT LIST say.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

namespace redislock::detail {

/// A field in a line of CLIENT LIST (`id=7 addr=127.0.0.1:50222 … name=shop …`); empty if it is not there.
inline std::string_view fieldOf(std::string_view line, std::string_view field) noexcept
{
    for (std::size_t at = 0; at < line.size();) {
        const auto end = std::min(line.find(' ', at), line.size());
        const auto word = line.substr(at, end - at);
        if (word.size() > field.size() && word.starts_with(field) && word[field.size()] == '=') {
            return word.substr(field.size() + 1);
        }
        at = end + 1;
    }
    return {};
}

/// The value of a line `field:value`; empty if there is none.
inline std::string_view infoField(std::string_view info, std::string_view field) noexcept
{
    for (std::size_t at = 0; at < info.size();) {
        const auto end = std::min(info.find('\n', at), info.size());
        auto line = info.substr(at, end - at);
        line.remove_suffix(line.ends_with('\r') ? 1 : 0);
        if (line.size() > field.size() && line.starts_with(field) && line[field.size()] == ':') {
            return line.substr(field.size() + 1);
        }
        at = end + 1;
    }
    return {};
}

/// The value as a number; 0 for anything else.
inline std::uint64_t infoNumber(std::string_view info, std::string_view field) noexcept
{
    const auto text = infoField(info, field);
    std::uint64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

} // namespace redislock::detail
