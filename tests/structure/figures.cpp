#include "structure/figures.hpp"

#include "structure/declarations.hpp"

#include <algorithm>
#include <sstream>

namespace redislock::test {
namespace {

bool isCpp(std::string_view path)
{
    return path.ends_with(".hpp") || path.ends_with(".cpp");
}

std::string folderOf(const std::string& path)
{
    return path.substr(0, path.rfind('/'));
}

/// The figure of a class, if it is more than what needs none.
void addLarge(Figures& figures, const std::string& what, std::size_t figure, std::size_t many)
{
    if (figure > many) {
        figures[what] = std::max(figures[what], figure);
    }
}

void addClasses(Figures& figures, const std::vector<Declaration>& declarations)
{
    std::map<std::string, std::size_t> functions;
    std::map<std::string, std::size_t> members;
    for (const auto& each : declarations) {
        const auto colon = each.scope.rfind(':');
        const auto owner = colon == std::string::npos ? each.scope : each.scope.substr(colon + 1);
        functions[owner] += each.isInClass && each.kind == Declaration::Kind::function ? 1 : 0;
        members[owner] += each.isInClass && each.kind == Declaration::Kind::data ? 1 : 0;
    }
    for (const auto& [owner, count] : functions) {
        addLarge(figures, "functions of " + owner, count, manyFunctions);
    }
    for (const auto& [owner, count] : members) {
        addLarge(figures, "members of " + owner, count, manyMembers);
    }
}

} // namespace

Figures figuresOf(const std::vector<SourceFile>& product)
{
    Figures figures;
    auto& lines = figures["lines of the product"];
    auto& longOnes = figures["functions longer than " + std::to_string(longFunction) + " lines"];
    for (const auto& file : product) {
        lines += static_cast<std::size_t>(std::ranges::count(file.text, '\n'));
        ++figures["files in " + folderOf(file.path)];
        if (!isCpp(file.path)) {
            continue;
        }
        const auto declarations = declarationsOf(file.text);
        longOnes += static_cast<std::size_t>(std::ranges::count_if(declarations, [](const Declaration& each) {
            return each.kind == Declaration::Kind::function && each.lines > longFunction;
        }));
        addClasses(figures, declarations);
    }
    return figures;
}

Figures ceilingsIn(std::string_view text)
{
    Figures ceilings;
    std::istringstream lines{std::string(text)};
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line.substr(0, line.find(" # ")));
        std::size_t ceiling = 0;
        std::string name;
        if (!line.starts_with('#') && words >> ceiling && std::getline(words >> std::ws, name)) {
            ceilings[name] = ceiling;
        }
    }
    return ceilings;
}

std::string differences(const Figures& figures, const Figures& ceilings, std::size_t slack)
{
    std::ostringstream text;
    for (const auto& [name, figure] : figures) {
        const auto known = ceilings.find(name);
        const auto ceiling = known == ceilings.end() ? 0 : known->second;
        const auto below = name.starts_with("lines of") ? slack : 0;
        if (figure > ceiling) {
            text << figure << ' ' << name << ": the ceiling is " << ceiling << '\n';
        } else if (figure + below < ceiling) {
            text << figure << ' ' << name << ": lower the ceiling, which is " << ceiling << '\n';
        }
    }
    for (const auto& [name, ceiling] : ceilings) {
        if (!figures.contains(name)) {
            text << name << ": gone; its ceiling, " << ceiling << ", has to go, too\n";
        }
    }
    return text.str();
}

} // namespace redislock::test
