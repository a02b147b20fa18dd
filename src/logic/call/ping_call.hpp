/// @file
/// The request that asks a server only for an answer.
#pragma once

#include "logic/call/listened_call.hpp"
#include "redislock/detail/protocol/command.hpp"

#include <string>
#include <system_error>

namespace redislock::detail {

/// The answer shows that a connection is there: where PING is forbidden, locks may work all the same.
class PingCall final : public ListenedCall {
public:
    void encode(std::string& out, Form /*by*/) override { appendCommand(out, {"PING"}); }

    /// Why nothing can be asked now; nothing: the connection works.
    [[nodiscard]] std::error_code obstacle(const Outcome& end) const noexcept
    {
        const Fault fault = end.replied ? classify(reply.text) : end.fault;
        const bool works = end.replied && (!reply.isError() || fault.failure == Failure::fatal);
        return works ? std::error_code() : std::error_code(fault.error);
    }
};

} // namespace redislock::detail
