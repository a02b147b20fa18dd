// CATALOGUE.md and the tests name each other.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

namespace redislock::test {
namespace {

namespace fs = std::filesystem;

const fs::path tests = REDISLOCK_TESTS_DIR;

std::string read(const fs::path& path)
{
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// All matches of a pattern with two groups, as "first.second".
std::set<std::string> found(const std::string& text, const std::string& pattern)
{
    std::set<std::string> names;
    const std::regex expression(pattern);
    for (std::sregex_iterator at(text.begin(), text.end(), expression), end; at != end; ++at) {
        names.insert((*at)[1].str() + "." + (*at)[2].str());
    }
    return names;
}

std::set<std::string> testsBelow(const fs::path& folder)
{
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
        if (entry.path().extension() == ".cpp") {
            names.merge(found(read(entry.path()), R"(\n(?:TYPED_)?TEST(?:_[FP])?\((\w+),\s+(\w+)\))"));
        }
    }
    return names;
}

TEST(Catalogue, NamesEveryTestOfThisFolderAndNoneThatDoesNotExist)
{
    const auto named = found(read(tests / "fault" / "CATALOGUE.md"), R"(`([A-Z]\w+)\.(\w+)`)");
    const auto all = testsBelow(tests);
    EXPECT_GT(named.size(), 100U);
    for (const auto& name : named) {
        EXPECT_TRUE(all.contains(name)) << name << " does not exist";
    }
    for (const auto& name : testsBelow(tests / "fault")) {
        EXPECT_TRUE(named.contains(name) || name.starts_with("Catalogue.")) << name << " is not in the catalogue";
    }
}

} // namespace
} // namespace redislock::test
