#include "scripts.hpp"

#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

namespace {

std::string read(std::string_view name)
{
    std::ifstream file(LUA_DIR "/" + std::string(name) + ".lua", std::ios::binary);
    if (!file.is_open()) {
        return "no such file";
    }
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

bool check(const redislock::detail::Script& script, std::string_view name, std::string_view text, std::string_view sha1)
{
    const bool good = script.name == name && script.text == text && script.sha1 == sha1;
    std::cout << name << ": " << script.text.size() << " bytes, " << (good ? "good" : "BAD") << '\n';
    return good;
}

} // namespace

int main()
{
    using namespace redislock::detail::scripts;
    const bool empty = check(oddEmpty, "odd/empty", read("odd/empty"), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    const bool everyByte =
        check(oddEveryByte, "odd/every_byte", read("odd/every_byte"), "ca5f218edf6f97a6ea4acd6267af25b1e512eabc");
    const bool inParts =
        check(oddInParts, "odd/in_parts", "first\nsecond; [[ \\n\nthird", "1fcf14145f73179e017bda328b12146906f7e1d4");
    return empty && everyByte && inParts ? 0 : 1;
}
