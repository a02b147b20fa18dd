// What a user who makes a common mistake is told: what was wrong, and of what.
#include "behaviour/lock_test.hpp"

#include <redislock/redislock.hpp>

#include <gmock/gmock.h>

#include <functional>
#include <string>

namespace redislock::test {
namespace {

using ::testing::HasSubstr;

class Messages : public LockTest {
protected:
    struct Mistake {
        const char* name;
        std::function<void()> make;
        Errc code;
        const char* told; ///< a part of the message, besides the name
    };

    void expectTold(const Mistake& mistake)
    {
        SCOPED_TRACE(mistake.name);
        try {
            mistake.make();
            ADD_FAILURE() << "nothing was thrown";
        } catch (const LockError& error) {
            EXPECT_EQ(error.code(), mistake.code);
            EXPECT_THAT(error.what(), HasSubstr(mistake.told));
            EXPECT_THAT(error.what(), HasSubstr(name));
        }
    }

    const std::string name = uniqueName();
    const Client client{config()};
};

TEST_F(Messages, ShowTheArgumentThatIsOutOfItsRange)
{
    const auto lock = client.getLock(name);
    const auto semaphore = client.getSemaphore(name);
    const auto permits = client.getPermitExpirableSemaphore(name);
    const Mistake mistakes[] = {
        {"zero", [&] { lock.lock(0ms); }, Errc::invalidArgument, "a lease of 0 ms (10 ms to 30 days)"},
        {"short", [&] { (void)lock.tryLock(1s, 5ms); }, Errc::invalidArgument, "a lease of 5 ms"},
        {"guard", [&] { const LockGuard held(lock, 1ms); }, Errc::invalidArgument, "a lease of 1 ms"},
        {"token", [&] { client.getFencedLock(name).lockAndGetToken(-1ms); }, Errc::invalidArgument, "a lease of -1 ms"},
        {"permit", [&] { (void)permits.acquire(0ms); }, Errc::invalidArgument, "a lease of 0 ms"},
        {"renewed", [&] { (void)permits.acquire(keepRenewing); }, Errc::invalidArgument, "the lease keepRenewing"},
        {"set", [&] { semaphore.trySetPermits(-1); }, Errc::invalidArgument, "with -1"},
        {"time", [&] { semaphore.trySetPermits(1, 0ms); }, Errc::invalidArgument,
         "1 permits (0 to 2147483647) for 0 ms"},
        {"take", [&] { semaphore.acquire(-2); }, Errc::invalidArgument, "with -2"},
        {"latch", [&] { client.getCountDownLatch(name).trySetCount(0); }, Errc::invalidArgument, "with 0"},
    };
    const auto before = scriptCalls();
    for (const auto& mistake : mistakes) {
        expectTold(mistake);
    }
    EXPECT_EQ(scriptCalls(), before) << "nothing is sent";
}

TEST_F(Messages, SayWhatIsInTheWay)
{
    const auto readWrite = client.getReadWriteLock(name);
    readWrite.lock_shared();
    const Mistake mistakes[] = {
        {"upgrade", [&] { readWrite.lock(); }, Errc::wouldDeadlock, "must stop reading before it can write"},
        {"upgrade of a guard", [&] { const LockGuard held(readWrite.writeLock()); }, Errc::wouldDeadlock, "no upgrade"},
        {"kind", [&] { client.getLock(name).lock(); }, Errc::wrongType, "a lock of another kind"},
        {"no hold", [&] { readWrite.unlock(); }, Errc::notHeld, "no hold to end"},
    };
    for (const auto& mistake : mistakes) {
        expectTold(mistake);
    }
    readWrite.unlock_shared();
}

TEST_F(Messages, SayWhichHoldOfTheThreadIsInTheWay)
{
    const auto held = client.getNonReentrantLock(name);
    held.lock();
    const Mistake mistakes[] = {
        {"again", [&] { held.lock(); }, Errc::wouldDeadlock, "which this thread holds already"},
        {"otherwise", [&] { client.getFairLock(name).lock(); }, Errc::wouldDeadlock,
         "which this thread holds by a lock of another kind"},
    };
    for (const auto& mistake : mistakes) {
        expectTold(mistake);
    }
    EXPECT_EQ(held.unlock(), Unlocked::released);
}

TEST_F(Messages, SayThatAReadOnlyServerRefusesWhateverIsAsked)
{
    testing::RedisServer replica;
    RawRedis operatorOf(replica);
    operatorOf.command({"REPLICAOF", "127.0.0.1", "1"});
    Config config = Config::fromUrl(replica.url());
    config.unreachableAfter = 300ms;
    const Client refused(config);
    const Mistake mistakes[] = {
        {"lock", [&] { refused.getLock(name).lock(); }, Errc::serverRefused, "read-only"},
        {"set", [&] { refused.getSemaphore(name).trySetPermits(1); }, Errc::serverRefused, "read-only"},
        {"permits", [&] { refused.getPermitExpirableSemaphore(name).setPermits(1); }, Errc::serverRefused, "read-only"},
        {"count", [&] { refused.getCountDownLatch(name).countDown(); }, Errc::serverRefused, "read-only"},
    };
    for (const auto& mistake : mistakes) {
        expectTold(mistake);
    }
}

} // namespace
} // namespace redislock::test
