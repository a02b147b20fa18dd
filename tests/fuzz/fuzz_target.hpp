/// @file
/// The parts of a fuzz target: the function that libFuzzer, or the replay of the corpus, calls, and checks that end the
/// process if a rule is broken.
#pragma once

#include "redislock/random.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace redislock::test {

/// Ends the process when a rule is broken, in every build: assert() does nothing in a Release build.
inline void require(bool holds, const char* rule)
{
    if (!holds) {
        std::fprintf(stderr, "broken: %s\n", rule);
        std::abort();
    }
}

/// An input that is read from its beginning.
class Input {
public:
    Input(const std::uint8_t* data, std::size_t size)
        : rest_(size == 0 ? std::string_view() : std::string_view(reinterpret_cast<const char*>(data), size))
    {
    }

    /// The next byte; 0 at the end.
    std::uint8_t byte()
    {
        const auto taken = take(1);
        return taken.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(taken.front());
    }

    /// The next bytes, fewer at the end.
    std::string_view take(std::size_t count)
    {
        const auto taken = rest_.substr(0, count);
        rest_.remove_prefix(taken.size());
        return taken;
    }

    [[nodiscard]] std::string_view rest() const { return rest_; }
    [[nodiscard]] bool empty() const { return rest_.empty(); }

private:
    std::string_view rest_;
};

/// The size of the next segment of a stream: mostly small, sometimes all that is left.
inline std::size_t segmentSize(Random& random, std::size_t left)
{
    const auto draw = random.next();
    return draw % 8 == 0 ? left : std::min<std::size_t>(left, 1 + draw / 8 % 23);
}

} // namespace redislock::test
