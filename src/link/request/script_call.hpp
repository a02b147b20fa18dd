/// @file
/// A script with its keys and arguments.
#pragma once

#include "link/request/listened_call.hpp"
#include "redislock/clock.hpp"
#include "wire/command.hpp"
#include "wire/script.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redislock::detail {

/// A script that is given any number of keys and arguments.
class ScriptCall final : public ListenedCall {
public:
    ScriptCall(const Script& script, std::vector<std::string> keys, std::vector<std::string> arguments)
        : script_(script), keys_(std::move(keys)), arguments_(std::move(arguments))
    {
    }

    /// The same request, to be sent once more.
    [[nodiscard]] std::shared_ptr<ScriptCall> again() const
    {
        return std::make_shared<ScriptCall>(script_, keys_, arguments_);
    }

    void encode(std::string& out, Form by) override
    {
        appendScript(out, script_, by, keys_.size(), arguments_.size());
        for (const auto* words : {&keys_, &arguments_}) {
            for (const auto& word : *words) {
                appendArgument(out, std::string_view(word));
            }
        }
    }

    [[nodiscard]] bool isWanted(TimePoint now) const noexcept override { return now < wantedUntil; }

    /// The request is not sent after that: the answer to an earlier copy of it may not be kept any more.
    TimePoint wantedUntil = TimePoint::max();

private:
    const Script& script_;
    const std::vector<std::string> keys_;
    const std::vector<std::string> arguments_;
};

} // namespace redislock::detail
