/// @file
/// The result of one attempt to read or write.
#pragma once

#include <cstddef>

namespace redislock::detail {

/// The result of one attempt to read or write.
struct Transferred {
    enum class Status { ok, wouldBlock, closed };
    Status status = Status::closed;
    std::size_t bytes = 0;
};

} // namespace redislock::detail
