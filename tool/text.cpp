#include "text.hpp"

#include <fmt/format.h>

#include <langinfo.h>

#include <algorithm>
#include <cwchar>
#include <iterator>
#include <vector>

namespace redislock::tool {

namespace {

bool isUtf8()
{
    static const bool is = std::string_view(::nl_langinfo(CODESET)) == "UTF-8";
    return is;
}

/// Characters that nobody sees, or takes for a space, or that change how others are seen: two names must not look the
/// same. Terminals show them, so iswprint() says that they are printable.
bool isHidden(wchar_t character)
{
    struct Range {
        wchar_t first, last;
    };
    static constexpr Range hidden[] = {
        {0x7f, 0xa0},     {0xad, 0xad},     {0x34f, 0x34f},   {0x61c, 0x61c},   {0x115f, 0x1160}, {0x1680, 0x1680},
        {0x17b4, 0x17b5}, {0x180b, 0x180f}, {0x2000, 0x200f}, {0x2028, 0x202f}, {0x205f, 0x206f}, {0x3000, 0x3000},
        {0x3164, 0x3164}, {0xfe00, 0xfe0f}, {0xfeff, 0xfeff}, {0xffa0, 0xffa0}, {0xfff0, 0xfffb}, {0xe0000, 0xe0fff},
    };
    return std::ranges::any_of(hidden, [=](Range each) { return each.first <= character && character <= each.last; });
}

/// A character, or a byte that is not part of one.
struct Glyph {
    std::string_view bytes;
    bool isPrintable = false;
    std::size_t width = 0; ///< in columns
};

/// @param isFirst no character is before it with which a mark could be combined
Glyph glyphAt(std::string_view text, bool isFirst)
{
    const auto code = static_cast<unsigned char>(text.front());
    if (code < 0x80 || !isUtf8()) {
        return {text.substr(0, 1), code >= 0x20 && code < 0x7f, 1};
    }
    std::mbstate_t state{};
    wchar_t character = 0;
    const auto size = std::mbrtowc(&character, text.data(), text.size(), &state);
    if (size > text.size()) {
        return {text.substr(0, 1), false, 1};
    }
    const int width = ::wcwidth(character);
    return {text.substr(0, size), width >= (isFirst ? 1 : 0) && !isHidden(character),
            static_cast<std::size_t>(std::max(width, 0))};
}

std::vector<Glyph> glyphsOf(std::string_view text)
{
    std::vector<Glyph> glyphs;
    bool isFirst = true;
    for (; !text.empty(); text.remove_prefix(glyphs.back().bytes.size())) {
        glyphs.push_back(glyphAt(text, isFirst));
        isFirst = !glyphs.back().isPrintable;
    }
    return glyphs;
}

/// Whether shells take the word for what it is.
bool isPlain(std::string_view name)
{
    constexpr std::string_view fine = "-_./:@%+,{}=";
    const bool isPattern = name.find('{') != std::string_view::npos &&
                           (name.find(',') != std::string_view::npos || name.find("..") != std::string_view::npos);
    return !name.empty() && name.front() != '=' && !isPattern &&
           std::ranges::all_of(glyphsOf(name), [&](const Glyph& each) {
               const char first = each.bytes.front();
               const bool isAscii = static_cast<unsigned char>(first) < 0x80;
               return each.isPrintable &&
                      (!isAscii || (first >= '0' && first <= '9') || (first >= 'A' && first <= 'Z') ||
                       (first >= 'a' && first <= 'z') || fine.find(first) != std::string_view::npos);
           });
}

} // namespace

std::string shown(std::string_view name)
{
    return isPlain(name) ? std::string(name) : inQuotes(name);
}

std::string inQuotes(std::string_view name)
{
    const auto glyphs = glyphsOf(name);
    const bool escapes = std::ranges::any_of(glyphs, [](const Glyph& each) { return !each.isPrintable; });
    std::string text = escapes ? "$'" : "'";
    for (const auto& each : glyphs) {
        if (!each.isPrintable) {
            for (const char byte : each.bytes) {
                fmt::format_to(std::back_inserter(text), "\\x{:02x}", static_cast<unsigned char>(byte));
            }
        } else if (each.bytes == "'") {
            text += escapes ? "\\'" : "'\\''";
        } else {
            text += escapes && each.bytes == "\\" ? "\\\\" : each.bytes;
        }
    }
    return text + "'";
}

std::size_t widthOf(std::string_view text)
{
    std::size_t width = 0;
    for (const auto& each : glyphsOf(text)) {
        width += each.width;
    }
    return width;
}

std::string shortened(std::string_view text, std::size_t columns)
{
    const std::size_t whole = widthOf(text);
    const std::size_t mark = widthOf(ellipsis());
    if (whole <= columns || columns <= mark) {
        return std::string(whole <= columns ? text : text.substr(0, columns));
    }
    const std::size_t left = (columns - mark + 1) / 2;
    const std::size_t right = columns - mark - left;
    std::string begin;
    std::string end;
    std::size_t at = 0;
    for (const auto& each : glyphsOf(text)) {
        at += each.width;
        if (at <= left) {
            begin += each.bytes;
        } else if (at - each.width >= whole - right) {
            end += each.bytes;
        }
    }
    return begin.append(ellipsis()).append(end);
}

std::string_view ellipsis()
{
    return isUtf8() ? "\xe2\x80\xa6" : "...";
}

std::string inWords(std::chrono::milliseconds time)
{
    using namespace std::chrono_literals;
    const auto count = static_cast<double>(time.count());
    return time < 1s       ? fmt::format("{} ms", time.count())
           : time < 100s   ? fmt::format("{:.1f} s", count / 1e3)
           : time < 100min ? fmt::format("{:.0f} min", count / 60e3)
                           : fmt::format("{:.0f} h", count / 3600e3);
}

std::string counted(std::size_t number, std::string_view noun)
{
    return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

} // namespace redislock::tool
