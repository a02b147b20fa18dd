/// @file
/// The request that asks a server only for an answer.
#pragma once

#include "logic/call/listened_call.hpp"
#include "redislock/detail/protocol/command.hpp"

#include <string>
#include <system_error>
#include <utility>

namespace redislock::detail {

/// The answer shows that a connection is there: where PING is forbidden, locks may work all the same.
class PingCall final : public ListenedCall {
public:
    /// The second time something else: some proxies refuse PING by ending the connection.
    void encode(std::string& out, Form /*by*/) override
    {
        std::exchange(asked_, true) ? appendCommand(out, {"EVAL", "return 1", "1", "redislock"})
                                    : appendCommand(out, {"PING"});
    }

    /// Why nothing can be asked now; nothing: the connection works.
    [[nodiscard]] std::error_code obstacle(const Outcome& end) const noexcept
    {
        const Fault fault = end.replied ? classify(reply.text) : end.fault;
        const bool works = end.replied && (!reply.isError() || fault.failure == Failure::fatal);
        return works ? std::error_code() : std::error_code(fault.error);
    }

private:
    bool asked_ = false;
};

} // namespace redislock::detail
