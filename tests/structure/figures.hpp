// The size of the house in figures, and their ceilings.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::test {

/// By name: "lines of the product", "files in src/core", "functions of Engine" …
using Figures = std::map<std::string, std::size_t>;

/// A file of the project, by its path.
struct SourceFile {
    std::string path;
    std::string text;
};

constexpr std::size_t longFunction = 40;  ///< functions with more lines are counted
constexpr std::size_t manyFunctions = 20; ///< classes with more functions have a figure of their own
constexpr std::size_t manyMembers = 12;   ///< so have classes with more data members

/// The figures of the product: its lines, the files of each room (a folder), long functions, and large classes.
Figures figuresOf(const std::vector<SourceFile>& product);

/// Reads a file of ceilings: a line each, `<figure> <name>`, then perhaps ` # ` with what pays for it. Lines that begin
/// with `#` are remarks.
Figures ceilingsIn(std::string_view text);

/// Which figures are not what their ceilings say, a line each: those that grew, and those that fell and whose ceiling
/// must follow. Lines may be @p slack below their ceilings. Empty if all is well.
std::string differences(const Figures& figures, const Figures& ceilings, std::size_t slack);

} // namespace redislock::test
