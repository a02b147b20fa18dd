/// @file
/// The repeated actions of a thread inside a lock or with a permit, until the key `<key>:end` exists.
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

/// The same as in the Java driver. `<key>:turns` counts how often a counting thread came after one of the other
/// language:
///  - `count`: counts a key up, and then its copy, by GET, then SET. @return how often.
///  - `look`: reads the key and its copy. @return how often. @throws std::runtime_error when they are not equal.
///  - `crowd`: counts the threads inside, by INCR and DECR. @return the greatest count that it saw.
long repeat(const Endpoint& server, std::string_view what, const std::string& key, const std::function<void()>& enter,
            const std::function<void()>& leave);

} // namespace redislock::test
