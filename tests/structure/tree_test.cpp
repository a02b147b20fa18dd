// The rules, applied to the source tree of this build.
#include "structure/figures.hpp"
#include "structure/layers.hpp"
#include "structure/signatures.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace redislock::test {
namespace {

namespace fs = std::filesystem;

constexpr auto maxLines = 500;
constexpr std::size_t maxFiles = 20; // of a folder

const fs::path root = REDISLOCK_SOURCE_DIR;

std::string read(const std::string& path)
{
    std::ifstream file(root / path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Every file below the folder with one of these endings, as a path relative to the project, sorted.
std::vector<std::string> filesBelow(const std::string& folder, const std::vector<std::string>& endings)
{
    std::vector<std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
        const std::string path = fs::relative(entry.path(), root).generic_string();
        if (entry.is_regular_file() && std::any_of(endings.begin(), endings.end(),
                                                   [&](const std::string& ending) { return path.ends_with(ending); })) {
            files.push_back(path);
        }
    }
    std::sort(files.begin(), files.end());
    return files;
}

std::vector<std::string> librarySources()
{
    auto files = filesBelow("include", {".hpp", ".hpp.in"});
    for (const auto* folder : {"src", "tool"}) {
        std::ranges::move(filesBelow(folder, {".hpp", ".cpp", ".cpp.in"}), std::back_inserter(files));
    }
    return files;
}

/// The files below a folder with their texts.
std::vector<SourceFile> textsBelow(const std::string& folder)
{
    std::vector<SourceFile> files;
    for (const auto& path : filesBelow(folder, {""})) {
        files.push_back({path, read(path)});
    }
    return files;
}

/// Lines of the tests, without the data that they read.
std::size_t linesOfTests()
{
    std::size_t lines = 0;
    for (const auto& [path, text] : textsBelow("tests")) {
        const bool isData = path.find("/data/") != path.npos || path.find("/corpus/") != path.npos ||
                            (path.starts_with("tests/structure/") && path.ends_with(".txt"));
        lines += isData ? 0 : static_cast<std::size_t>(std::ranges::count(text, '\n'));
    }
    return lines;
}

TEST(Tree, IsAsLargeAsItsCeilingsSay)
{
    std::vector<SourceFile> product;
    for (const auto* folder : {"include", "src", "lua", "tool"}) {
        std::ranges::move(textsBelow(folder), std::back_inserter(product));
    }
    auto figures = figuresOf(product);
    for (const auto& [what, figure] : figures) {
        EXPECT_TRUE(!what.starts_with("files in src/") || figure <= maxFiles) << what;
    }
    figures["lines of the tests"] = linesOfTests();
    constexpr std::size_t slack = 100;
    EXPECT_EQ(differences(figures, ceilingsIn(read("tests/structure/ceilings.txt")), slack), "");
}

TEST(Tree, EveryChangeOfASignatureIsNamedInTheChangelog)
{
    const auto signatures = signaturesOf(textsBelow("include/redislock"));
    if (const char* const file = std::getenv("REDISLOCK_WRITE_SIGNATURES")) { // for a release
        std::ofstream out(file);
        std::ranges::copy(signatures, std::ostream_iterator<std::string>(out, "\n"));
    }
    EXPECT_GT(signatures.size(), 500U) << "the headers were not found";
    const auto snapshot = signaturesIn(read("tests/structure/signatures.txt"));
    EXPECT_EQ(unnamedChanges(signatures, snapshot, read("CHANGELOG.md")), "")
        << "name them in CHANGELOG.md, Unreleased, Interface, as `Class::function`";
}

TEST(Tree, EveryIncludeGoesDownTheLayers)
{
    int includes = 0;
    for (const auto& file : librarySources()) {
        for (const auto& [target, line] : includesOf(read(file))) {
            ++includes;
            const std::string reason = violation(file, target);
            EXPECT_EQ(reason, "") << file << ':' << line << ": includes " << target;
        }
    }
    EXPECT_GT(includes, 100) << "the sources were not found";
}

TEST(Tree, TheCoreReadsNoClock)
{
    auto files = filesBelow("src/core", {".hpp", ".cpp"});
    std::ranges::move(filesBelow("src/link/request", {".hpp"}), std::back_inserter(files));
    EXPECT_GT(files.size(), 50U) << "the sources were not found";
    for (const auto& file : files) {
        EXPECT_EQ(read(file).find("::now()"), std::string::npos) << file << ": time comes in with the event";
    }
}

TEST(Tree, TheUmbrellaHasEveryPublicHeader)
{
    const std::string umbrella = read("include/redislock/redislock.hpp");
    for (const auto& entry : fs::directory_iterator(root / "include/redislock")) {
        std::string name = entry.path().filename().string();
        if (name.ends_with(".in")) {
            name.resize(name.size() - 3);
        }
        const bool isApart = name == "format.hpp" || name == "prometheus_observer.hpp"; // they need other libraries
        if (name.ends_with(".hpp") && name != "redislock.hpp" && !isApart) {
            EXPECT_NE(umbrella.find("#include \"redislock/" + name + "\""), std::string::npos) << name;
        }
    }
}

TEST(Tree, EveryScriptIsDeclaredAndEveryDeclarationHasAScript)
{
    const std::string header = read("src/wire/script.hpp");
    std::vector<std::string> expected;
    for (const auto& file : filesBelow("lua", {".lua"})) {
        if (file.starts_with("lua/parts/")) {
            continue; // these are parts of scripts
        }
        const std::string folder = "lua/";
        const std::string ending = ".lua";
        const auto name = file.substr(folder.size(), file.size() - folder.size() - ending.size());
        expected.push_back(scriptIdentifier(name));
    }
    std::vector<std::string> declared;
    const std::regex declaration("extern const Script (\\w+);");
    for (std::sregex_iterator at(header.begin(), header.end(), declaration), end; at != end; ++at) {
        declared.push_back((*at)[1]);
    }
    std::sort(expected.begin(), expected.end());
    std::sort(declared.begin(), declared.end());
    EXPECT_FALSE(expected.empty());
    EXPECT_EQ(declared, expected);
}

TEST(Tree, NoFileIsTooLongToRead)
{
    for (const auto& file : librarySources()) {
        const std::string text = read(file);
        EXPECT_LE(std::count(text.begin(), text.end(), '\n'), maxLines) << file;
    }
}

TEST(Tree, NoLineIsTooLongToRead)
{
    constexpr std::ptrdiff_t columns = 120;
    for (const auto& file : librarySources()) {
        std::istringstream lines(read(file));
        for (std::string line; std::getline(lines, line);) {
            const bool mayBeLong =
                line.find("/// |") != std::string::npos || line.starts_with("#error"); // a table, or a text
            const auto characters = // of UTF-8: each has one byte that is not a continuation byte
                std::ranges::count_if(line,
                                      [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; });
            EXPECT_TRUE(mayBeLong || characters <= columns) << file << ": " << line;
        }
    }
}

// The path of each page of Markdown -> its lines outside of code.
std::map<std::string, std::vector<std::string>> pages()
{
    std::map<std::string, std::vector<std::string>> pages;
    for (const auto& entry : fs::directory_iterator(root)) {
        const std::string name = entry.path().filename().string();
        const bool isSource = entry.is_directory() && !name.starts_with('.') && !name.starts_with("build");
        for (const auto& path : isSource ? filesBelow(name, {".md"}) : std::vector{name}) {
            std::istringstream lines(path.ends_with(".md") ? read(path) : "");
            bool isCode = false;
            for (std::string line; std::getline(lines, line);) {
                isCode = isCode != line.starts_with("```");
                pages[path].push_back(isCode ? "" : line);
            }
        }
    }
    return pages;
}

// What a link to this heading has behind its #.
std::string anchorOf(const std::string& heading)
{
    std::string anchor = std::regex_replace(heading, std::regex("^#+ |[^\\w -]"), "");
    std::ranges::transform(anchor, anchor.begin(), [](unsigned char letter) {
        return static_cast<char>(letter == ' ' ? '-' : std::tolower(letter));
    });
    return anchor;
}

TEST(Tree, EveryLinkOfAPageLeadsToAFileAndToAHeading)
{
    const auto texts = pages();
    int links = 0;
    const std::regex link(R"(\]\((?![a-z]+:)([^)#\s]*)(#[^)\s]*)?\))");
    for (const auto& [path, lines] : texts) {
        for (const auto& line : lines) {
            for (std::sregex_iterator at(line.begin(), line.end(), link), end; at != end; ++at, ++links) {
                const auto file = at->str(1).empty() ? fs::path(path) : fs::path(path).parent_path() / at->str(1);
                const auto page = texts.find(file.lexically_normal().generic_string());
                const auto leadsTo = [&](const std::string& other) {
                    return other.starts_with('#') && '#' + anchorOf(other) == at->str(2);
                };
                EXPECT_TRUE(fs::exists(root / file)) << path << ": " << at->str();
                EXPECT_TRUE(!(*at)[2].matched || (page != texts.end() && std::ranges::any_of(page->second, leadsTo)))
                    << path << ": " << at->str();
            }
        }
    }
    EXPECT_GT(links, 50) << "the pages were not found";
}

} // namespace
} // namespace redislock::test
