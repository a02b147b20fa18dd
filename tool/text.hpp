/// @file
/// Text for terminals and shells. What is shown of a name is a word that a shell reads back.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace redislock::tool {

/// The name as a word of bash, zsh or ksh, in quotes only where it needs them: `job`, `'my job'`, `$'a\xff'`. In a
/// UTF-8 locale what is printable stays as it is; controls, invisible characters, marks that change the direction of
/// text, and bytes that are not UTF-8 are written as `\xNN`.
std::string shown(std::string_view name);
/// The same, always in quotes: for sentences.
std::string inQuotes(std::string_view name);

/// How many columns of a terminal the text takes. Of text that is printable.
std::size_t widthOf(std::string_view text);
/// The text, at most that many columns wide: of a longer one the beginning and the end, with `…` between.
std::string shortened(std::string_view text, std::size_t columns);
/// `…`, or `...` where that cannot be shown.
std::string_view ellipsis();

/// `1.5 s`, `2 min`.
std::string inWords(std::chrono::milliseconds time);
/// `1 lock`, `2 locks`.
std::string counted(std::size_t number, std::string_view noun);

} // namespace redislock::tool
