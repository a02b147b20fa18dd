/// @file
/// Assertions about the library's own state, never about what a server or a user may do.
#pragma once

#if defined(REDISLOCK_ASSERTIONS) && REDISLOCK_ASSERTIONS

#include <cstdio>
#include <cstdlib>

namespace redislock::detail {

/// Ends the process: a caller inside the library broke a rule.
[[noreturn]] inline void assertionFailed(const char* what, const char* file, int line) noexcept
{
    std::fprintf(stderr, "%s:%d: broken: %s\n", file, line, what);
    std::abort();
}

} // namespace redislock::detail

/// Checks a rule in builds with `REDISLOCK_ASSERTIONS`, as those of the tests are; elsewhere does nothing.
#define REDISLOCK_ASSERT(rule) ((rule) ? void() : ::redislock::detail::assertionFailed(#rule, __FILE__, __LINE__))

#else
#define REDISLOCK_ASSERT(rule) void()
#endif
