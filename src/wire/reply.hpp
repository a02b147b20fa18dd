/// @file
/// A decoded RESP2 reply.
#pragma once

#include <cstdint>
#include <string>
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

} // namespace redislock::detail
