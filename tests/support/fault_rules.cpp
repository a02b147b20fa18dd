#include "support/fault_rules.hpp"

#include "redislock/random.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace redislock::test::proxy {
namespace {

std::size_t indexOf(RuleId id) noexcept
{
    return static_cast<std::size_t>(id) - 1;
}

} // namespace

std::string lower(std::string_view text)
{
    std::string result(text);
    for (auto& c : result) {
        c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    return result;
}

bool isCommand(const Words& words, std::string_view command)
{
    if (command.empty() || command == "*") {
        return true;
    }
    for (std::size_t index = 0; !command.empty(); ++index) {
        const auto end = std::min(command.find(' '), command.size());
        if (index >= words.size() || lower(words[index]) != lower(command.substr(0, end))) {
            return false;
        }
        command.remove_prefix(std::min(end + 1, command.size()));
    }
    return true;
}

bool matches(const Match& match, const Words& words)
{
    const auto hasText = [&](const auto& word) { return word.find(match.script) != std::string::npos; };
    return isCommand(words, match.command) &&
           (match.script.empty() || std::any_of(words.begin(), words.end(), hasText));
}

RuleId RuleBook::add(Rule rule)
{
    rules_.push_back({.rule = std::move(rule)});
    return RuleId{rules_.size()};
}

void RuleBook::remove(RuleId id)
{
    rules_.at(indexOf(id)).active = false;
}

void RuleBook::clear()
{
    for (auto& entry : rules_) {
        entry.active = false;
    }
}

std::size_t RuleBook::hits(RuleId id) const
{
    return rules_.at(indexOf(id)).hits;
}

Action RuleBook::apply(Direction direction, const Words& words, std::optional<std::size_t> place)
{
    std::optional<Action> chosen;
    for (auto& [rule, seen, hits, active] : rules_) {
        if (!active || rule.match.direction != direction || !matches(rule.match, words) ||
            (rule.match.atByte && rule.match.atByte != place)) {
            continue;
        }
        ++seen;
        const bool due = rule.match.oneIn != 0 ? Random(seen).next() % rule.match.oneIn == 0
                                               : rule.match.nth == 0 || seen == rule.match.nth;
        const bool exhausted = rule.limit != 0 && hits >= rule.limit;
        if (!chosen && due && !exhausted) {
            ++hits;
            chosen = rule.action;
        }
    }
    return chosen.value_or(Action::pass());
}

std::size_t RuleBook::untilNext(Direction direction, std::size_t place, std::size_t size) const
{
    for (const auto& [rule, seen, hits, active] : rules_) {
        const auto at = rule.match.atByte.value_or(0);
        if (active && rule.match.direction == direction && at > place) {
            size = std::min(size, at - place);
        }
    }
    return size;
}

} // namespace redislock::test::proxy
