#include "redislock/detail/logic/pass_on.hpp"
#include "unit/machine_script.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace redislock::detail {
namespace {

using namespace std::chrono_literals;
using test::at;

/// A situation in which all conditions for passing on are met; each case breaks one of them.
struct Situation {
    const char* name;
    EndingHold hold{
        .grantedAt = at(10s), .atRiskFrom = at(27s), .isRenewed = true, .isConfirmed = true, .isAnswered = true};
    NextCaller next{.isRenewed = true, .sleeps = true};
    bool mayFollow = true;
    TimePoint now = at(10s + 99ms);
};

bool mayPassOn(const Situation& each)
{
    return mayPassOn(each.hold, each.next, each.mayFollow, each.now);
}

Situation spoilt(const char* name, void (*spoil)(Situation&))
{
    Situation each{name};
    spoil(each);
    return each;
}

TEST(MayPassOn, WhatIsConfirmedAndNotAtRiskToWhoSleepsWithinTheTurn)
{
    EXPECT_TRUE(mayPassOn(Situation{"nothing is spoilt"}));
}

TEST(MayPassOn, NothingElse)
{
    const Situation cases[] = {
        spoilt("fixed lease", [](Situation& c) { c.hold.isRenewed = false; }),
        spoilt("held too long", [](Situation& c) { c.hold.isHeldTooLong = true; }),
        spoilt("member of a group", [](Situation& c) { c.hold.isMember = true; }),
        spoilt("a count is under way", [](Situation& c) { c.hold.isConfirmed = false; }),
        spoilt("a request without an answer", [](Situation& c) { c.hold.isAnswered = false; }),
        spoilt("at risk", [](Situation& c) { c.hold.atRiskFrom = c.now; }),
        spoilt("to a fixed lease", [](Situation& c) { c.next.isRenewed = false; }),
        spoilt("to a member of a group", [](Situation& c) { c.next.isMember = true; }),
        spoilt("to who asks itself", [](Situation& c) { c.next.sleeps = false; }),
        spoilt("to who leaves", [](Situation& c) { c.next.leaves = true; }),
        spoilt("the turn is over", [](Situation& c) { c.mayFollow = false; }),
    };
    for (const auto& each : cases) {
        EXPECT_FALSE(mayPassOn(each)) << each.name;
    }
}

TEST(MayPassOn, NotLongerThanATenthOfASecondAfterRedisGrantedIt)
{
    Situation each{"in time"};
    each.now = each.hold.grantedAt + longestPassing - 1ns;
    EXPECT_TRUE(mayPassOn(each));
    each.now += 1ns;
    EXPECT_FALSE(mayPassOn(each));
}

} // namespace
} // namespace redislock::detail
