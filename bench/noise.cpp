#include "noise.hpp"

#include "measurement.hpp"

#include <cstdint>

namespace redislock::bench {

double fixedWork()
{
    constexpr int rounds = 10'000'000; // some 10 ms
    const auto begin = Clock::now();
    std::uint64_t state = 88172645463325252U;
    for (int i = 0; i < rounds; ++i) {
        state ^= state << 13U;
        state ^= state >> 7U;
        state ^= state << 17U;
    }
    // the result must be used, or the compiler removes the work; it is never zero
    return state == 0 ? 0 : microseconds(Clock::now() - begin) / 1000;
}

} // namespace redislock::bench
