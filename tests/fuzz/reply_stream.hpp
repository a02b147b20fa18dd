/// @file
/// The bytes of a hostile server as the connection sees them: cut into segments, decoded, and checked on the way.
#pragma once

#include "fuzz/fuzz_target.hpp"
#include "wire/codec.hpp"

#include <cstddef>
#include <optional>
#include <string_view>

namespace redislock::test {

/// The memory of a reply and everything in it.
inline std::size_t bytesOf(const detail::Reply& reply)
{
    std::size_t bytes = sizeof reply + reply.text.capacity();
    for (const auto& element : reply.elements) {
        bytes += bytesOf(element);
    }
    return bytes + (reply.elements.capacity() - reply.elements.size()) * sizeof reply;
}

inline std::size_t elementsOf(const detail::Reply& reply)
{
    if (reply.kind != detail::Reply::Kind::array) {
        return 0; // its elements belong to an earlier reply
    }
    std::size_t count = reply.elements.size();
    for (const auto& element : reply.elements) {
        count += elementsOf(element);
    }
    return count;
}

inline bool isSame(const detail::Reply& a, const detail::Reply& b)
{
    using Kind = detail::Reply::Kind;
    if (a.kind != b.kind) {
        return false;
    }
    switch (a.kind) {
    case Kind::nil:
        return true;
    case Kind::integer:
        return a.integer == b.integer;
    case Kind::array:
        return std::equal(a.elements.begin(), a.elements.end(), b.elements.begin(), b.elements.end(), isSame);
    default:
        return a.text == b.text;
    }
}

/// Replies out of a stream of bytes. Bytes that make no sense end the connection, and the next connection goes on after
/// them.
class ReplyStream {
public:
    enum class Status { reply, brokenConnection, end };

    /// @param bytes must outlive this object. @param seed of the segments.
    ReplyStream(std::string_view bytes, std::uint64_t seed) : bytes_(bytes), random_(seed) { reconnect(); }

    /// The next reply. After a broken connection it goes on with the next one.
    Status next(detail::Reply& reply)
    {
        using Reader = detail::ReplyReader::Status;
        for (;;) {
            const auto status = segments_->next(reply);
            if (status == Reader::complete) {
                checkReply(reply);
                return Status::reply;
            }
            if (status == Reader::broken) {
                require(wholeStatus() == Reader::broken, "where the bytes are cut does not matter: both break");
                reconnect();
                return Status::brokenConnection;
            }
            if (bytes_.empty()) {
                require(wholeStatus() == Reader::needMore, "where the bytes are cut does not matter: both wait");
                return Status::end;
            }
            const auto segment = bytes_.substr(0, segmentSize(random_, bytes_.size()));
            bytes_.remove_prefix(segment.size());
            segments_->feed(segment);
        }
    }

private:
    /// The twin reader gets all bytes at once, and must give the same replies.
    void checkReply(const detail::Reply& reply)
    {
        require(wholeStatus() == detail::ReplyReader::Status::complete, "where the bytes are cut does not matter");
        require(isSame(reply, twin_), "where the bytes are cut does not matter: the same reply");
        require(elementsOf(reply) <= detail::ReplyReader::maxElements, "a reply has a limited number of elements");
        // an element has at least four bytes, ":1\r\n"; the elements that an array announces are allocated before they
        // come, up to the limit
        constexpr std::size_t promised = (detail::ReplyReader::maxElements + 1) * sizeof reply;
        require(bytesOf(twin_) <= promised + fed_ * (2 + sizeof reply / 4), "a reply costs a multiple of its bytes");
    }

    detail::ReplyReader::Status wholeStatus() { return whole_->next(twin_); }

    void reconnect()
    {
        segments_.emplace();
        whole_.emplace();
        twin_ = {};
        whole_->feed(bytes_);
        fed_ = bytes_.size();
    }

    std::string_view bytes_;
    Random random_;
    std::optional<detail::ReplyReader> segments_;
    std::optional<detail::ReplyReader> whole_;
    detail::Reply twin_;
    std::size_t fed_ = 0;
};

} // namespace redislock::test
