// What scripts answer without having written counts only from a server that takes writes.
#include "scripts/script_test.hpp"
#include "support/eventually.hpp"
#include "wire/fault.hpp"

#include <functional>

namespace redislock::test {
namespace {

namespace scripts = detail::scripts;

/// A branch of a script that writes nothing.
struct Branch {
    const char* name;
    const detail::Script& script;
    Words keys;
    Words arguments;
    std::vector<Words> before{}; ///< the commands that make it come to that
};

class ReplicaBehind : public ScriptTest {
protected:
    void TearDown() override
    {
        redis.command({"REPLICAOF", "NO", "ONE"});
        redis.command({"CONFIG", "SET", "appendonly", "no"});
        redis.command({"CONFIG", "SET", "min-replicas-to-write", "0"});
        redis.command({"FLUSHALL"});
    }

    std::vector<Branch> ofPlainLocks()
    {
        const Words key{name};
        const Words two{name, name + ":2"};
        const std::vector<Words> held{{"HSET", name, hold17, "1"}};
        const std::vector<Words> taken{{"HSET", name, javaThread, "1"}};
        const auto& lock = scripts::redisLockLock;
        const auto& fenced = scripts::fencedLockLock;
        const auto& unlock = scripts::redisLockUnlock;
        const auto& renew = scripts::redisLockRenew;
        const auto& force = scripts::redisLockForceUnlock;
        return {
            {"taken", lock, key, {hold17, "30000", "1"}, taken},
            {"nested, but free", lock, key, {hold17, "30000", "2"}},
            {"nested, but taken", lock, key, {hold17, "30000", "2"}, taken},
            {"taken", fenced, two, {hold17, "30000", "1"}, taken},
            {"nested, but free", fenced, two, {hold17, "30000", "2"}},
            {"free", unlock, key, {hold17, "0", "30000", "channel"}},
            {"free, and nobody is told", unlock, key, {hold17, "0", "30000", ""}},
            {"taken", unlock, key, {hold17, "0", "30000", "channel"}, taken},
            {"nested, but free", unlock, key, {hold17, "1", "30000", "channel"}},
            {"nested, and lower already", unlock, key, {hold17, "1", "30000", "channel"}, held},
            {"free", renew, key, {hold17, "30000"}},
            {"taken", renew, key, {hold17, "30000"}, taken},
            {"a key of another type", renew, key, {hold17, "30000"}, {{"SET", name, "1"}}},
            {"one free, one taken", renew, two, {hold17, "30000", hold18, "30000"}, taken},
            {"free", scripts::redisLockPttl, key, {}},
            {"held", scripts::redisLockPttl, key, {}, held},
            {"free", scripts::redisLockHolder, key, {}},
            {"held", scripts::redisLockHolder, key, {}, held},
            {"free", force, key, {hold17, "channel"}},
            {"taken", force, key, {hold17, "channel"}, taken},
        };
    }

    std::vector<Branch> ofFairLocks()
    {
        const Words keys{name, "queue", "times", "places"};
        const std::vector<Words> held{{"HSET", name, hold17, "1"}};
        const std::vector<Words> taken{{"HSET", name, javaThread, "1"}};
        const std::string until =
            std::to_string(std::stoll(redis.command({"TIME"}).elements.at(0).text()) + 40) + "000";
        const std::vector<Words> queued{{"RPUSH", "queue", hold18},
                                        {"ZADD", "times", until, hold18},
                                        {"HSET", "places", hold18, until + " 60000 1"}};
        const auto& lock = scripts::fairLockLock;
        const auto& unlock = scripts::fairLockUnlock;
        const auto& force = scripts::fairLockForceUnlock;
        return {
            {"taken", lock, keys, {hold17, "30000", "1", "0", "channel:", "0"}, taken},
            {"another's turn", lock, keys, {hold17, "30000", "1", "0", "channel:", "0"}, queued},
            {"nested, but free", lock, keys, {hold17, "30000", "2", "0", "channel:", "0"}},
            {"free", unlock, keys, {hold17, "0", "30000", "channel:"}},
            {"nested, but taken", unlock, keys, {hold17, "1", "30000", "channel:"}, taken},
            {"nested, and lower already", unlock, keys, {hold17, "1", "30000", "channel:"}, held},
            {"free", force, keys, {hold17, "channel:"}},
            {"taken", force, keys, {hold17, "channel:"}, taken},
        };
    }

    std::vector<Branch> ofReadWriteLocks()
    {
        const Words key{name};
        const Words keys{name, "prefix"};
        const std::string writer17 = hold17 + ":write";
        const std::vector<Words> read{{"HSET", name, "mode", "read", hold17, "1"}};
        const std::vector<Words> readByAnother{{"HSET", name, "mode", "read", javaThread, "1"}};
        const std::vector<Words> written{{"HSET", name, "mode", "write", writer17, "1"}};
        const std::vector<Words> writtenByAnother{{"HSET", name, "mode", "write", javaThread + ":write", "1"}};
        const std::vector<Words> readToo{{"HSET", name, "mode", "write", writer17, "1", hold17, "1"}};
        const std::vector<Words> writerWaits{{"SET", "prefix:redislock_writer", "5000 w", "PX", "10000"}};
        const auto& readLock = scripts::readLockLock;
        const auto& readUnlock = scripts::readLockUnlock;
        const auto& writeLock = scripts::writeLockLock;
        const auto& writeUnlock = scripts::writeLockUnlock;
        return {
            {"written", readLock, keys, {hold17, "30000", "1", ""}, writtenByAnother},
            {"a writer waits", readLock, keys, {hold17, "30000", "1", ""}, writerWaits},
            {"nested, but free", readLock, keys, {hold17, "30000", "2", ""}},
            {"free", readUnlock, keys, {hold17, "0", "30000", "channel"}},
            {"read by another", readUnlock, keys, {hold17, "0", "30000", "channel"}, readByAnother},
            {"nested, and lower already", readUnlock, keys, {hold17, "1", "30000", "channel"}, read},
            {"free", scripts::readLockRenew, keys, {hold17, "30000"}},
            {"read by another", scripts::readLockRenew, keys, {hold17, "30000"}, readByAnother},
            {"free", scripts::readLockPttl, key, {}},
            {"read", scripts::readLockPttl, key, {}, read},
            {"free", scripts::readLockHolder, key, {}},
            {"read", scripts::readLockHolder, key, {}, read},
            {"free", scripts::readLockForceUnlock, key, {hold17, "channel"}},
            {"read by its writer", scripts::readLockForceUnlock, key, {hold17, "channel"}, readToo},
            {"read", writeLock, keys, {writer17, "30000", "1", "0"}, readByAnother},
            {"written", writeLock, keys, {writer17, "30000", "1", "5000"}, writtenByAnother},
            {"nested, but free", writeLock, keys, {writer17, "30000", "2", "5000"}},
            {"free", writeUnlock, keys, {writer17, "0", "30000", "channel"}},
            {"nested, and lower already", writeUnlock, keys, {writer17, "1", "30000", "channel"}, written},
            {"free", scripts::writeLockPttl, key, {}},
            {"written", scripts::writeLockPttl, key, {}, written},
            {"free", scripts::writeLockHolder, key, {}},
            {"written", scripts::writeLockHolder, key, {}, written},
            {"free", scripts::writeLockForceUnlock, key, {writer17, "channel"}},
            {"read", scripts::writeLockForceUnlock, key, {writer17, "channel"}, read},
        };
    }

    std::vector<Branch> ofCounters()
    {
        const Words keys{name, "request"};
        const Words three{name, "permits", "request"};
        const auto recorded = [](const char* answer) { return std::vector<Words>{{"SET", "request", answer}}; };
        const std::vector<Words> some{{"SET", name, "2"}};
        const std::vector<Words> none{{"SET", name, "0"}};
        const std::string id(16, 'i');
        const std::vector<Words> leased{{"ZADD", "permits", "922337203685477", id}};
        const auto& acquire = scripts::permitExpirableSemaphoreAcquire;
        const auto& count = scripts::permitExpirableSemaphoreCount;
        const auto& lease = scripts::permitExpirableSemaphoreLease;
        const auto withRecord = [&](std::vector<Words> before) {
            before.push_back({"SET", "request", "7"});
            return before;
        };
        return {
            {"nothing there", scripts::counterGet, {name}, {}},
            {"something there", scripts::counterGet, {name}, {}, some},
            {"recorded", scripts::counterTrySet, keys, {"3", "0", "channel", "3", "60000"}, recorded("0")},
            {"recorded", scripts::counterDelete, {name, name, "request"}, {"", "60000"}, recorded("0")},
            {"no such semaphore", scripts::semaphoreAcquire, keys, {"1", "60000"}},
            {"too few", scripts::semaphoreAcquire, keys, {"3", "60000"}, some},
            {"withdrawn", scripts::semaphoreAcquire, keys, {"1", "60000"}, recorded("0")},
            {"granted before", scripts::semaphoreAcquire, keys, {"1", "60000"}, recorded("1")},
            {"recorded", scripts::semaphoreAdd, keys, {"1", "1", "channel", "60000"}, recorded("0")},
            {"recorded", scripts::semaphoreDrain, keys, {"60000"}, recorded("0")},
            {"recorded", scripts::countDownLatchCountDown, keys, {"channel", "60000"}, recorded("0")},
            {"none free", acquire, three, {id, "5000", "channel"}, none},
            {"none free, one leased", acquire, three, {std::string(16, 'j'), "5000", "channel"}, leased},
            {"given up", acquire, three, {id, "5000", "channel"}, withRecord(leased)},
            {"nothing there", count, {name, "permits"}, {"channel"}},
            {"one leased", count, {name, "permits"}, {"channel"}, leased},
            {"no such permit", lease, three, {id, "5000", "1", "60000"}},
            {"a question", lease, three, {id, "", "0", "0"}, leased},
            {"a later change was recorded", lease, three, {id, "5000", "1", "60000"}, withRecord(leased)},
            {"recorded", scripts::permitExpirableSemaphoreSet, three, {"1", "channel", "60000"}, recorded("1")},
        };
    }

    std::vector<Branch> every()
    {
        std::vector<Branch> all;
        for (const auto& some : {ofPlainLocks(), ofFairLocks(), ofReadWriteLocks(), ofCounters()}) {
            for (const Branch& branch : some) {
                all.push_back(branch);
            }
        }
        return all;
    }

    /// What makes `unlock()` return `alreadyLost`, or says that the key is a lock of another kind.
    std::vector<Branch> withAnotherType()
    {
        const Words keys{name, "prefix"};
        const Words four{name, "queue", "times", "places"};
        const std::string writer17 = hold17 + ":write";
        const std::vector<Words> text{{"SET", name, "1"}};
        const std::vector<Words> plain{{"HSET", name, javaThread, "1"}};
        const std::vector<Words> read{{"HSET", name, "mode", "read", javaThread, "1"}};
        return {
            {"a string", scripts::redisLockUnlock, {name}, {hold17, "0", "30000", "channel"}, text},
            {"a string", scripts::fairLockUnlock, four, {hold17, "0", "30000", "channel:"}, text},
            {"a string", scripts::readLockUnlock, keys, {hold17, "0", "30000", "channel"}, text},
            {"a string", scripts::writeLockUnlock, keys, {writer17, "0", "30000", "channel"}, text},
            {"read", scripts::redisLockLock, {name}, {hold17, "30000", "1"}, read},
            {"read", scripts::fencedLockLock, keys, {hold17, "30000", "1"}, read},
            {"read", scripts::fairLockLock, four, {hold17, "30000", "1", "0", "channel:", "0"}, read},
            {"a plain lock", scripts::readLockLock, keys, {hold17, "30000", "1", ""}, plain},
            {"a plain lock", scripts::writeLockLock, keys, {writer17, "30000", "1", "0"}, plain},
            {"a plain lock", scripts::writeLockHolder, {name}, {}, plain},
            {"read", scripts::redisLockHolder, {name}, {}, {{"HSET", name, "mode", "1"}}},
        };
    }

    /// Makes the state before each branch, and lets @p test run it.
    void forEachBranch(const std::function<void(const Branch&)>& test) { forEach(every(), test); }
    void forEach(const std::vector<Branch>& branches, const std::function<void(const Branch&)>& test)
    {
        for (const Branch& branch : branches) {
            SCOPED_TRACE(std::string(branch.script.name) + ": " + branch.name);
            redis.command({"FLUSHALL"});
            for (const auto& command : branch.before) {
                ASSERT_FALSE(redis.command(command).isError());
            }
            test(branch);
        }
    }

    Value answerTo(const Branch& branch) { return run(branch.script, branch.keys, branch.arguments); }

    /// All keys and what is in them.
    std::map<std::string, Value> dump()
    {
        std::map<std::string, Value> all;
        for (const auto& key : redis.command({"KEYS", "*"}).elements) {
            all[key.text()] = redis.command({"DUMP", key.text()});
        }
        return all;
    }
};

TEST_F(ReplicaBehind, GivesNoAnswer)
{
    forEachBranch([this](const Branch& branch) {
        redis.command({"REPLICAOF", "127.0.0.1", "1"}); // nobody listens there
        const auto before = dump();
        const Value answer = answerTo(branch);
        ASSERT_TRUE(answer.isError()) << answer;
        EXPECT_EQ(detail::classify(answer.text()), (detail::Fault{detail::Failure::demoted, Cause::readOnly}))
            << answer;
        EXPECT_EQ(dump(), before);
        redis.command({"REPLICAOF", "NO", "ONE"});
    });
}

TEST_F(ReplicaBehind, IsFoundOutByAUserWithTheRightsForPlainLocks)
{
    redis.command({"ACL",      "SETUSER", "plain",  "on",       ">pw",      "~stock:*", "&*",
                   "+evalsha", "+eval",   "+ping",  "+pttl",    "+hexists", "+hget",    "+hset",
                   "+hdel",    "+hlen",   "+hkeys", "+pexpire", "+del",     "+publish"});
    RawRedis user(server());
    ASSERT_EQ(user.command({"AUTH", "plain", "pw"}).text(), "OK");
    redis.command({"ACL", "LOG", "RESET"});
    forEach(ofPlainLocks(), [&](const Branch& branch) {
        if (branch.script.name == scripts::fencedLockLock.name) {
            return;
        }
        EXPECT_FALSE(run(user, branch.script, branch.keys, branch.arguments).isError());
        redis.command({"REPLICAOF", "127.0.0.1", "1"}); // nobody listens there
        EXPECT_THAT(run(user, branch.script, branch.keys, branch.arguments).text(), ::testing::HasSubstr("READONLY"));
        redis.command({"REPLICAOF", "NO", "ONE"});
    });
    EXPECT_TRUE(redis.command({"ACL", "LOG"}).elements.empty());
    redis.command({"ACL", "DELUSER", "plain"});
}

TEST_F(ReplicaBehind, SaysOfNoKeyThatItIsOfAnotherType)
{
    forEach(withAnotherType(), [this](const Branch& branch) {
        const auto before = dump();
        const Value ofMaster = answerTo(branch);
        ASSERT_TRUE(ofMaster.isError()) << ofMaster;
        EXPECT_EQ(detail::classify(ofMaster.text()).error, Errc::wrongType) << ofMaster;
        redis.command({"REPLICAOF", "127.0.0.1", "1"}); // nobody listens there
        const Value ofReplica = answerTo(branch);
        ASSERT_TRUE(ofReplica.isError()) << ofReplica;
        EXPECT_EQ(detail::classify(ofReplica.text()).error, detail::Reason(Cause::readOnly)) << ofReplica;
        redis.command({"REPLICAOF", "NO", "ONE"});
        EXPECT_EQ(dump(), before);
    });
}

TEST_F(ReplicaBehind, IsFoundOutByAWriteThatChangesAndReplicatesNothing)
{
    redis.command({"CONFIG", "SET", "appendfsync", "always"}); // else a busy disk delays what is written
    redis.command({"CONFIG", "SET", "appendonly", "yes"});     // what is replicated is written there too
    ASSERT_TRUE(eventually([this] { return redis.info("aof_rewrite_in_progress") == "0"; }));
    forEachBranch([this](const Branch& branch) {
        const auto before = dump();
        const auto changes = redis.info("rdb_changes_since_last_save");
        const auto file = redis.info("aof_current_size");
        const auto errors = redis.info("total_error_replies");
        EXPECT_FALSE(answerTo(branch).isError());
        EXPECT_EQ(redis.info("rdb_changes_since_last_save"), changes);
        if (branch.script.name != scripts::fairLockUnlock.name || branch.arguments[1] != "0") { // leaves the queue
            EXPECT_EQ(redis.info("aof_current_size"), file);
        }
        if (std::string_view(branch.name) != "a key of another type") {
            EXPECT_EQ(redis.info("total_error_replies"), errors) << "no operator wants to look for these";
        }
        EXPECT_EQ(dump(), before);
    });
}

TEST_F(ReplicaBehind, IsNoServerThatRefusesForAnotherReason)
{
    // an answer that depends on the time of day is not the same twice
    const auto isSame = [](const Value& one, const Value& other) {
        return one == other || (one.isArray() && other.isArray() && one.elements.size() == other.elements.size());
    };
    // a name in the error reply that looks like the word
    redis.command({"ACL", "SETUSER", "-READONLY", "on", ">pw", "~*", "&*", "+@all", "-hdel", "-del", "-set", "-zrem"});
    RawRedis limited(server());
    ASSERT_EQ(limited.command({"AUTH", "-READONLY", "pw"}).text(), "OK");
    forEachBranch([&](const Branch& branch) {
        if (branch.script.name == scripts::fairLockUnlock.name && branch.arguments[1] == "0") {
            return; // it may be in the queue, and leaves that
        }
        const Value answer = answerTo(branch);
        redis.command({"CONFIG", "SET", "min-replicas-to-write", "1"});
        const Value tooFewReplicas = answerTo(branch);
        redis.command({"CONFIG", "SET", "min-replicas-to-write", "0"});
        EXPECT_TRUE(isSame(tooFewReplicas, answer)) << tooFewReplicas << answer;
        const Value withoutRights = run(limited, branch.script, branch.keys, branch.arguments);
        EXPECT_TRUE(isSame(withoutRights, answer)) << withoutRights << answer;
    });
    redis.command({"ACL", "DELUSER", "-READONLY"});
}

} // namespace
} // namespace redislock::test
