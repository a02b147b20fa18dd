/// @file
/// Questions about a name, and what their answers mean.
#pragma once

#include "core/hold.hpp"
#include "link/request/calls.hpp"
#include "wire/key_schema.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace redislock::detail {

/// A script that is given a lock's name, perhaps the kind's other keys, and these arguments.
inline std::shared_ptr<ScriptCall> nameCall(const NamedLock& named, const ScriptUse& use,
                                            std::vector<std::string> arguments = {})
{
    return std::make_shared<ScriptCall>(*use.script, keysOf(named, use), std::move(arguments));
}

/// Whether the lock was freed. @param repeated an earlier try may have done it
inline bool wasFreed(const Reply& reply, bool repeated, std::error_code& ec) noexcept
{
    if (reply.kind != Reply::Kind::integer || reply.integer < 0 || reply.integer > 1) {
        ec = Errc::badReply;
        return false;
    }
    return reply.integer == 1 || repeated;
}

/// The holder; nothing for a lock that is free.
inline std::optional<std::string> holderOf(const Reply& reply, std::error_code& ec)
{
    if (reply.kind == Reply::Kind::text && !reply.text.empty()) {
        return reply.text;
    }
    if (reply.kind != Reply::Kind::nil) {
        ec = Errc::badReply;
    }
    return std::nullopt;
}

/// The remaining time; nothing for a name that is free, the longest time for a key without a time to live.
inline std::optional<std::chrono::milliseconds> timeToLiveOf(const Reply& reply, std::error_code& ec) noexcept
{
    if (reply.kind != Reply::Kind::integer || reply.integer < -2) {
        ec = Errc::badReply;
    }
    if (ec || reply.integer == -2) {
        return std::nullopt;
    }
    return reply.integer == -1 ? std::chrono::milliseconds::max() : std::chrono::milliseconds(reply.integer);
}

} // namespace redislock::detail
