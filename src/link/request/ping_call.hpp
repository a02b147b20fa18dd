/// @file
/// The request that asks a server only for an answer.
#pragma once

#include "link/request/listened_call.hpp"
#include "wire/command.hpp"

#include <string>
#include <system_error>
#include <utility>

namespace redislock::detail {

/// The answer shows that a connection is there: where PING is forbidden, locks may work all the same.
class PingCall final : public ListenedCall {
public:
    void encode(std::string& out, Form /*by*/) override
    {
        inOtherWords_ ? appendCommand(out, {"EVAL", "return 1", "1", "redislock"}) : appendCommand(out, {"PING"});
    }

    /// Whether to ask once more, in other words: some proxies refuse PING alone, by an error or by hanging up.
    [[nodiscard]] bool asksAgain(const Outcome& end) noexcept
    {
        const bool isUnknown = end.replied && reply.isError() && classify(reply.text) == unknownRefusal;
        return (isUnknown || end.fault.failure == Failure::lostReply) && !std::exchange(inOtherWords_, true);
    }
    /// Why nothing can be asked now; nothing: the connection works.
    [[nodiscard]] std::error_code obstacle(const Outcome& end) const noexcept
    {
        const Fault fault = end.replied ? classify(reply.text) : end.fault;
        const bool works = end.replied && (!reply.isError() || fault.failure == Failure::fatal);
        return works ? std::error_code() : std::error_code(fault.error);
    }

private:
    bool inOtherWords_ = false;
};

} // namespace redislock::detail
