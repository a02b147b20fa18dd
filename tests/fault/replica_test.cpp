// An address that leads to a master or to a replica, which is behind.
#include "fault/counter_fault.hpp"

#include <boost/asio/use_future.hpp>

namespace redislock::test {
namespace {

/// The replica knows of no lock and no counter of these tests.
class MisledClient : public CounterFault {
protected:
    MisledClient()
    {
        config.connectTimeout = 5s; // so that no connection is given up for another reason
        config.commandTimeout = 5s;
        config.unreachableAfter = 20s;
        config.watchdogTimeout = 60s;
        demote();
    }

    /// Nobody listens there. The replica knows nothing then.
    void demote()
    {
        for (const RawRedis::Arguments& each :
             {RawRedis::Arguments{"MULTI"}, {"FLUSHALL"}, {"REPLICAOF", "127.0.0.1", "1"}, {"EXEC"}}) {
            ofReplica.command(each);
        }
    }
    /// The replica, a master for now, gets all that the master has: a master that lacked a lock would be believed.
    void copyAll()
    {
        const auto port = std::to_string(replica.port());
        RawRedis::Arguments copy{"MIGRATE", "127.0.0.1", port, "", "0", "5000", "COPY", "REPLACE", "KEYS"};
        for (const auto& key : redis.command({"KEYS", "*"}).elements) {
            copy.push_back(key.text());
        }
        expectFault(copy.back() == "KEYS" || redis.command(copy).text() == "OK", "a copy");
    }
    void promote() { ofReplica.command({"REPLICAOF", "NO", "ONE"}); }

    std::uint64_t refusals() { return counted("errorstats", "errorstat_READONLY:count="); }
    /// How often the replica was asked what it is.
    std::uint64_t greetings() { return counted("commandstats", "cmdstat_hello:calls="); }

    /// Leads all connections of the client to the replica, which is a master until they are made, and the next ones to
    /// the master.
    void mislead()
    {
        promote();
        copyAll();
        proxy.setUpstream(replica);
        proxy.closeAll();
        client().connect();
        client().asyncConnect(asio::use_future).get();
        demote();
        proxy.setUpstream(server);
    }

    /// The answer to a question that the replica is asked first.
    template <class Ask>
    auto misled(Ask ask)
    {
        const auto before = refusals();
        mislead();
        auto answer = ask();
        expectFault(refusals() > before, "READONLY");
        return answer;
    }

    /// @param make makes a lock of a new client: one that met a replica a moment ago connects after a pause.
    template <class Make>
    void expectTrueAnswers(Make make)
    {
        using Kind = decltype(make());
        const std::function<void(const Kind&)> questions[] = {
            [&](const Kind& held) { EXPECT_TRUE(misled([&] { return held.isLocked(); })); },
            [&](const Kind& held) { EXPECT_GT(misled([&] { return held.remainingTimeToLive(); }), 0ms); },
            [&](const Kind& held) { EXPECT_TRUE(misled([&] { return held.asyncIsLocked(asio::use_future).get(); })); },
            [&](const Kind& held) {
                EXPECT_GT(misled([&] { return held.asyncRemainingTimeToLive(asio::use_future).get(); }), 0ms);
            },
            [&](const Kind& held) { EXPECT_TRUE(misled([&] { return held.tryLock(5s, 20s); })); }, // nested
            [&](const Kind& held) {
                held.lock(20s);
                EXPECT_EQ(misled([&] { return held.unlock(); }), Unlocked::stillHeld);
            },
            [&](const Kind& held) {
                EXPECT_EQ(misled([&] { return held.unlock(); }), Unlocked::released);
                EXPECT_FALSE(redis.exists(name));
            },
            [&](const Kind& held) {
                EXPECT_TRUE(misled([&] { return held.forceUnlock(); }));
                EXPECT_FALSE(redis.exists(name));
            },
            [&](const Kind& held) {
                EXPECT_TRUE(misled([&] { return held.asyncForceUnlock(asio::use_future).get(); }));
                EXPECT_FALSE(redis.exists(name));
            },
            [&](const Kind& held) {
                held.unlock();
                auto guard = held.asyncLock(Lease(20s), asio::use_future).get();
                EXPECT_EQ(misled([&] { return guard.asyncRelease(asio::use_future).get(); }), Unlocked::released);
                EXPECT_FALSE(redis.exists(name));
            },
        };
        for (const auto& question : questions) {
            SCOPED_TRACE(&question - questions);
            forgetClient();
            const Kind held = make();
            held.lock(20s);
            question(held);
            redis.command({"FLUSHALL"});
        }
    }

    testing::RedisServer replica;
    RawRedis ofReplica{replica};

private:
    std::uint64_t counted(std::string_view section, const std::string& field)
    {
        const auto statistics = ofReplica.command({"INFO", section}).text();
        const auto at = statistics.find(field);
        return at == std::string::npos ? 0 : std::strtoull(statistics.c_str() + at + field.size(), nullptr, 10);
    }
};

TEST_F(MisledClient, BelievesNoReplicaThatItsLockIsFree)
{
    expectTrueAnswers([this] { return lock(); });
    expectTrueAnswers([this] { return client().getFencedLock(name); });
    expectTrueAnswers([this] { return client().getFairLock(name); });
    expectTrueAnswers([this] { return client().getReadWriteLock(name).writeLock(); });
    expectTrueAnswers([this] { return client().getReadWriteLock(name).readLock(); });
}

TEST_F(MisledClient, BelievesNoReplicaThatALockIsTaken)
{
    promote();
    ofReplica.command({"HSET", name, foreigner, "1"});
    EXPECT_TRUE(misled([this] { return lock().tryLock(); }));
    EXPECT_EQ(misled([this] { return lock().unlock(); }), Unlocked::released);
}

TEST_F(MisledClient, BelievesNoReplicaThatMembersAreGone)
{
    const MultiLock both(std::vector{lock(), lockOf("another")});
    both.lock(20s);
    EXPECT_EQ(misled([&] { return both.unlock(); }), Unlocked::released);
    EXPECT_EQ(redis.command({"DBSIZE"}).integer(), 0);
}

TEST_F(MisledClient, LosesNoHold)
{
    config.watchdogTimeout = 9s;
    const RedisLock first = lock();
    const RedisLock second = lockOf("another"); // renewed together with the first
    const auto reader = client().getReadWriteLock("read").readLock();
    first.lock();
    second.lock();
    reader.lock();
    proxy.setUpstream(replica);
    proxy.closeAll();
    const auto before = greetings();
    expectFault(eventually([&] { return greetings() > before; }), "a replica");
    proxy.setUpstream(server);
    EXPECT_TRUE(seen->await(Event::renewed, 3));
    EXPECT_EQ(seen->count(Event::lost), 0U);
    EXPECT_EQ(first.unlock(), Unlocked::released);
    EXPECT_EQ(second.unlock(), Unlocked::released);
    EXPECT_EQ(reader.unlock(), Unlocked::released);
}

TEST_F(MisledClient, BelievesNoReplicaThatALatchIsOpenOrPermitsAreGone)
{
    const std::string permit = "66666666666666666666666666666666";
    const std::function<void()> questions[] = {
        [&] { EXPECT_FALSE(misled([&] { return client().getCountDownLatch(counter).wait(oneAttempt); })); },
        [&] {
            EXPECT_FALSE(misled(
                [&] { return client().getCountDownLatch(counter).asyncWait(oneAttempt, asio::use_future).get(); }));
        },
        [&] { EXPECT_EQ(misled([&] { return client().getCountDownLatch(counter).getCount(); }), 2); },
        [&] { EXPECT_EQ(misled([&] { return client().getSemaphore(counter).availablePermits(); }), 2); },
        [&] { EXPECT_TRUE(misled([&] { return client().getSemaphore(counter).tryAcquire(); })); },
        [&] {
            EXPECT_TRUE(
                misled([&] { return client().getSemaphore(counter).asyncTryAcquire(1, asio::use_future).get(); }));
            set(2);
        },
        [&] {
            const auto permits = client().getPermitExpirableSemaphore(counter);
            EXPECT_TRUE(misled([&] { return permits.tryAcquire(oneAttempt, 60s); }));
            redis.command({"ZADD", timeouts, "922337203685477", std::string(16, '\x66')});
        },
        [&] {
            const auto permits = client().getPermitExpirableSemaphore(counter);
            EXPECT_EQ(misled([&] { return permits.acquiredPermits(); }), 1);
        },
        [&] {
            const auto permits = client().getPermitExpirableSemaphore(counter);
            EXPECT_TRUE(misled([&] { return permits.updateLeaseTime(permit, 30s); }));
        },
        [&] {
            const auto permits = client().getPermitExpirableSemaphore(counter);
            EXPECT_TRUE(misled([&] { return permits.getLeaseTime(permit).has_value(); }));
        },
    };
    set(2);
    for (const auto& question : questions) {
        SCOPED_TRACE(&question - questions);
        forgetClient();
        question();
    }
}

TEST_F(MisledClient, IsToldWhereItFindsNoMaster)
{
    config.unreachableAfter = 1s;
    proxy.setUpstream(replica);
    std::error_code ec;
    EXPECT_FALSE(lock().isLocked(ec));
    EXPECT_EQ(ec, Cause::readOnly);
    EXPECT_EQ(client().getCountDownLatch(counter).getCount(ec), 0);
    EXPECT_EQ(ec, Cause::readOnly);
    EXPECT_FALSE(client().getCountDownLatch(counter).wait(200ms, ec));
    EXPECT_EQ(ec, Cause::readOnly);
    EXPECT_FALSE(client().getSemaphore(counter).tryAcquire(1, 200ms, ec));
    EXPECT_EQ(ec, Cause::readOnly);
    EXPECT_FALSE(lock().tryLock(ec));
    EXPECT_EQ(ec, Cause::readOnly);
    expectFault(greetings() > 0, "a replica");
    proxy.setUpstream(server);
    forgetClient();
}

} // namespace
} // namespace redislock::test
