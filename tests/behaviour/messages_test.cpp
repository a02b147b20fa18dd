// The messages for a user who makes a common mistake: what was wrong, and with which lock or server.
#include "behaviour/lock_test.hpp"

#include <redislock/redislock.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/system/system_error.hpp>
#include <gmock/gmock.h>

#include <exception>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace redislock::test {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

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

    /// A server that is not there.
    static Config nowhere()
    {
        Config config = LockTest::config();
        config.endpoint.unixSocket = server().folder() / "nobody.sock";
        config.tls.reset();
        config.sentinels.reset();
        config.unreachableAfter = 300ms;
        return config;
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
        {"guard", [&] { const LockGuard held(lock, Lease(1ms)); }, Errc::invalidArgument, "a lease of 1 ms"},
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
        {"upgrade", [&] { readWrite.lock(); }, Errc::wouldDeadlock,
         "this thread holds the lock to read; it must stop reading before it can write"},
        {"upgrade of a guard", [&] { const LockGuard held(readWrite.writeLock()); }, Errc::wouldDeadlock,
         "holds the lock to read; it must stop reading"},
        {"kind", [&] { client.getLock(name).lock(); }, Errc::wrongType, "a lock of another kind"},
        {"no hold", [&] { readWrite.unlock(); }, Errc::notHeld, "the caller does not hold the lock"},
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
        {"again", [&] { held.lock(); }, Errc::wouldDeadlock,
         "this thread holds it already, and the lock is not re-entrant"},
        {"otherwise", [&] { client.getFairLock(name).lock(); }, Errc::wouldDeadlock,
         "this thread holds the name by a lock of another kind"},
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
        {"lock", [&] { refused.getLock(name).lock(); }, Errc::serverRefused, "the server is a read-only replica"},
        {"set", [&] { refused.getSemaphore(name).trySetPermits(1); }, Errc::serverRefused, "read-only"},
        {"permits", [&] { refused.getPermitExpirableSemaphore(name).setPermits(1); }, Errc::serverRefused, "read-only"},
        {"count", [&] { refused.getCountDownLatch(name).countDown(); }, Errc::serverRefused, "read-only"},
    };
    for (const auto& mistake : mistakes) {
        expectTold(mistake);
    }
}

/// @return the message of the exception in a coroutine that awaits @p awaitable.
template <class Awaitable>
std::string thrownBy(Awaitable awaitable)
{
    boost::asio::io_context io;
    std::string what = "nothing was thrown";
    boost::asio::co_spawn(io, std::move(awaitable), [&](const std::exception_ptr& thrown, auto&&...) {
        try {
            if (thrown) {
                std::rethrow_exception(thrown);
            }
        } catch (const boost::system::system_error& error) {
            EXPECT_TRUE(error.code() == Cause::socketNotFound && error.code() == Errc::unreachable) << error.what();
            what = error.what();
        }
    });
    io.run();
    return what;
}

/// The same for an operation that the coroutine awaits without a token.
template <class Operation>
boost::asio::awaitable<void> awaits(Operation operation)
{
    (void)co_await std::move(operation);
}

TEST_F(Messages, OfCoroutinesAndFuturesNameTheCallAndTheServerToo)
{
    using boost::asio::use_awaitable;
    const Client lost(nowhere());
    const auto lock = lost.getLock(name);
    const auto failed = [&](const std::string& verb) {
        return verb + " \"" + name + "\" at " + nowhere().endpoint.str() +
               ": there is no socket at that path: No such file or directory; start the server, or correct the path";
    };
    EXPECT_EQ(thrownBy(lock.asyncLock(use_awaitable)), failed("asyncLock"));
    EXPECT_EQ(thrownBy(lock.asyncTryLock(use_awaitable)), failed("asyncTryLock"));
    EXPECT_EQ(thrownBy(lock.asyncIsLocked(use_awaitable)), failed("asyncIsLocked"));
    EXPECT_EQ(thrownBy(asyncExecuteWithLock(
                  lock, 0ms, 10s, [] {}, use_awaitable)),
              failed("asyncExecuteWithLock"));
    EXPECT_EQ(thrownBy(lost.getSemaphore(name).asyncAcquire(1, use_awaitable)), failed("asyncAcquire"));
    EXPECT_EQ(thrownBy(lost.getPermitExpirableSemaphore(name).asyncAvailablePermits(use_awaitable)),
              failed("asyncAvailablePermits"));
    EXPECT_EQ(thrownBy(lost.getCountDownLatch(name).asyncWait(waitForever, use_awaitable)), failed("asyncWait"));
#if BOOST_VERSION < 108700
    EXPECT_EQ(thrownBy(awaits(lock.asyncLock())), failed("asyncLock"));
    EXPECT_EQ(thrownBy(awaits(lock.asyncRemainingTimeToLive())), failed("asyncRemainingTimeToLive"));
    EXPECT_EQ(thrownBy(awaits(lost.getSemaphore(name).asyncTryAcquire(1, 0ms))), failed("asyncTryAcquire"));
#endif
    try {
        (void)lock.asyncTryLock(boost::asio::use_future).get();
        ADD_FAILURE() << "nothing was thrown";
    } catch (const boost::system::system_error& error) {
        EXPECT_EQ(error.what(), failed("asyncTryLock"));
    }
}

TEST_F(Messages, OfGroupsQuoteTheMemberThatFailed)
{
    Config here = config();
    here.unreachableAfter = nowhere().unreachableAfter; // a group tries for as long as one member would
    const Client found(here);
    const Client lost(nowhere());
    const MultiLock both({found.getLock(name), lost.getLock(name)});
    try {
        both.lock();
        ADD_FAILURE() << "nothing was thrown";
    } catch (const LockError& error) {
        EXPECT_EQ(error.code(), Cause::socketNotFound) << error.what();
        EXPECT_THAT(error.what(), StartsWith("lock MultiLock of \"" + name));
        EXPECT_THAT(error.what(), EndsWith("there is no socket at that path: " + nowhere().endpoint.str() +
                                           ": No such file or directory; start the server, or correct the path"));
    }
}

/// A server of its own, in a state in which it refuses locks.
class RefusalMessages : public Messages {
protected:
    /// Expects a lock, and a wait for one, to be refused for this cause, and the server to be quoted, with these words.
    void expectRefused(Cause cause, const std::vector<std::string>& said, Config config)
    {
        config.unreachableAfter = 300ms;
        const Client refused(config);
        const std::string start = " \"" + name + "\" at " + config.endpoint.str() + ": ";
        const std::string message = make_error_code(cause).message();
        const std::string end = message.substr(0, message.find("; ")) + ": \"";
        const std::pair<const char*, std::function<void(const RedisLock&)>> calls[] = {
            {"tryLock", [](const RedisLock& lock) { (void)lock.tryLock(); }},
            {"lock", [](const RedisLock& lock) { lock.lock(); }},
            {"isLocked", [](const RedisLock& lock) { (void)lock.isLocked(); }},
        };
        for (const auto& [verb, call] : calls) {
            if (cause != Cause::loading && std::string_view(verb) == "isLocked") {
                continue; // such a server may answer questions all the same
            }
            try {
                call(refused.getLock(name));
                ADD_FAILURE() << "nothing was thrown by " << verb;
            } catch (const LockError& error) {
                EXPECT_EQ(error.code(), cause) << error.what();
                EXPECT_EQ(error.code(), errcOf(cause)) << error.what();
                EXPECT_THAT(error.what(), StartsWith(verb + start + end));
                for (const auto& words : said) {
                    EXPECT_THAT(error.what(), HasSubstr(words));
                }
            }
        }
    }
    void expectRefused(Cause cause, const std::vector<std::string>& said)
    {
        expectRefused(cause, said, Config::fromUrl(own.url()));
    }

    testing::RedisServer own;
    RawRedis admin{own};
};

/// The rules of an ACL that a message tells the operator to grant.
std::string rulesIn(const std::string& message)
{
    constexpr std::string_view before = "; grant ";
    const auto at = message.find(before);
    return at == message.npos ? std::string()
                              : message.substr(at + before.size(), message.find(';', at + 1) - at - before.size());
}

/// A lock works for a user to whom nothing was granted but what the messages name.
TEST_F(RefusalMessages, NameTheRightThatIsMissing)
{
    const std::string named = name + "[7]";
    Config config = Config::fromUrl(own.url());
    config.username = "orders";
    config.password = "secret";
    const std::pair<const char*, std::function<void(const Client&)>> uses[] = {
        {"lock",
         [&](const Client& user) {
             user.getLock(named).lock();
             EXPECT_EQ(user.getLock(named).unlock(), Unlocked::released);
         }},
        {"fenced lock", [&](const Client& user) { user.getFencedLock(named).lock(); }},
        {"questions", [&](const Client& user) { (void)user.getLock(named).isLocked(); }},
        {"fair lock", [&](const Client& user) { user.getFairLock(named).lock(); }},
        {"reader", [&](const Client& user) { user.getReadWriteLock(named).readLock().lock(); }},
        {"writer", [&](const Client& user) { user.getReadWriteLock(named).writeLock().lock(); }},
        {"semaphore",
         [&](const Client& user) {
             const auto semaphore = user.getSemaphore(named);
             semaphore.trySetPermits(20);
             semaphore.acquire();
             semaphore.release();
         }},
        {"leases",
         [&](const Client& user) {
             const auto semaphore = user.getPermitExpirableSemaphore(named);
             semaphore.trySetPermits(20);
             semaphore.release(semaphore.acquire(10s).id());
         }},
        {"latch",
         [&](const Client& user) {
             const auto latch = user.getCountDownLatch(named);
             latch.trySetCount(1);
             latch.countDown();
             latch.wait();
         }},
    };
    for (const auto& [use, act] : uses) {
        SCOPED_TRACE(use);
        admin.command({"FLUSHALL"});
        admin.command({"ACL", "SETUSER", "orders", "reset", "on", ">secret", "+@connection", "+del", "+hget", "+hdel"});
        std::string granted = " ";
        for (int rights = 0;; ++rights) {
            ASSERT_LT(rights, 40) << granted;
            std::string message;
            Client user(config);
            try {
                act(user);
            } catch (const LockError& error) {
                EXPECT_EQ(error.code(), Errc::permissionDenied) << error.what();
                message = error.what();
            }
            user.shutdown(50ms); // a place in a queue is given back until that is allowed
            if (message.empty()) {
                EXPECT_GT(rights, 2) << granted;
                break;
            }
            EXPECT_THAT(message, HasSubstr("; redislock doctor \"" + named + "\" lists all missing rights"));
            EXPECT_THAT(message, HasSubstr("\" to EVAL"));
            const std::string rules = rulesIn(message);
            ASSERT_TRUE(!rules.empty() && granted.find(' ' + rules + ' ') == granted.npos) << message << granted;
            std::vector<std::string> grant{"ACL", "SETUSER", "orders"};
            for (std::size_t from = 0, to = 0; to != rules.npos; from = to + 1) {
                to = rules.find(' ', from);
                grant.push_back(rules.substr(from, to - from));
            }
            EXPECT_EQ(admin.command(grant).text(), "OK") << message;
            granted += rules + ' ';
        }
        EXPECT_THAT(granted, HasSubstr("~" + name + "?7?"));
        EXPECT_THAT(granted, HasSubstr("+evalsha"));
    }
}

/// What a program without exceptions is told is what the exception says.
TEST_F(RefusalMessages, AreTheSameForCodes)
{
    admin.command({"ACL", "SETUSER", "orders", "on", ">secret", "~*", "&*", "+@all", "-hset"});
    Config denied = Config::fromUrl(own.url());
    denied.username = "orders";
    denied.password = "secret";
    Config here = Config::fromUrl(own.url());
    here.unreachableAfter = nowhere().unreachableAfter;
    const Client ownClient(here);
    ownClient.getNonReentrantLock(name).lock();
    admin.command({"SET", "text", "1"});
    const std::tuple<Client, std::string, Cause> cases[] = {
        {Client(denied), "denied", Cause::commandDenied},
        {Client(nowhere()), name, Cause::socketNotFound},
        {Client(Config::fromUrl(own.url())), "text", Cause{}},
        {Client(Config::fromUrl(own.url())), "", Cause{}},
    };
    for (const auto& [user, lock, cause] : cases) {
        SCOPED_TRACE(lock);
        std::error_code ec;
        lock.empty() ? (void)user.getLock("free").unlock(ec) : user.getLock(lock).lock(ec);
        EXPECT_TRUE(ec == cause || cause == Cause{}) << ec.message();
        try {
            lock.empty() ? (void)user.getLock("free").unlock() : user.getLock(lock).lock();
            ADD_FAILURE() << "nothing was thrown";
        } catch (const LockError& error) {
            EXPECT_EQ(error.code(), ec);
            const auto call = lock.empty() ? "unlock \"free\"" : "lock \"" + lock + "\"";
            EXPECT_EQ(user.describe(ec, call), error.what());
            EXPECT_THAT(error.what(), EndsWith(user.describe(ec))) << "where, what, and what to do";
        }
    }
    std::error_code ec;
    ownClient.getNonReentrantLock(name).lock(ec);
    EXPECT_EQ(ec, Cause::heldAlready);
    EXPECT_EQ(ec, std::errc::resource_deadlock_would_occur);
    EXPECT_EQ(ownClient.describe(ec), ec.message());
    const Client lost(nowhere());
    const MultiLock both({ownClient.getLock("a"), lost.getLock("b")});
    both.lock(ec);
    try {
        both.lock();
        ADD_FAILURE() << "nothing was thrown";
    } catch (const LockError& error) {
        EXPECT_EQ(both.describe(ec), error.what());
        EXPECT_THAT(error.what(), HasSubstr("nobody.sock"));
    }
}

TEST_F(RefusalMessages, NameAServerThatIsOutOfMemory)
{
    admin.command({"CONFIG", "SET", "maxmemory", "1"});
    expectRefused(Cause::outOfMemory, {"OOM", "maxmemory"});
}

TEST_F(RefusalMessages, NameAServerWithTooFewReplicas)
{
    admin.command({"CONFIG", "SET", "min-replicas-to-write", "1"});
    expectRefused(Cause::noReplicas, {"NOREPLICAS"});
}

TEST_F(RefusalMessages, NameAServerThatCannotSave)
{
    std::filesystem::create_directory(own.folder() / "dump.rdb"); // stands in the way of the file
    admin.command({"CONFIG", "SET", "save", "900 1"});
    admin.command({"BGSAVE"});
    EXPECT_TRUE(eventually([&] {
        return admin.command({"INFO", "persistence"}).text().find("last_bgsave_status:err") != std::string::npos;
    }));
    expectRefused(Cause::notPersisted, {"MISCONF"});
}

TEST_F(RefusalMessages, NameACluster)
{
    const testing::RedisServerOptions node{.arguments = {"--cluster-enabled", "yes"}};
    testing::RedisServer one(node);
    RawRedis adminOfOne(one);
    expectRefused(Cause::clusterDown, {"CLUSTERDOWN"}, Config::fromUrl(one.url()));

    testing::RedisServer another(node);
    RawRedis adminOfAnother(another);
    for (int slot = 0; slot < 16384; slot += 1024) {
        std::vector<std::string> add{"CLUSTER", "ADDSLOTS"};
        for (int each = slot; each < slot + 1024; ++each) {
            add.push_back(std::to_string(each));
        }
        adminOfAnother.command(add);
    }
    adminOfOne.command({"CLUSTER", "MEET", "127.0.0.1", std::to_string(another.port())});
    EXPECT_TRUE(eventually([&] { return adminOfOne.command({"GET", name}).text().starts_with("MOVED"); }, 20s));
    expectRefused(Cause::clusterNode, {"MOVED"}, Config::fromUrl(one.url()));
}

TEST_F(RefusalMessages, NameAReplicaThatHasLostItsMaster)
{
    admin.command({"CONFIG", "SET", "replica-serve-stale-data", "no"});
    admin.command({"REPLICAOF", "127.0.0.1", "1"});
    expectRefused(Cause::masterDown, {"MASTERDOWN"});
}

TEST_F(RefusalMessages, NameAServerThatIsLoading)
{
    admin.command({"DEBUG", "POPULATE", "20000"});
    admin.command({"CONFIG", "SET", "loading-process-events-interval-bytes", "1024"});
    admin.command({"CONFIG", "SET", "key-load-delay", "1000"}); // microseconds: 20 s
    RawRedis reloading(own);
    reloading.send({"DEBUG", "RELOAD"});
    EXPECT_TRUE(eventually([&] { return admin.command({"GET", "key:1"}).isError(); }));
    expectRefused(Cause::loading, {"LOADING"});
}

TEST_F(RefusalMessages, NameAServerThatIsBusyWithAScript)
{
    admin.command({"CONFIG", "SET", "lua-time-limit", "1"});
    RawRedis runaway(own);
    runaway.send({"EVAL", "while true do end", "0"});
    EXPECT_TRUE(eventually([&] { return admin.command({"PING"}).isError(); }));
    expectRefused(Cause::scriptBusy, {"BUSY"});
    EXPECT_EQ(admin.command({"SCRIPT", "KILL"}).text(), "OK");
    runaway.disconnect();
}

} // namespace
} // namespace redislock::test
