#include "scripts/script_test.hpp"

namespace redislock::test {
namespace {

using namespace std::string_literals;
namespace scripts = detail::scripts;

struct NamedScript {
    const char* name;
    const detail::Script& script;
    Words arguments; ///< good ones
    std::size_t otherKeys = 0;

    [[nodiscard]] Words keys(const std::string& lockName) const
    {
        Words keys{lockName};
        for (std::size_t i = 1; i <= otherKeys; ++i) {
            keys.push_back(lockName + ":other" + std::to_string(i));
        }
        return keys;
    }
};

std::vector<NamedScript> everyScript()
{
    return {
        {"redis_lock/lock", scripts::redisLockLock, {hold17, "30000", "1"}},
        {"redis_lock/unlock", scripts::redisLockUnlock, {hold17, "0", "30000", "channel"}},
        {"redis_lock/renew", scripts::redisLockRenew, {hold17, "30000"}},
        {"redis_lock/pttl", scripts::redisLockPttl, {}},
        {"redis_lock/holder", scripts::redisLockHolder, {}},
        {"redis_lock/force_unlock", scripts::redisLockForceUnlock, {hold17, "channel"}},
        {"fenced_lock/lock", scripts::fencedLockLock, {hold17, "30000", "1"}, 1},
        {"fair_lock/lock", scripts::fairLockLock, {hold17, "30000", "1", "5000", "channel:", "1"}, 3},
        {"fair_lock/unlock", scripts::fairLockUnlock, {hold17, "0", "30000", "channel:"}, 3},
        {"fair_lock/force_unlock", scripts::fairLockForceUnlock, {hold17, "channel:"}, 3},
        {"read_lock/lock", scripts::readLockLock, {hold17, "30000", "1", ""}, 1},
        {"read_lock/unlock", scripts::readLockUnlock, {hold17, "0", "30000", "channel"}, 1},
        {"read_lock/renew", scripts::readLockRenew, {hold17, "30000"}, 1},
        {"read_lock/pttl", scripts::readLockPttl, {}},
        {"read_lock/holder", scripts::readLockHolder, {}},
        {"read_lock/force_unlock", scripts::readLockForceUnlock, {hold17, "channel"}},
        {"write_lock/lock", scripts::writeLockLock, {hold17 + ":write", "30000", "1", "5000"}, 1},
        {"write_lock/unlock", scripts::writeLockUnlock, {hold17 + ":write", "0", "30000", "channel"}, 1},
        {"write_lock/pttl", scripts::writeLockPttl, {}},
        {"write_lock/holder", scripts::writeLockHolder, {}},
        {"write_lock/force_unlock", scripts::writeLockForceUnlock, {hold17 + ":write", "channel"}},
    };
}

using EveryScript = ScriptTest;

TEST_F(EveryScript, IsFoundByTheSha1ThatTheServerGivesIt)
{
    for (const NamedScript& s : everyScript()) {
        EXPECT_EQ(s.script.name, s.name);
        EXPECT_EQ(redis.command({"SCRIPT", "LOAD", s.script.text()}).text(), s.script.sha1) << s.name;
        redis.command({"FLUSHALL"});
        const Words keys = s.keys(name);
        Words words{"EVALSHA", std::string(s.script.sha1), std::to_string(keys.size())};
        words.insert(words.end(), keys.begin(), keys.end());
        words.insert(words.end(), s.arguments.begin(), s.arguments.end());
        const Value answer = redis.command(words);
        EXPECT_FALSE(answer.isError()) << s.name << ": " << answer;
    }
    redis.command({"FLUSHALL"}); // tokens have no time to live
}

TEST_F(EveryScript, HasNoShebangLine)
{
    for (const NamedScript& s : everyScript()) {
        EXPECT_FALSE(s.script.text().starts_with("#!")) << s.name << ": Redis 6 would refuse it";
    }
}

TEST_F(EveryScript, LeavesAKeyOfAnotherTypeAlone)
{
    const std::pair<const char*, Words> values[] = {
        {"string", {"SET", name, "value"}},
        {"list", {"RPUSH", name, "value"}},
        {"set", {"SADD", name, "value"}},
        {"zset", {"ZADD", name, "1", "value"}},
        {"stream", {"XADD", name, "*", "field", "value"}},
    };
    for (const auto& [type, write] : values) {
        redis.command({"DEL", name});
        redis.command(write);
        foreign.insert(name);
        const Value before = redis.command({"DUMP", name});
        for (const NamedScript& s : everyScript()) {
            const Value answer = run(s.script, s.keys(name), s.arguments);
            if (std::string_view(s.name).ends_with("/renew")) { // for one of several locks
                EXPECT_EQ(answer.text(), "w") << s.name << " at a " << type;
            } else {
                EXPECT_THAT(answer, ErrorLike("WRONGTYPE")) << s.name << " at a " << type;
            }
        }
        EXPECT_THAT(run(scripts::redisLockLock, {name}, {hold17, "30000", "2"}), ErrorLike("WRONGTYPE")) << type;
        EXPECT_EQ(redis.command({"DUMP", name}), before) << type;
        EXPECT_EQ(timeToLive(), -1) << type;
    }
}

TEST_F(EveryScript, RefusesAWrongNumberOfKeysOrArguments)
{
    lock(hold17, 30'000, 1);
    for (const NamedScript& s : everyScript()) {
        EXPECT_THAT(run(s.script, {}, s.arguments), ErrorLike("ERR redislock: bad arguments")) << s.name;
        Words keys = s.keys(name);
        keys.emplace_back("one more");
        EXPECT_THAT(run(s.script, keys, s.arguments), ErrorLike("ERR redislock: bad arguments")) << s.name;
        keys.pop_back();
        Words more = s.arguments;
        more.emplace_back("1");
        EXPECT_THAT(run(s.script, keys, more), ErrorLike("ERR redislock: bad arguments")) << s.name;
        for (Words fewer = s.arguments; !fewer.empty();) {
            fewer.pop_back();
            EXPECT_THAT(run(s.script, keys, fewer), ErrorLike("ERR redislock: bad arguments"))
                << s.name << " with " << fewer.size();
        }
    }
    EXPECT_EQ(hash(), (Hash{{hold17, "1"}}));
    EXPECT_THAT(timeToLive(), JustSet(30'000));
    EXPECT_THAT(redis.command({"DBSIZE"}), Number(1));
}

/// Texts that are not a decimal number in a script's range, whatever the range is.
const std::string noNumbers[] = {
    "",
    " ",
    "x",
    "-1",
    "-0",
    "+10",
    "01000",
    "1e3",
    "1E3",
    "1000.0",
    "1000.5",
    ".5",
    "1,000",
    "0x3e8",
    " 10",
    "10 ",
    "10\n",
    "10\0"s,
    "10\0x"s,
    "nan",
    "NaN",
    "-nan",
    "inf",
    "-inf",
    "infinity",
    "1000ms",
    "\xff",
    "99999999999999999999999999999999999999999",
    std::string(400, '9'),
};

TEST_F(EveryScript, RefusesBadNumbersBeforeItWrites)
{
    lock(hold18, 30'000);
    const std::string channel = detail::lockChannel(name);
    const auto refused = [&](const detail::Script& script, const Words& arguments) {
        for (const std::string& key : {name, "free"s}) {
            EXPECT_THAT(run(script, {key}, arguments), ErrorLike("ERR redislock: bad arguments"))
                << script.name << ::testing::PrintToString(arguments);
        }
    };
    for (const std::string& bad : noNumbers) {
        for (const std::string& holder : {hold17, hold18}) {
            refused(scripts::redisLockLock, {holder, bad, "1"});
            refused(scripts::redisLockLock, {holder, "30000", bad});
            refused(scripts::redisLockUnlock, {holder, bad, "30000", channel});
            refused(scripts::redisLockUnlock, {holder, "1", bad, channel});
            refused(scripts::redisLockRenew, {holder, bad});
        }
    }
    EXPECT_EQ(hash(), (Hash{{hold18, "1"}}));
    EXPECT_THAT(timeToLive(), JustSet(30'000));
    EXPECT_THAT(redis.command({"DBSIZE"}), Number(1));
}

TEST_F(EveryScript, RefusesNumbersOutOfTheirRangeBeforeItWrites)
{
    struct Case {
        const char* name;
        const detail::Script& script;
        Words arguments;
    };
    const Case cases[] = {
        {"lease zero", scripts::redisLockLock, {hold18, "0", "1"}},
        {"lease below the least", scripts::redisLockLock, {hold18, "9", "1"}},
        {"lease above the most", scripts::redisLockLock, {hold18, "2592000001", "1"}},
        {"count zero", scripts::redisLockLock, {hold18, "30000", "0"}},
        {"count above the most", scripts::redisLockLock, {hold18, "30000", "2147483648"}},
        {"renewal for nothing", scripts::redisLockRenew, {hold18, "0"}},
        {"renewal below the least", scripts::redisLockRenew, {hold18, "9"}},
        {"renewal above the most", scripts::redisLockRenew, {hold18, "2592000001"}},
        {"rest for nothing", scripts::redisLockUnlock, {hold18, "1", "0", "channel"}},
        {"rest above the most", scripts::redisLockUnlock, {hold18, "1", "2592000001", "channel"}},
        {"rest count above the most", scripts::redisLockUnlock, {hold18, "2147483648", "30000", "channel"}},
        {"lock without a holder", scripts::redisLockLock, {"", "30000", "1"}},
        {"unlock without a holder", scripts::redisLockUnlock, {"", "0", "30000", "channel"}},
        {"renewal without a holder", scripts::redisLockRenew, {"", "30000"}},
        {"forced unlock without a holder", scripts::redisLockForceUnlock, {"", "channel"}},
    };
    lock(hold18, 30'000);
    for (const Case& c : cases) {
        for (const std::string& key : {name, "free"s}) {
            EXPECT_THAT(run(c.script, {key}, c.arguments), ErrorLike("ERR redislock: bad arguments")) << c.name;
        }
    }
    EXPECT_EQ(hash(), (Hash{{hold18, "1"}}));
    EXPECT_THAT(timeToLive(), JustSet(30'000));
    EXPECT_THAT(redis.command({"DBSIZE"}), Number(1));
}

TEST_F(EveryScript, TakesAnyBytesInANameAndKeepsNamesApart)
{
    const std::string names[] = {
        "a",    "a\0"s,     "a\0b"s, "a\0c"s, "line\r\nbreak",        "{tag}:x", "{", "}", "a{b", "a}b",
        "\xff", "\xc3\xa4", " ",     "*?[]",  std::string(1024, 'n'),
    };
    for (const std::string& each : names) {
        name = each;
        EXPECT_THAT(lock(hold17, 30'000), Nil()) << ::testing::PrintToString(each);
    }
    EXPECT_THAT(redis.command({"DBSIZE"}), Number(std::ssize(names)));
    for (const std::string& each : names) {
        name = each;
        EXPECT_THAT(lock(hold17, 30'000, 2), Nil());
        EXPECT_EQ(renew(hold17, 40'000).text(), "1");
        EXPECT_THAT(pttl().integer(), JustSet(40'000));
        EXPECT_THAT(unlock(hold17, 1), Number(0));
        EXPECT_EQ(hash(), (Hash{{hold17, "1"}})) << ::testing::PrintToString(each);
        EXPECT_THAT(unlock(hold17), Number(1));
    }
    EXPECT_THAT(redis.command({"DBSIZE"}), Number(0));
}

TEST_F(EveryScript, PublishesOnTheChannelOfAnyName)
{
    for (const std::string& each : {"{tag}:x"s, "a\0b"s, "line\r\nbreak"s, "\xff"s, "a{b"s}) {
        name = each;
        RawRedis waiter = subscriber();
        lock(hold17, 30'000);
        EXPECT_THAT(unlock(hold17), Number(2)) << ::testing::PrintToString(each);
        EXPECT_EQ(messages(waiter), Words{detail::lockChannel(name) + " 0"});
    }
}

} // namespace
} // namespace redislock::test
