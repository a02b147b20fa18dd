/// @file
/// A command of Redis with its arguments.
#pragma once

#include "link/request/call.hpp"
#include "wire/command.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redislock::detail {

/// A request that is no script, and for which a caller waits.
class CommandCall final : public Call {
public:
    explicit CommandCall(std::vector<std::string> words) : words_(std::move(words)) {}

    void encode(std::string& out, Form /*by*/) override
    {
        appendHeader(out, '*', words_.size());
        for (const auto& word : words_) {
            appendArgument(out, std::string_view(word));
        }
    }

private:
    const std::vector<std::string> words_;
};

} // namespace redislock::detail
