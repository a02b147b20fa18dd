#include "scripts.hpp"

#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

namespace {

bool check(const redislock::detail::Script& script, std::string_view name, std::string_view sha1)
{
    std::ifstream file(LUA_DIR "/" + std::string(name) + ".lua", std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    const bool good = file.is_open() && script.name == name && script.text == text && script.sha1 == sha1;
    std::cout << name << ": " << script.text.size() << " bytes, " << (good ? "good" : "BAD") << '\n';
    return good;
}

} // namespace

int main()
{
    using namespace redislock::detail::scripts;
    const bool empty = check(oddEmpty, "odd/empty", "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    const bool everyByte = check(oddEveryByte, "odd/every_byte", "ca5f218edf6f97a6ea4acd6267af25b1e512eabc");
    return empty && everyByte ? 0 : 1;
}
