/// @file
/// Replies of a server, made by hand.
#pragma once

#include "wire/reply.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace redislock::test {

inline detail::Reply textReply(std::string text)
{
    detail::Reply reply;
    reply.kind = detail::Reply::Kind::text;
    reply.text = std::move(text);
    return reply;
}

inline detail::Reply errorReply(std::string text)
{
    detail::Reply reply = textReply(std::move(text));
    reply.kind = detail::Reply::Kind::error;
    return reply;
}

inline detail::Reply numberReply(std::int64_t number)
{
    detail::Reply reply;
    reply.kind = detail::Reply::Kind::integer;
    reply.integer = number;
    return reply;
}

inline detail::Reply arrayReply(std::vector<detail::Reply> elements)
{
    detail::Reply reply;
    reply.kind = detail::Reply::Kind::array;
    reply.elements = std::move(elements);
    return reply;
}

} // namespace redislock::test
