/// @file
/// Which rule of a FaultProxy hits which frame. Used by the proxy only.
#pragma once

#include "support/fault_proxy.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::test::proxy {

using Words = std::vector<std::string>;

/// The text with its ASCII letters in lower case.
std::string lower(std::string_view text);

/// Whether the first words are those of @p command, in any case: "SCRIPT LOAD" has two; "*" and nothing stand for any.
bool isCommand(const Words& words, std::string_view command);

/// Whether the command and the text match; the caller checks the direction and the count.
bool matches(const Match& match, const Words& words);

/// The rules of a proxy, the ended ones too. Not thread-safe.
class RuleBook {
public:
    RuleId add(Rule rule);
    void remove(RuleId id);
    void clear();
    [[nodiscard]] std::size_t hits(RuleId id) const;

    /// Counts a frame and says what happens to it. @param place where bytes without frames begin
    Action apply(Direction direction, const Words& words, std::optional<std::size_t> place = {});
    /// How many of @p size bytes at @p place come before the next that a rule asks for by its place.
    [[nodiscard]] std::size_t untilNext(Direction direction, std::size_t place, std::size_t size) const;

private:
    struct Entry {
        Rule rule;
        std::size_t seen = 0;
        std::size_t hits = 0;
        bool active = true;
    };

    std::vector<Entry> rules_; // a rule's id is its place, from 1
};

} // namespace redislock::test::proxy
