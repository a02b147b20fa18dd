/// @file
/// The request that asks a server for nothing.
#pragma once

#include "logic/call/listened_call.hpp"
#include "redislock/detail/protocol/command.hpp"

#include <string>

namespace redislock::detail {

/// Its answer, whatever it is, shows that a connection is there.
class PingCall final : public ListenedCall {
public:
    void encode(std::string& out, Form /*by*/) override { appendCommand(out, {"PING"}); }
};

} // namespace redislock::detail
