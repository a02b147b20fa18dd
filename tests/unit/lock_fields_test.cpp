#include "core/lock_fields.hpp"
#include "support/replies.hpp"
#include "wire/info.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redislock::detail {
namespace {

using test::arrayReply;
using test::numberReply;
using test::textReply;

const std::string holderClient = "0a1f96fc-15c1-4297-a056-e1c973a409fe";
const std::string secondClient = "1b1f96fc-15c1-4297-a056-e1c973a409fe";

Reply pageReply(std::initializer_list<std::pair<std::string, std::string>> fields, const std::string& cursor = "0")
{
    std::vector<Reply> words;
    for (const auto& [field, value] : fields) {
        words.push_back(textReply(field));
        words.push_back(textReply(value));
    }
    return arrayReply({textReply(cursor), arrayReply(std::move(words))});
}

TEST(LockFields, OneHolderIsAPlainLock)
{
    const auto report = reportOf("stock", {{}, pageReply({{holderClient + ":17", "2"}}), numberReply(9986)});
    ASSERT_TRUE(report);
    EXPECT_EQ(report->name, "stock");
    EXPECT_EQ(report->kind, ObjectKind::redisLock);
    ASSERT_EQ(report->holders.size(), 1U);
    EXPECT_EQ(report->holders[0].name, holderClient + ":17");
    EXPECT_EQ(report->holders[0].clientId, holderClient);
    EXPECT_EQ(report->holders[0].count, 2U);
    EXPECT_EQ(report->timeLeft, std::chrono::milliseconds(9986));
    EXPECT_FALSE(reportOf("stock", {{}, pageReply({{holderClient + ":17", "2"}}), numberReply(-2)})) << "gone";
    EXPECT_FALSE(reportOf("stock", {{}, pageReply({{holderClient + ":17", "2"}}), numberReply(-1)})->timeLeft);
}

TEST(LockFields, HoldersAreWhateverRedissonCanWrite)
{
    const auto holderOf = [](const std::string& tail, const std::string& count = "1") {
        const auto report = reportOf("stock", {{}, pageReply({{holderClient + tail, count}}), numberReply(9986)});
        return report ? report->holders[0].name + (report->holders[0].writes ? " writes" : "") : "none";
    };
    for (const char* tail :
         {":-7", ":0", ":-9223372036854775808", ":9223372036854775807", ":5:3f2a", ":-5:tx:2", ":5:"}) {
        EXPECT_EQ(holderOf(tail), holderClient + tail);
    }
    for (const char* tail : {":", ":-", ":+5", ":5x", ":9223372036854775808", ":tx", "5", "", ":5 ", ":--5"}) {
        EXPECT_EQ(holderOf(tail), "none") << tail;
    }
    EXPECT_EQ(holderOf(":5", "99999999999"), holderClient + ":5") << "counts may be greater than ours";
    for (const char* count : {"0", "-1", "", "1.5", "x", "5 "}) {
        EXPECT_EQ(holderOf(":5", count), "none") << count;
    }
    const auto writing =
        reportOf("r", {textReply("write"), pageReply({{"mode", "write"}, {holderClient + ":-1:write:tx", "1"}}),
                       numberReply(5)});
    ASSERT_TRUE(writing);
    EXPECT_TRUE(writing->holders[0].writes);
    EXPECT_EQ(writing->holders[0].name, holderClient + ":-1:tx");
}

TEST(LockFields, ReadersAndWritersAreTold)
{
    const auto reading =
        reportOf("r", {textReply("read"),
                       pageReply({{"mode", "read"}, {holderClient + ":1", "1"}, {secondClient + ":2", "3"}}, "7"),
                       numberReply(5)});
    ASSERT_TRUE(reading);
    EXPECT_EQ(reading->kind, ObjectKind::readLock);
    EXPECT_EQ(reading->holders.size(), 2U);
    EXPECT_TRUE(reading->hasMoreHolders);
    const auto writing =
        reportOf("r", {textReply("write"), pageReply({{holderClient + ":1:write", "1"}, {holderClient + ":1", "1"}}),
                       numberReply(5)});
    ASSERT_TRUE(writing);
    EXPECT_EQ(writing->kind, ObjectKind::writeLock);
    EXPECT_EQ(writing->holders[0].name, holderClient + ":1");
    EXPECT_TRUE(writing->holders[0].writes);
    EXPECT_FALSE(writing->holders[1].writes);
}

TEST(LockFields, OtherHashesAreNoLocks)
{
    const Reply time = numberReply(1000);
    const Reply none;
    EXPECT_FALSE(reportOf("n", {none, pageReply({}), time}));
    EXPECT_FALSE(reportOf("n", {none, pageReply({{"visits", "3"}}), time}));
    EXPECT_FALSE(reportOf("n", {none, pageReply({{holderClient + ":1", "x"}}), time}));
    EXPECT_FALSE(reportOf("n", {none, pageReply({{holderClient + ":1", "0"}}), time}));
    EXPECT_FALSE(reportOf("n", {none, pageReply({{holderClient + ":", "1"}}), time}));
    EXPECT_FALSE(reportOf("n", {none, pageReply({{holderClient + ":1:write", "1"}}), time}));
    EXPECT_FALSE(reportOf("n", {none, pageReply({{holderClient + ":1", "1"}, {secondClient + ":1", "1"}}), time}));
    EXPECT_FALSE(reportOf("n", {none, pageReply({{holderClient + ":1", "1"}}, "8"), time}));
    EXPECT_FALSE(reportOf("n", {textReply("dark"), pageReply({{"mode", "dark"}, {holderClient + ":1", "1"}}), time}));
    EXPECT_FALSE(reportOf("n", {textReply("read"), pageReply({{"mode", "read"}}), time}));
    EXPECT_FALSE(reportOf("n", {textReply("read"), pageReply({{"mode", "read"}, {"visits", "1"}}), time}));
    EXPECT_FALSE(reportOf("n", {none, textReply("no page"), time}));
}

TEST(LockFields, ALockThatChangesBetweenTheAnswersIsNoOtherHash)
{
    const Reply none;
    const auto page = pageReply({{"mode", "read"}, {holderClient + ":1", "1"}, {secondClient + ":2", "1"}});
    const auto report = reportOf("n", {none, page, numberReply(5)});
    ASSERT_TRUE(report) << "it became a read lock after HGET";
    EXPECT_EQ(report->kind, ObjectKind::readLock);
    EXPECT_TRUE(isGone({none, page, numberReply(-2)})) << "before PTTL";
    EXPECT_TRUE(isGone({none, pageReply({}), numberReply(5)})) << "before HSCAN";
    EXPECT_FALSE(isGone({none, pageReply({{"visits", "3"}}), numberReply(-1)}));
    EXPECT_FALSE(isGone({none, pageReply({}, "7"), numberReply(-1)})) << "a large hash";
}

TEST(LockFields, ACrowdIsOfReaders)
{
    EXPECT_TRUE(reportOfCrowd("r", {textReply("read"), {}, numberReply(5)})->hasMoreHolders);
    EXPECT_FALSE(reportOfCrowd("r", {{}, {}, numberReply(5)}));
    EXPECT_FALSE(reportOfCrowd("r", {textReply("write"), {}, numberReply(5)}));
    EXPECT_FALSE(reportOfCrowd("r", {textReply("read"), {}, numberReply(-2)}));
}

TEST(LockFields, SurroundingsTellTheKindAndWhoWaits)
{
    LockReport plain;
    addSurroundings(plain, {.hasToken = false, .queued = 0, .listeners = 3});
    EXPECT_EQ(plain.kind, ObjectKind::redisLock);
    EXPECT_EQ(plain.waiters, 3U);
    LockReport fenced;
    addSurroundings(fenced, {.hasToken = true, .queued = std::nullopt, .listeners = std::nullopt});
    EXPECT_EQ(fenced.kind, ObjectKind::fencedLock);
    EXPECT_FALSE(fenced.waiters);
    LockReport fair;
    addSurroundings(fair, {.hasToken = true, .queued = 4, .listeners = 0});
    EXPECT_EQ(fair.kind, ObjectKind::fairLock);
    EXPECT_EQ(fair.waiters, 4U);
    LockReport read;
    read.kind = ObjectKind::readLock;
    read.name = "r";
    addSurroundings(read, {.hasToken = true, .queued = 4, .listeners = 2});
    EXPECT_EQ(read.kind, ObjectKind::readLock);
    EXPECT_EQ(read.waiters, 2U);
    EXPECT_EQ(channelOf(read), "redisson_rwlock:{r}");
    fair.name = "a{b";
    EXPECT_EQ(channelOf(fair), "redisson_lock__channel:a{b");
}

TEST(Info, HasFields)
{
    constexpr std::string_view info = "# Server\r\nredis_version:7.0.15\r\nrun_id:ab\r\n\r\nmaxmemory:12\r\nx:\r\n";
    EXPECT_EQ(infoField(info, "redis_version"), "7.0.15");
    EXPECT_EQ(infoField(info, "version"), "");
    EXPECT_EQ(infoField(info, "x"), "");
    EXPECT_EQ(infoNumber(info, "maxmemory"), 12U);
    EXPECT_EQ(infoNumber(info, "run_id"), 0U);
}

TEST(ClientLine, HasFields)
{
    const std::string_view line = "id=3 addr=10.0.0.7:50222 laddr=1.1.1.1:1 fd=8 name=orders:x age=1 lib-name=";
    EXPECT_EQ(fieldOf(line, "addr"), "10.0.0.7:50222");
    EXPECT_EQ(fieldOf(line, "name"), "orders:x");
    EXPECT_EQ(fieldOf(line, "id"), "3");
    EXPECT_EQ(fieldOf(line, "lib-name"), "");
    EXPECT_EQ(fieldOf(line, "user"), "");
    EXPECT_EQ(fieldOf("", "id"), "");
}

} // namespace
} // namespace redislock::detail
