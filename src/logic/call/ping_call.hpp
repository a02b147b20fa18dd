/// @file
/// The request that asks a server only for an answer.
#pragma once

#include "logic/call/listened_call.hpp"
#include "redislock/detail/protocol/command.hpp"

#include <string>
#include <utility>

namespace redislock::detail {

/// The answer, whatever it is, shows that a connection is there.
class PingCall final : public ListenedCall {
public:
    /// The second time something else: some proxies refuse PING by ending the connection.
    void encode(std::string& out, Form /*by*/) override
    {
        std::exchange(asked_, true) ? appendCommand(out, {"EVAL", "return 1", "1", "redislock"})
                                    : appendCommand(out, {"PING"});
    }

private:
    bool asked_ = false;
};

} // namespace redislock::detail
