#include "structure/signatures.hpp"

#include "structure/declarations.hpp"

#include <algorithm>
#include <cctype>
#include <sstream>

namespace redislock::test {
namespace {

std::vector<std::string> wordsOf(const std::string& text)
{
    std::istringstream stream(text);
    std::vector<std::string> words;
    for (std::string word; stream >> word;) {
        words.push_back(word);
    }
    return words;
}

/// The name of a declaration that is neither a class nor a function: the last identifier before its value.
std::string nameIn(const std::string& text)
{
    std::string name;
    for (const auto& word : wordsOf(text)) {
        if (word == "=" || word == "{" || word == "[" || word == ":") {
            if (!name.empty()) {
                break;
            }
        } else if (std::isalpha(static_cast<unsigned char>(word[0])) != 0) {
            name = word;
        }
    }
    return name;
}

/// Without the names of the inner namespaces: what the changelog calls it.
std::string qualified(const Declaration& one)
{
    constexpr std::string_view outer = "redislock::";
    const auto scope = one.scope + "::";
    const auto inner = scope.substr(scope.starts_with(outer) ? outer.size() : 0);
    const auto name = one.name.empty() ? nameIn(one.text) : one.name;
    return (inner == "::" ? "" : inner) + name;
}

bool isPublic(const Declaration& one)
{
    const bool isInside = ("::" + one.scope + "::").find("::detail::") != std::string::npos;
    return !isInside && one.access != Declaration::Access::isPrivate && one.kind != Declaration::Kind::other;
}

/// The changelog's section about the interface, of what is not released.
std::string_view interfaceSection(std::string_view changelog)
{
    const auto begin = changelog.find("## [Unreleased]");
    if (begin == std::string_view::npos) {
        return {};
    }
    changelog = changelog.substr(begin + 4);
    changelog = changelog.substr(0, changelog.find("\n## "));
    const auto heading = changelog.find("\n### Interface\n");
    if (heading == std::string_view::npos) {
        return {};
    }
    changelog = changelog.substr(heading + 5);
    return changelog.substr(0, changelog.find("\n### "));
}

} // namespace

std::set<std::string> signaturesOf(const std::vector<SourceFile>& headers)
{
    std::set<std::string> signatures;
    for (const auto& header : headers) {
        for (const auto& one : declarationsOf(header.text)) {
            if (isPublic(one)) {
                signatures.insert(qualified(one) + ": " + one.text);
            }
        }
    }
    return signatures;
}

std::set<std::string> signaturesIn(std::string_view snapshot)
{
    std::istringstream lines{std::string(snapshot)};
    std::set<std::string> signatures;
    for (std::string line; std::getline(lines, line);) {
        if (!line.empty() && !line.starts_with('#')) {
            signatures.insert(line);
        }
    }
    return signatures;
}

std::string unnamedChanges(const std::set<std::string>& signatures, const std::set<std::string>& snapshot,
                           std::string_view changelog)
{
    const auto section = interfaceSection(changelog);
    std::string text;
    const auto compare = [&](const std::set<std::string>& some, const std::set<std::string>& others, char sign) {
        for (const auto& each : some) {
            const auto name = "`" + each.substr(0, each.find(": ")) + "`";
            if (!others.contains(each) && section.find(name) == std::string_view::npos) {
                text += sign + (" " + each) + '\n';
            }
        }
    };
    compare(snapshot, signatures, '-');
    compare(signatures, snapshot, '+');
    return text;
}

} // namespace redislock::test
