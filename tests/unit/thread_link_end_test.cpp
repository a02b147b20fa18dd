// How a connection ends: lost, timed out, shut down.
#include "unit/thread_link_rig.hpp"

namespace redislock::detail {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using Mode = Call::Mode;

constexpr TimePoint replacementDue{1h};

// ------------------------------------------------------------------------------------------ Replaced connections

TEST_F(ThreadLinkTest, AnIdleConnectionIsReplacedAtOnceAndNobodyIsTold)
{
    connection.enqueue(x);
    auto redis = connect(SOCK_STREAM, replacementDue);
    connection.flush();
    redis.reply(":1\r\n");
    connection.sweep();
    EXPECT_THAT(replacements, ElementsAre(replacementDue));
    connection.replacement(Stream{}, never);
    ASSERT_EQ(replacements.size(), 2U) << "again";
    EXPECT_GT(replacements.back(), BootClock::now()) << "after a pause";
    auto other = replace();
    EXPECT_THAT(redis.requests(), ElementsAre("x"));
    EXPECT_TRUE(redis.isLeft());
    connection.enqueue(y);
    connection.flush();
    EXPECT_THAT(other.requests(), ElementsAre("y"));
    const auto late = replace();
    EXPECT_TRUE(late.isLeft()) << "nobody wants it";
    EXPECT_EQ(reports.size(), 1U);
    EXPECT_TRUE(connects.size() == 1U && replacements.size() == 2U);
}

TEST_F(ThreadLinkTest, AConnectionIsReplacedUnderALeaderWhenAllIsAnswered)
{
    connection.enqueue(a);
    auto redis = connect(SOCK_STREAM, replacementDue);
    std::thread leader([&] { EXPECT_EQ(inWords(*a, connection.await(*a, never)), "1"); });
    EXPECT_THAT(redis.nextRequests(), ElementsAre("a"));
    auto other = replace();
    std::thread follower([&] {
        connection.enqueue(b);
        EXPECT_EQ(inWords(*b, connection.await(*b, never)), "2");
    });
    connection.enqueue(x);
    connection.flush();
    EXPECT_FALSE(redis.isLeft());
    EXPECT_THAT(redis.requests(), IsEmpty()) << "nothing more is written there";
    redis.reply(":1\r\n");
    leader.join();
    connection.sweep();
    EXPECT_TRUE(redis.isLeft());
    std::vector<std::string> requests;
    while (requests.size() < 2) {
        for (const auto& each : other.nextRequests()) {
            other.reply(each == "b" ? ":2\r\n" : ":3\r\n");
            requests.push_back(each);
        }
    }
    follower.join();
    connection.sweep();
    EXPECT_EQ(inWords(*x), "3");
    EXPECT_EQ(reports.size(), 1U);
}

TEST_F(ThreadLinkTest, AConnectionThatEndsBeforeItIsReplacedIsLostAsEver)
{
    connection.enqueue(x);
    auto redis = connect(SOCK_STREAM, replacementDue);
    connection.flush();
    const auto other = replace();
    redis.hangUp();
    connection.sweep();
    EXPECT_EQ(inWords(*x), "reply lost");
    EXPECT_TRUE(other.isLeft());
    EXPECT_THAT(reports, ElementsAre(Pair(true, Errc{}), Pair(false, Errc::unreachable)));
}

// ------------------------------------------------------------------------------------------ Lost connections

TEST_F(ThreadLinkTest, AnUnsolicitedReplyClosesTheConnection)
{
    auto redis = connectFor(x);
    connection.flush();
    redis.reply(":1\r\n:2\r\n");
    EXPECT_FALSE(connection.sweep());
    EXPECT_EQ(inWords(*x), "1");
    EXPECT_TRUE(connection.idle());
    EXPECT_THAT(redis.requests(), ElementsAre("x"));
    EXPECT_TRUE(redis.isLeft());
    EXPECT_THAT(reports, ElementsAre(Pair(true, Errc{}), Pair(false, Errc::unreachable)));
    EXPECT_EQ(connects.size(), 1U) << "nobody needs another";
    connection.enqueue(y);
    EXPECT_EQ(connects.size(), 2U);
}

// A reply that came twice would otherwise shift all later replies by one, and grant locks that were refused.
TEST_F(ThreadLinkTest, AReplyThatCameWhileNothingWasAskedIsGivenToNobody)
{
    auto redis = connectFor(x);
    connection.flush();
    redis.reply(":1\r\n");
    EXPECT_FALSE(connection.sweep());
    EXPECT_EQ(inWords(*x), "1");
    redis.replyUnasked(":1\r\n");
    connection.enqueue(y);
    connection.flush();
    connection.sweep();
    EXPECT_NE(inWords(*y), "1");
    EXPECT_EQ(connects.size(), 2U);
}

TEST_F(ThreadLinkTest, BytesThatAreNoReplyCloseTheConnection)
{
    auto redis = connectFor(a);
    connection.enqueue(x);
    redis.reply(":1\r\nHTTP/1.1 400 Bad Request\r\n");
    EXPECT_EQ(inWords(*a, connection.await(*a, never)), "1") << "what came before counts";
    EXPECT_EQ(inWords(*x), "reply lost");
    EXPECT_EQ(x->ends, 1);
    EXPECT_THAT(redis.requests(), ElementsAre("a", "x"));
    EXPECT_TRUE(redis.isLeft());
}

TEST_F(ThreadLinkTest, AReplyThatIsTooLargeClosesTheConnection)
{
    auto redis = connectFor(a);
    redis.reply("*1000000\r\n");
    EXPECT_EQ(inWords(*a, connection.await(*a, never)), "reply lost");
    EXPECT_EQ(connects.size(), 1U);
}

TEST_F(ThreadLinkTest, RepliesBeforeTheEndOfTheConnectionAreGiven)
{
    auto redis = connectFor(a);
    connection.enqueue(b);
    connection.enqueue(x);
    connection.flush();
    redis.reply(":1\r\n:2");
    redis.hangUp();
    EXPECT_EQ(inWords(*a, connection.await(*a, never)), "1");
    EXPECT_EQ(inWords(*b, connection.await(*b, never)), "reply lost") << "half a reply is none";
    EXPECT_EQ(inWords(*x), "reply lost");
    EXPECT_EQ(x->ends, 1);
}

TEST_F(ThreadLinkTest, FlushFindsALostConnectionToo)
{
    auto redis = connectFor(x);
    redis.hangUp();
    connection.flush();
    EXPECT_TRUE(x->pending) << "it was not written";
    ASSERT_EQ(connects.size(), 2U);
    auto next = connect();
    connection.flush();
    EXPECT_THAT(next.requests(), ElementsAre("x"));
}

// ------------------------------------------------------------------------------------------------- Time-outs

class ThreadLinkTimeOut : public ThreadLinkTest {
protected:
    ThreadLink hasty{{.connect = [this](TimePoint notBefore) { wantConnection(notBefore); },
                      .hurry = [](TimePoint) {},
                      .demoted = [](const std::string&) {},
                      .sweepSoon = [this] { ++sweepsWanted; },
                      .refused = [](const Reply&, const Call*) {},
                      .report = [this](bool up, Reason error) { reports.emplace_back(up, error.errc()); }},
                     1ms,
                     1};
    FakeRedis hastyConnect()
    {
        const auto [client, server] = socketPair(SOCK_STREAM);
        hasty.connected(Stream(client));
        return FakeRedis(server);
    }
};

TEST_F(ThreadLinkTimeOut, TheOldestUnansweredRequestEndsTheConnectionForEverybody)
{
    hasty.enqueue(a);
    hasty.enqueue(b);
    hasty.enqueue(x);
    auto redis = hastyConnect();
    EXPECT_EQ(inWords(*b, hasty.await(*b, never)), "reply lost");
    EXPECT_EQ(inWords(*a, hasty.await(*a, never)), "reply lost");
    EXPECT_EQ(inWords(*x), "reply lost");
    EXPECT_EQ(x->ends, 1);
    EXPECT_THAT(redis.requests(), ElementsAre("a", "b", "x"));
    EXPECT_TRUE(redis.isLeft());
    EXPECT_THAT(reports, ElementsAre(Pair(true, Errc{}), Pair(false, Errc::unreachable)));
    EXPECT_TRUE(hasty.idle());
}

TEST_F(ThreadLinkTimeOut, TheRequestOfACallerThatLeftEndsItToo)
{
    hasty.enqueue(a);
    auto redis = hastyConnect();
    hasty.await(*a, past);
    hasty.enqueue(b);
    EXPECT_EQ(inWords(*b, hasty.await(*b, never)), "reply lost");
    EXPECT_TRUE(hasty.idle());
}

TEST_F(ThreadLinkTimeOut, TheSweepEndsItWhenNobodyWaits)
{
    hasty.enqueue(x);
    auto redis = hastyConnect();
    hasty.flush();
    const auto sentAt = x->sentAt;
    while (hasty.sweep()) {
        std::this_thread::yield();
    }
    EXPECT_GE(BootClock::now(), sentAt + 1ms);
    EXPECT_EQ(inWords(*x), "reply lost");
    EXPECT_EQ(x->ends, 1);
}

TEST_F(ThreadLinkTimeOut, AnIdleConnectionHasNone)
{
    hasty.enqueue(x);
    auto redis = hastyConnect();
    hasty.flush();
    redis.reply(":1\r\n");
    EXPECT_FALSE(hasty.sweep());
    const TimePoint later = BootClock::now() + 2ms;
    while (BootClock::now() < later) {
        EXPECT_FALSE(hasty.sweep());
    }
    EXPECT_FALSE(redis.requests().empty());
    EXPECT_FALSE(redis.isLeft());
}

// -------------------------------------------------------------------------------------------------- Shutdown

TEST_F(ThreadLinkTest, ShutdownEndsWrittenAndUnwrittenCallsAndLaterOnes)
{
    auto redis = connectFor(x);
    connection.flush();
    connection.enqueue(a);
    connection.enqueue(y);
    connection.shutdown(Errc::shutdown);
    for (const auto& call : {x, y, a}) {
        EXPECT_EQ(inWords(*call), afterShutdown);
        EXPECT_EQ(call->outcome.fault.failure, Failure::fatal);
    }
    EXPECT_EQ(inWords(*a, connection.await(*a, never)), afterShutdown);
    EXPECT_EQ(x->ends, 1);
    EXPECT_EQ(y->ends, 1);
    EXPECT_FALSE(connection.enqueue(b, z));
    EXPECT_EQ(inWords(*b, connection.await(*b, never)), afterShutdown);
    EXPECT_EQ(inWords(*z), afterShutdown);
    EXPECT_EQ(z->ends, 0) << "who queued it knows";
    EXPECT_TRUE(connection.idle());
    EXPECT_THAT(redis.requests(), ElementsAre("x"));
    EXPECT_TRUE(redis.isLeft());
    EXPECT_EQ(connects.size(), 1U);
}

TEST_F(ThreadLinkTest, ShutdownIsOnceAndNothingComesAfterIt)
{
    connection.enqueue(a);
    connection.shutdown(Errc::forked);
    connection.shutdown(Errc::shutdown);
    EXPECT_EQ(inWords(*a, connection.await(*a, never)), make_error_code(Errc::forked).message());
    const FakeRedis late = connect();
    EXPECT_TRUE(late.isLeft());
    connection.connectFailed({});
    connection.flush();
    EXPECT_FALSE(connection.sweep());
    EXPECT_THAT(reports, IsEmpty());
    connection.enqueue(x);
    EXPECT_EQ(inWords(*x), make_error_code(Errc::forked).message());
}

} // namespace
} // namespace redislock::detail
