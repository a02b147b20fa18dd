/// @file
/// The request that asks a server only for an answer.
#pragma once

#include "logic/call/listened_call.hpp"
#include "redislock/detail/protocol/command.hpp"

#include <string>

namespace redislock::detail {

/// The answer, whatever it is, shows that a connection is there.
class PingCall final : public ListenedCall {
public:
    void encode(std::string& out, Form /*by*/) override { appendCommand(out, {"PING"}); }
};

} // namespace redislock::detail
