/// @file
/// Questions, those about a name above all, and what their answers mean.
#pragma once

#include "redislock/detail/logic/query_machine.hpp"
#include "redislock/detail/protocol/command.hpp"
#include "redislock/detail/protocol/script.hpp"
#include "runtime/hold.hpp"
#include "runtime/listened_call.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace redislock::detail {

/// A script that is given a lock's name, perhaps the kind's other keys, and up to two arguments.
class NameCall final : public ListenedCall {
public:
    NameCall(const ScriptUse& use, std::shared_ptr<const NamedLock> named, std::vector<std::string> arguments = {})
        : use_(use), named_(std::move(named)), arguments_(std::move(arguments))
    {
    }

    void encode(std::string& out, Form by) const override
    {
        const KindTraits& kind = named_->traits();
        const std::size_t keys = 1 + (use_.withCompanions ? kind.companionCount : 0);
        appendHeader(out, '*', 3 + keys + arguments_.size());
        appendArgument(out, by == Form::bySha ? std::string_view("EVALSHA") : std::string_view("EVAL"));
        appendArgument(out, by == Form::bySha ? use_.script->sha1 : use_.script->text);
        appendArgument(out, static_cast<std::int64_t>(keys));
        appendArgument(out, std::string_view(named_->name));
        if (use_.withCompanions) {
            appendCompanions(out, kind, named_->name);
        }
        for (const auto& argument : arguments_) {
            appendArgument(out, std::string_view(argument));
        }
    }

private:
    const ScriptUse use_;
    std::shared_ptr<const NamedLock> named_;
    std::vector<std::string> arguments_;
};

/// Whether the lock was freed by the last of perhaps several tries: an earlier one, whose reply was lost, may have done it.
inline bool freed(const Reply& reply, const QueryMachine& machine, std::error_code& ec) noexcept
{
    if (reply.kind != Reply::Kind::integer || reply.integer < 0 || reply.integer > 1) {
        ec = Errc::badReply;
        return false;
    }
    return reply.integer == 1 || machine.repeated();
}

/// Nothing for a name that is free; the longest time for a key without one.
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
