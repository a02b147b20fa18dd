#include "behaviour/lock_test.hpp"
#include "behaviour/worker.hpp"

#include <redislock/redislock.hpp>

#include <boost/asio/use_future.hpp>

#include <charconv>
#include <string>

namespace redislock::test {
namespace {

class Fenced : public LockTest {
protected:
    void TearDown() override
    {
        raw.command({"DEL", tokenKey});
        LockTest::TearDown();
    }

    static std::uint64_t number(FencingToken token) { return static_cast<std::uint64_t>(token); }
    std::uint64_t last() { return std::stoull(raw.command({"GET", tokenKey}).text()); }

    const std::string name = uniqueName();
    const std::string tokenKey = "redisson_lock_token:{" + name + "}";
    const Client client{config()};
    const FencedLock lock = client.getFencedLock(name);
    const FencedLock far = Client(config()).getFencedLock(name);
    Worker other;
};

TEST_F(Fenced, TokensGrowFromHoldToHoldAndFromClientToClient)
{
    const Client second(config());
    std::uint64_t before = 0;
    for (int i = 0; i < 20; ++i) {
        const auto token = number((i % 2 == 0 ? lock : second.getFencedLock(name)).lockAndGetToken());
        EXPECT_GT(token, before);
        EXPECT_EQ(token, last());
        before = token;
        EXPECT_EQ((i % 2 == 0 ? lock : second.getFencedLock(name)).unlock(), Unlocked::released);
    }
}

TEST_F(Fenced, TokensAreMicrosecondsOfTheServersClock)
{
    const auto time = raw.command({"TIME"});
    const auto token = number(lock.lockAndGetToken());
    EXPECT_GE(token, std::stoull(time.elements.at(0).text()) * 1'000'000);
    EXPECT_LT(token, (std::stoull(time.elements.at(0).text()) + 60) * 1'000'000);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

TEST_F(Fenced, TokensGoOnAboveAGreaterOneOfAnotherClientOrOfAClockThatWasAhead)
{
    for (const std::string ahead : {"9007199254740993", "18014398509481985", "99999999999999999"}) {
        raw.command({"SET", tokenKey, ahead});
        EXPECT_EQ(number(lock.lockAndGetToken()), std::stoull(ahead) + 1);
        EXPECT_EQ(lock.unlock(), Unlocked::released);
    }
    raw.command({"SET", tokenKey, "41"}); // a counter of Redisson's
    EXPECT_GT(number(lock.lockAndGetToken()), 1'000'000'000'000'000U);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

TEST_F(Fenced, NestedLevelsHaveTheTokenOfTheOutermost)
{
    const auto token = lock.lockAndGetToken();
    EXPECT_EQ(lock.lockAndGetToken(), token);
    EXPECT_EQ(lock.tryLockAndGetToken(1s, 1s), token);
    const LockGuard guard(lock);
    EXPECT_EQ(guard.token(), token);
    EXPECT_EQ(lock.holdCount(), 4U);
    EXPECT_EQ(number(token), last());
    for (int i = 0; i < 3; ++i) {
        lock.unlock();
    }
}

TEST_F(Fenced, TokenThatIsGoneIsMadeAnew)
{
    const auto token = lock.lockAndGetToken();
    raw.command({"DEL", tokenKey});
    EXPECT_GE(lock.lockAndGetToken(), token);
    lock.unlock();
    lock.unlock();
}

TEST_F(Fenced, GuardsHaveTheTokenUntilTheyEnd)
{
    LockGuard guard(lock);
    const auto token = guard.token();
    ASSERT_TRUE(token);
    EXPECT_EQ(number(*token), last());
    LockGuard moved = std::move(guard);
    EXPECT_EQ(moved.token(), token);
    EXPECT_FALSE(guard.token()); // NOLINT(bugprone-use-after-move): empty guards have none
    EXPECT_EQ(moved.release(), Unlocked::released);
    EXPECT_FALSE(moved.token());
    auto awaited = lock.asyncLock(boost::asio::use_future).get();
    EXPECT_GT(awaited.token(), token);
    EXPECT_FALSE(lock.asyncTryLock(boost::asio::use_future).get().token()) << "not acquired";
    EXPECT_EQ(awaited.release(), Unlocked::released);
    LockGuard plain(client.getLock(name));
    EXPECT_FALSE(plain.token()) << "of another kind";
    EXPECT_EQ(plain.release(), Unlocked::released);
}

TEST_F(Fenced, WaitersGetAGreaterTokenThanWhoTheyWaitFor)
{
    const auto token = lock.lockAndGetToken();
    const Client second(config());
    const auto wanted = second.getFencedLock(name);
    auto waiter = other.start([&] {
        const auto got = wanted.lockAndGetToken(5s);
        wanted.unlock();
        return got;
    });
    EXPECT_TRUE(eventually([&] { return listeners(name) == 1; }));
    EXPECT_EQ(lock.unlock(), Unlocked::released);
    EXPECT_GT(waiter.get(), token);
}

TEST_F(Fenced, RefusalsAndErrorsGiveNoToken)
{
    const LockGuard held(client.getLock(name));
    EXPECT_EQ(other.run([&] { return lock.tryLockAndGetToken(); }), std::nullopt);
    std::error_code ec;
    EXPECT_EQ(other.run([&] { return lock.tryLockAndGetToken(10ms, 1s, ec); }), std::nullopt);
    EXPECT_FALSE(ec);
    EXPECT_EQ(lock.lockAndGetToken(1ms, ec), FencingToken{});
    EXPECT_EQ(ec, Errc::invalidArgument);
    EXPECT_EQ(far.lockAndGetToken(ec), FencingToken{});
    EXPECT_EQ(ec, Errc::shutdown);
    EXPECT_THROW((void)far.lockAndGetToken(), LockError);
}

} // namespace
} // namespace redislock::test
