// What was meant by a command line that cannot be understood.
#include "options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

namespace redislock::tool {

namespace {

/// What other tools call our commands.
constexpr std::pair<std::string_view, std::string_view> otherNames[] = {
    {"list", "ls"},      {"ps", "ls"},          {"show", "who"},    {"info", "who"},          {"status", "who"},
    {"get", "who"},      {"owner", "who"},      {"holder", "who"},  {"top", "watch"},         {"monitor", "watch"},
    {"exec", "run"},     {"with", "run"},       {"flock", "run"},   {"acquire", "lock"},      {"take", "lock"},
    {"hold", "lock"},    {"release", "unlock"}, {"free", "unlock"}, {"break", "kick"},        {"steal", "kick"},
    {"delete", "kick"},  {"rm", "kick"},        {"kill", "kick"},   {"force-unlock", "kick"}, {"forceunlock", "kick"},
    {"check", "doctor"}, {"health", "doctor"},  {"ping", "doctor"},
};

/// In how many letters two words differ.
std::size_t distance(std::string_view one, std::string_view other)
{
    std::vector<std::size_t> row(other.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < one.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i + 1);
        for (std::size_t j = 0; j < other.size(); ++j) {
            const std::size_t replaced = diagonal + (one[i] == other[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
        }
    }
    return row.back();
}

/// The word that was probably misspelt; empty: none is near enough.
std::string nearest(std::string_view word, const std::vector<std::string>& known)
{
    const auto best = std::ranges::min_element(known, {}, [&](const auto& each) { return distance(word, each); });
    return best != known.end() && distance(word, *best) <= (word.size() + 1) / 3 ? *best : "";
}

std::vector<std::string> namesOf(const std::vector<CLI::App*>& commands)
{
    std::vector<std::string> names;
    std::ranges::transform(commands, std::back_inserter(names), [](const auto* each) { return each->get_name(); });
    return names;
}

/// `--wait` of `--wait=5s`, `-w` of `-w5s`.
std::string optionIn(const std::string& word)
{
    return word.starts_with("--") ? word.substr(0, word.find('=')) : word.substr(0, 2);
}

bool isOption(const std::string& word)
{
    return word.size() > 1 && word.front() == '-';
}

std::string aboutCommand(const std::string& word, const std::vector<CLI::App*>& commands)
{
    const auto names = namesOf(commands);
    const auto* other = std::ranges::find(otherNames, word, [](const auto& each) { return std::string(each.first); });
    const auto meant = other != std::end(otherNames) ? std::string(other->second) : nearest(word, names);
    if (meant.empty()) {
        return fmt::format("there is no command {}: say {} (redislock --help)", inQuotes(word), fmt::join(names, ", "));
    }
    return fmt::format("there is no command {}; did you mean redislock {}?", inQuotes(word), meant);
}

/// @param here the command whose option it would be, if that is known
std::string aboutOption(const std::string& option, const CLI::App* here, const std::vector<CLI::App*>& commands)
{
    std::vector<std::string> owners;
    for (const auto* each : commands) {
        if (each->get_option_no_throw(option) != nullptr) {
            owners.push_back(each->get_name());
        }
    }
    if (owners.empty()) {
        std::vector<std::string> known;
        for (const auto* option_ : here == nullptr ? std::vector<const CLI::Option*>() : here->get_options()) {
            std::ranges::transform(option_->get_lnames(), std::back_inserter(known),
                                   [](const auto& each) { return "--" + each; });
        }
        const auto meant = nearest(option, known);
        return here == nullptr
                   ? fmt::format("there is no option {} (redislock --help)", option)
                   : fmt::format("{} has no option {}{} (redislock {} --help)", here->get_name(), option,
                                 meant.empty() ? std::string() : "; did you mean " + meant + "?", here->get_name());
    }
    const auto isHere = here == nullptr || std::ranges::find(owners, here->get_name()) != owners.end();
    if (!isHere) {
        return fmt::format("{} is an option of {}, not of {}", option, fmt::join(owners, ", "), here->get_name());
    }
    const auto& owner = here == nullptr ? owners.front() : here->get_name();
    return fmt::format("{} is an option of {} and comes after that word: redislock {} {} ...", option, owner, owner,
                       option);
}

std::string aboutSurplus(const CLI::App& command, const std::vector<std::string>& words)
{
    const auto& name = command.get_name();
    if (name == "run") {
        return fmt::format("-- is missing before the command: redislock run {} -- {}", shown(words[0]),
                           shown(words[1]) + (words.size() > 2 ? " ..." : ""));
    }
    return name == "ls" || name == "watch"
               ? fmt::format("{} takes one pattern: put it in quotes, or the shell replaces it by the names of files: "
                             "redislock {} '*'",
                             name, name)
               : fmt::format("{} takes one name: {} is one too many; a name with spaces needs quotes", name,
                             inQuotes(words[1]));
}

} // namespace

std::string whatWasMeant(CLI::App& app, const std::vector<std::string>& arguments)
{
    const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
    const CLI::App* command = nullptr;
    std::string early; // an option before the command
    std::vector<std::string> words;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const auto& word = arguments[i];
        if (isOption(word)) {
            const auto name = optionIn(word);
            const CLI::Option* option = app.get_option_no_throw(name);
            const bool isGlobal = option != nullptr;
            for (const auto* each : command == nullptr ? commands : std::vector<CLI::App*>()) {
                option = option == nullptr ? each->get_option_no_throw(name) : option;
            }
            option = option == nullptr && command != nullptr ? command->get_option_no_throw(name) : option;
            if (!isGlobal && command == nullptr) {
                early = early.empty() ? name : early;
            } else if (option == nullptr) {
                return aboutOption(name, command, commands);
            }
            const bool isWhole = option == nullptr || option->get_items_expected_max() == 0 || word != name;
            i += isWhole ? 0 : 1;
        } else if (command == nullptr) {
            const auto found = std::ranges::find(commands, word, [](const auto* each) { return each->get_name(); });
            if (found == commands.end()) {
                return aboutCommand(word, commands);
            }
            command = *found;
        } else {
            words.push_back(word);
        }
    }
    if (!early.empty()) {
        return aboutOption(early, command, commands);
    }
    if (command == nullptr) {
        return fmt::format("say what to do: {} (redislock --help)", fmt::join(namesOf(commands), ", "));
    }
    return words.size() > 1 ? aboutSurplus(*command, words) : std::string();
}

} // namespace redislock::tool
