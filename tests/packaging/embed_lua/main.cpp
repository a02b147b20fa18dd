#include "scripts.hpp"

#include <iostream>

namespace {

bool check(const redislock::detail::Script& script, std::string_view name, std::string_view text, std::string_view sha1)
{
    const bool good = script.name == name && script.text() == text && script.sha1 == sha1;
    std::cout << script.name << ", " << script.sha1 << (good ? ", good:\n" : ", BAD:\n") << script.text();
    return good;
}

} // namespace

int main()
{
    using namespace redislock::detail::scripts;
    const bool strings = check(oddStrings, "odd/strings", R"(local a = '-- no comment' .. "it's --"
local b = 'it\'s -- "' .. "\"--\\"
local c = a - -1 ;
if t[a[1]] ~= '' then
return '$ENV{HOME} @PATH@ ${a} ü \n \\1;'
end
)",
                               "9fe9ee5cef9bdfb99f3560e878ce177730919d30");
    const bool inParts =
        check(oddInParts, "odd/in_parts", "first\nsecond; \\n\nlast\n", "893928df3e29bdceca58049e350fab15830aafe3");
    return strings && inParts ? 0 : 1;
}
