/// @file
/// What clients send.
#pragma once

#include "redislock/detail/protocol/script.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace redislock::simulation {

/// A request, as a value instead of bytes: the codec and the sockets are tested elsewhere.
struct Request {
    enum class Verb : std::uint8_t { script, subscribe, unsubscribe, ping };

    Verb verb = Verb::script;
    bool byText = false;                    ///< EVAL instead of EVALSHA
    const detail::Script* script = nullptr; ///< of a script
    std::string name;                       ///< of the key or channel
    std::vector<std::string> arguments;     ///< of a script; the first one is the holder, where there is one
    std::uint64_t number = 0;               ///< grows with each request that is made; copies keep it
};

} // namespace redislock::simulation
