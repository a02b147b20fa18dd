/// @file
/// A decoded RESP2 reply.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::detail {

/// A reply of the server as a value. Only the members that belong to the kind are meaningful.
struct Reply {
    enum class Kind : std::uint8_t { nil, integer, text, status, error, array };

    Kind kind = Kind::nil;
    std::int64_t integer = 0;
    std::string text; ///< of text, status and error
    std::vector<Reply> elements;

    [[nodiscard]] bool isError() const noexcept { return kind == Kind::error; }
};

/// A value in a list of names and values, as in the answer to HELLO; empty if the name is not there.
inline std::string_view valueIn(const Reply& list, std::string_view name) noexcept
{
    for (std::size_t i = 0; i + 1 < list.elements.size(); i += 2) {
        if (list.elements[i].text == name) {
            return list.elements[i + 1].text;
        }
    }
    return {};
}

} // namespace redislock::detail
