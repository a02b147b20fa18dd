/// @file
/// Bytes from the server to replies.
#pragma once

#include "wire/reply.hpp"

#include <cstddef>
#include <memory>
#include <string_view>

namespace redislock::detail {

/// A program may bring a second hiredis, and its linker then takes one of the two for all. @throws LockError
/// `unsupported` if that is one with other structures than the library was built with.
void requireOwnHiredis();

/// How large a reply may be.
struct ReplyLimits {
    std::size_t elements = 1024;       ///< of all levels together
    std::size_t bytes = 1024UL * 1024; ///< of the whole reply
};

/// An incremental RESP2 decoder with limits: no bytes of a server make it allocate more than a fixed multiple of what
/// it was fed, nor abort. After an error it must be thrown away with its connection. Not thread-safe.
class ReplyReader {
public:
    static constexpr std::size_t maxElements = ReplyLimits{}.elements; ///< unless other limits are given
    static constexpr std::size_t maxBytes = ReplyLimits{}.bytes;       ///< unless other limits are given

    enum class Status { complete, needMore, broken };

    explicit ReplyReader(ReplyLimits limits = {});
    ReplyReader(ReplyReader&&) noexcept;
    ReplyReader& operator=(ReplyReader&&) noexcept;
    ~ReplyReader();

    /// Adds received bytes. Call next() until it needs more before the next feed().
    void feed(std::string_view bytes);

    /// Takes the next complete reply into @p reply.
    Status next(Reply& reply);

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace redislock::detail
