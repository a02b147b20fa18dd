// The gate in front of a resource of this process.
#include "redislock/fencing.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

namespace redislock {
namespace {

constexpr FencingToken older{33};
constexpr FencingToken newer{34};

TEST(TokenGate, RefusesWhoComesAfterAGreaterToken)
{
    TokenGate gate;
    std::vector<int> written;
    EXPECT_TRUE(gate.admit(older, [&] { written.push_back(1); }));
    EXPECT_TRUE(gate.admit(older, [&] { written.push_back(2); }));
    EXPECT_TRUE(gate.admit(newer, [&] { written.push_back(3); }));
    EXPECT_FALSE(gate.admit(older, [&] { written.push_back(4); }));
    EXPECT_EQ(written, (std::vector{1, 2, 3}));
    EXPECT_EQ(gate.greatest(), newer);
    EXPECT_FALSE(TokenGate(newer).admit(older, [] { FAIL(); }));
}

TEST(TokenGate, AcceptsATokenOnceWhereThatIsWanted)
{
    TokenGate gate;
    EXPECT_TRUE(gate.admit(
        older, [] {}, TokenUse::once));
    EXPECT_FALSE(gate.admit(
        older, [] { FAIL(); }, TokenUse::once));
    EXPECT_TRUE(gate.admit(
        newer, [] {}, TokenUse::once));
}

TEST(TokenGate, AdmitsNobodyWithoutAToken)
{
    TokenGate gate;
    EXPECT_FALSE(gate.admit(FencingToken{}, [] { FAIL(); }));
}

TEST(TokenGate, HasSeenAWriteThatThrew)
{
    TokenGate gate;
    EXPECT_THROW(gate.admit(newer, [] { throw std::runtime_error("half done"); }), std::runtime_error);
    EXPECT_FALSE(gate.admit(older, [] { FAIL(); }));
    EXPECT_TRUE(gate.admit(newer, [] {}));
}

TEST(TokenGate, LetsNoOlderWriteBetweenACheckAndItsWrite)
{
    TokenGate gate;
    std::uint64_t last = 0; // without a lock of its own
    std::vector<std::jthread> writers;
    for (std::uint64_t first = 1; first <= 4; ++first) {
        writers.emplace_back([&, first] {
            for (std::uint64_t token = first; token < 20'000; token += 4) {
                gate.admit(FencingToken{token}, [&] {
                    EXPECT_LT(last, token);
                    last = token;
                });
            }
        });
    }
    writers.clear();
    EXPECT_EQ(FencingToken{last}, gate.greatest());
}

} // namespace
} // namespace redislock
