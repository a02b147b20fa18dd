/// @file
/// Requests as bytes.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace redislock::detail {

/// Appends `<mark><number>\r\n`.
inline void appendHeader(std::string& out, char mark, std::size_t number)
{
    char text[32];
    text[0] = mark;
    auto* end = std::to_chars(text + 1, text + sizeof text - 2, number).ptr;
    *end++ = '\r';
    *end++ = '\n';
    out.append(text, static_cast<std::size_t>(end - text));
}

/// Appends one argument of a request (a RESP bulk string; binary-safe).
inline void appendArgument(std::string& out, std::string_view argument)
{
    appendHeader(out, '$', argument.size());
    out.append(argument);
    out.append("\r\n", 2);
}

/// Appends one decimal argument.
inline void appendArgument(std::string& out, std::int64_t number)
{
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    appendArgument(out, std::string_view(digits, static_cast<std::size_t>(end - digits)));
}

/// Appends a whole request.
inline void appendCommand(std::string& out, std::initializer_list<std::string_view> arguments)
{
    appendHeader(out, '*', arguments.size());
    for (const auto argument : arguments) {
        appendArgument(out, argument);
    }
}

} // namespace redislock::detail
