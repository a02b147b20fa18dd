/// @file
/// Requests as bytes.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace redislock::detail {

/// Writes `<mark><number>\r\n`, at most 23 characters. @return its end
inline char* writeHeader(char* end, char mark, std::size_t number)
{
    *end++ = mark;
    if (number < 100) { // nearly all
        if (number >= 10) {
            *end++ = static_cast<char>('0' + number / 10);
        }
        *end++ = static_cast<char>('0' + number % 10);
    } else {
        end = std::to_chars(end, end + 20, number).ptr;
    }
    *end++ = '\r';
    *end++ = '\n';
    return end;
}

/// Appends `<mark><number>\r\n`.
inline void appendHeader(std::string& out, char mark, std::size_t number)
{
    char text[32];
    out.append(text, static_cast<std::size_t>(writeHeader(text, mark, number) - text));
}

/// Appends one argument of a request (a RESP bulk string; binary-safe).
inline void appendArgument(std::string& out, std::string_view argument)
{
    constexpr std::size_t most = 72; // a request is a dozen short arguments: each is appended in one piece
    char text[32 + most];
    char* end = writeHeader(text, '$', argument.size());
    if (argument.size() <= most) {
        end = std::copy(argument.begin(), argument.end(), end);
    } else {
        out.append(text, static_cast<std::size_t>(end - text)).append(argument);
        end = text;
    }
    *end++ = '\r';
    *end++ = '\n';
    out.append(text, static_cast<std::size_t>(end - text));
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
