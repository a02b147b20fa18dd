/// @file
/// What a thread does again and again inside a lock or with a permit, until the key `<key>:end` exists.
#pragma once

#include "redislock/endpoint.hpp"

#include <functional>
#include <string>
#include <string_view>

namespace redislock::test {

/// Whether that is an operation of this file.
inline bool repeats(std::string_view operation)
{
    return operation == "count" || operation == "look" || operation == "crowd";
}

/// As the Java driver does it, counting in `<key>:turns` how often one that counts came after one of the other
/// language:
///  - `count`: counts a key up, and then its copy, by GET, then SET. @return how often.
///  - `look`: reads the key and its copy. @return how often. @throws std::runtime_error when they are not equal.
///  - `crowd`: counts those who are inside, by INCR and DECR. @return the most that it saw.
long repeat(const Endpoint& server, std::string_view what, const std::string& key, const std::function<void()>& enter,
            const std::function<void()>& leave);

} // namespace redislock::test
