// Names and settings of the program that must not change the requests.
#include "fault/fault_test.hpp"

#include <clocale>
#include <locale>
#include <sstream>

namespace redislock::test {
namespace {

using StrangeLocale = FaultTest;
using PatternName = FaultTest;

/// Numbers as some people write them: 2.592.000.000,0
struct Grouped : std::numpunct<char> {
    char do_thousands_sep() const override { return '.'; }
    char do_decimal_point() const override { return ','; }
    std::string do_grouping() const override { return "\3"; }
};

TEST_F(StrangeLocale, ChangesNoNumberThatIsSent)
{
    const std::locale before = std::locale::global(std::locale(std::locale::classic(), new Grouped));
    std::ostringstream shown;
    shown << 2592000000;
    expectFault(shown.str() == "2.592.000.000", "a locale with other numbers");
    lock().lock(1234567ms);
    EXPECT_EQ(countInRedis(), "1");
    lock().lock(maxLease);
    EXPECT_EQ(countInRedis(), "2");
    EXPECT_GT(redis.pttl(name), maxLease - 1min);
    EXPECT_EQ(lock().unlock(), Unlocked::stillHeld);
    EXPECT_EQ(lock().unlock(), Unlocked::released);
    const auto sent = requestsFor(redisLockLock);
    ASSERT_EQ(sent.size(), 2U);
    EXPECT_EQ(sent[0].arguments.at(5), "1234567");
    EXPECT_EQ(sent[1].arguments.at(5), "2592000000");
    EXPECT_NE(Config::fromUrl("redis://h:6380?max_hold=1234567").maxHold, 0ms);
    std::locale::global(before);
}

TEST_F(PatternName, ListensToItselfAlone)
{
    const std::string pattern = "stock:*[a-z]?";
    const std::string fits = "stock:xay"; // a name that the pattern would match
    foreignLock(pattern, 60s);
    auto waiter = std::async(std::launch::async, [wanted = lockOf(pattern)] {
        return wanted.tryLock(20s, 20s) && wanted.unlock() == Unlocked::released;
    });
    ASSERT_TRUE(proxy.awaitRequests(request(redisLockLock), 2));
    lockOf(fits).lock(20s);
    EXPECT_EQ(lockOf(fits).unlock(), Unlocked::released);
    EXPECT_EQ(redis.command({"PUBLISH", detail::lockChannel(fits), "0"}).integer(), 0) << "others are listened to";
    EXPECT_EQ(redis.command({"PUBSUB", "NUMPAT"}).integer(), 0);
    EXPECT_EQ(proxy.requests("PSUBSCRIBE"), 0U);
    redis.command({"DEL", pattern});
    EXPECT_EQ(redis.command({"PUBLISH", detail::lockChannel(pattern), "0"}).integer(), 1);
    EXPECT_TRUE(waiter.get());
    expectFault(true, "a name that is a pattern");
}

} // namespace
} // namespace redislock::test
