// The layers of the library as rules about `#include` lines. Paths are relative to the project's folder.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace redislock::test {

struct Include {
    std::string target; ///< the text between the quotes or angle brackets
    int line;           ///< from 1
};

/// The `#include` lines of a source text, in order.
std::vector<Include> includesOf(std::string_view text);

/// Why the file may not include the target; empty when it may.
std::string violation(std::string_view file, std::string_view target);

/// "redis_lock/force_unlock" -> "redisLockForceUnlock": the name of an embedded script.
std::string scriptIdentifier(std::string_view name);

} // namespace redislock::test
