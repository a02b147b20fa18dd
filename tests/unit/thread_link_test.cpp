#include "unit/thread_link_rig.hpp"

#include <future>
#include <stop_token>

namespace redislock::detail {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using Mode = Call::Mode;

// ---------------------------------------------------------------------------------------------- Connecting

TEST_F(ThreadLinkTest, ConnectsWhenTheFirstCallNeedsItAndOnlyOnce)
{
    EXPECT_THAT(connects, IsEmpty());
    EXPECT_TRUE(connection.idle());
    connection.enqueue(a);
    connection.enqueue(b);
    connection.flush();
    ASSERT_EQ(connects.size(), 1U);
    EXPECT_LE(connects[0], BootClock::now()) << "at once";
    EXPECT_FALSE(connection.idle());
    EXPECT_FALSE(connection.sweep()) << "there is nothing to read from";
    EXPECT_EQ(sweepsWanted, 0);
    connect();
    EXPECT_THAT(reports, ElementsAre(Pair(true, Errc{})));
}

TEST_F(ThreadLinkTest, WhoAsksOnceWaitsForNoLongPause)
{
    const TimePoint before = BootClock::now();
    for (int i = 0; i < 10; ++i) { // until the pauses are long
        connection.enqueue(b);
        connection.connectFailed({Failure::notConnected, Errc::unreachable});
    }
    connection.enqueue(b);
    EXPECT_GE(connects.back(), before + 800ms);
    EXPECT_THAT(hurries, IsEmpty());
    a->isHurried = true;
    connection.enqueue(a);
    ASSERT_EQ(hurries.size(), 1U) << "the attempt that was asked for already begins sooner";
    EXPECT_LE(hurries.back(), BootClock::now() + 50ms);
    EXPECT_EQ(connects.size(), 11U);
    const TimePoint failed = BootClock::now();
    connection.connectFailed({Failure::notConnected, Errc::unreachable});
    connection.enqueue(a);
    ASSERT_EQ(hurries.size(), 2U);
    EXPECT_GE(hurries.back(), failed + 50ms) << "who asks again and again does not connect all the time";
}

TEST_F(ThreadLinkTest, ACallThatComesBackFromItsEndIsTakenForTheNextConnection)
{
    x->atEnd = [this] {
        if (x->ends < 3) {
            connection.enqueue(x);
        }
    };
    connection.enqueue(x);
    connection.connectFailed({Failure::notConnected, Errc::unreachable});
    connection.connectFailed({Failure::notConnected, Errc::unreachable});
    EXPECT_EQ(connects.size(), 3U);
    EXPECT_EQ(x->ends, 2);
    auto redis = connect();
    connection.flush();
    redis.reply(":7\r\n");
    EXPECT_FALSE(connection.sweep());
    EXPECT_EQ(x->ends, 3);
    EXPECT_EQ(inWords(*x), "7");
}

TEST_F(ThreadLinkTest, AConnectionThatNobodyNeedsIsThrownAway)
{
    FakeRedis unwanted = connect();
    EXPECT_TRUE(unwanted.isLeft());
    EXPECT_THAT(reports, IsEmpty());
    connection.connectFailed({});
    EXPECT_THAT(reports, IsEmpty());
}

// ------------------------------------------------------------------------------------- Writing and reading

TEST_F(ThreadLinkTest, QueuedCallsAreWrittenInOneWriteInTheirOrder)
{
    auto redis = connectFor(a, SOCK_SEQPACKET);
    connection.enqueue(x);
    connection.enqueue(b);
    redis.reply(":1\r\n");
    EXPECT_EQ(inWords(*a, connection.await(*a, never)), "1");
    EXPECT_THAT(redis.nextRequests(), ElementsAre("a", "x", "b"));
    EXPECT_THAT(redis.requests(), IsEmpty());
}

TEST_F(ThreadLinkTest, RepliesInOrderGoToTheirCallersWhoeverReadsThem)
{
    auto redis = connectFor(a);
    connection.enqueue(b);
    connection.enqueue(x);
    connection.enqueue(c);
    redis.reply(":1\r\n:2\r\n:3\r\n:4\r\n");
    EXPECT_EQ(inWords(*b, connection.await(*b, never)), "2");
    EXPECT_EQ(inWords(*a), "1");
    EXPECT_EQ(inWords(*x), "3");
    EXPECT_EQ(inWords(*c), "4");
    EXPECT_EQ(x->ends, 1);
    EXPECT_EQ(inWords(*a, connection.await(*a, past)), "1") << "there already";
    EXPECT_EQ(inWords(*c, connection.await(*c, past)), "4");
    EXPECT_EQ(a->ends + b->ends + c->ends, 0) << "who waits is not told besides";
    EXPECT_TRUE(connection.idle());
}

TEST_F(ThreadLinkTest, RepliesMayComeInPieces)
{
    auto redis = connectFor(x);
    connection.enqueue(y);
    connection.flush();
    const std::string_view replies = ":12345\r\n$-1\r\n";
    for (std::size_t i = 0; i < replies.size(); ++i) {
        EXPECT_EQ(x->pending, i < 8) << i;
        EXPECT_TRUE(y->pending);
        EXPECT_TRUE(connection.sweep());
        redis.reply(replies.substr(i, 1));
        connection.sweep();
    }
    EXPECT_EQ(inWords(*x), "12345");
    EXPECT_FALSE(y->pending);
    EXPECT_EQ(y->reply.kind, Reply::Kind::nil);
}

TEST_F(ThreadLinkTest, ALargeRequestIsWrittenAsTheSocketTakesIt)
{
    const auto large = awaited(bytes(3'000'000));
    auto redis = connectFor(large);
    connection.enqueue(b);
    std::string expected;
    large->encode(expected, Call::Form::bySha);
    b->encode(expected, Call::Form::bySha);
    std::thread server([&] {
        std::size_t got = 0;
        while (got < expected.size()) {
            got += redis.drain();
            std::this_thread::yield();
        }
        redis.reply(":1\r\n:2\r\n");
    });
    EXPECT_EQ(inWords(*large, connection.await(*large, never)), "1");
    EXPECT_EQ(inWords(*b, connection.await(*b, never)), "2");
    server.join();
}

// -------------------------------------------------------------------------------------- Callers that leave

TEST_F(ThreadLinkTest, ACallerThatLeavesLeavesItsSlot)
{
    auto redis = connectFor(a);
    EXPECT_EQ(inWords(*a, connection.await(*a, past)), "pending") << "the request stays";
    EXPECT_EQ(a->mode, Mode::abandoned);
    connection.enqueue(b);
    redis.reply(":1\r\n:2\r\n");
    EXPECT_EQ(inWords(*b, connection.await(*b, never)), "2");
    EXPECT_THAT(redis.requests(), ElementsAre("a", "b"));
    EXPECT_FALSE(a->pending);
    EXPECT_EQ(a->ends, 0) << "nobody is told";
}

TEST_F(ThreadLinkTest, AnAnswerThatHasComeIsReadThoughTheTimeOfItsCallerIsOver)
{
    auto redis = connectFor(a);
    connection.flush();
    redis.reply(":1\r\n");
    EXPECT_EQ(inWords(*a, connection.await(*a, past)), "1");
}

TEST_F(ThreadLinkTest, WhatACallerLeftIsReadByTheSweep)
{
    auto redis = connectFor(a);
    connection.await(*a, past);
    EXPECT_EQ(sweepsWanted, 1) << "nobody else is there";
    EXPECT_THAT(redis.requests(), ElementsAre("a"));
    EXPECT_TRUE(connection.sweep());
    redis.reply(":1\r\n");
    EXPECT_FALSE(connection.sweep());
    EXPECT_TRUE(connection.idle());
}

TEST_F(ThreadLinkTest, ACallerThatLeavesHandsOnToTheNextWaiter)
{
    const auto redis = connectFor(a);
    a->signal.waitUntil(past); // the connection wakes it
    connection.enqueue(x);
    connection.enqueue(b);
    EXPECT_EQ(b->signal.waitUntil(past), 0U);
    connection.await(*a, past);
    EXPECT_EQ(b->signal.waitUntil(past), Signal::look);
    EXPECT_EQ(sweepsWanted, 0) << "the waiter leads";
}

TEST_F(ThreadLinkTest, AConnectionThatCameTooLateForItsOnlyCallerWaitsForTheNext)
{
    connection.enqueue(a);
    connection.await(*a, past);
    EXPECT_TRUE(connection.idle());
    auto redis = connect();
    EXPECT_EQ(sweepsWanted, 0);
    EXPECT_FALSE(connection.sweep());
    redis.reply(""); // nothing
    connection.enqueue(x);
    EXPECT_EQ(connects.size(), 1U);
    connection.flush();
    EXPECT_THAT(redis.requests(), ElementsAre("x"));
}

// For instance another thread made the caller's request, and the caller ended before it knew.
TEST_F(ThreadLinkTest, ACallerThatNeverCameLeavesTheLeadToTheSweep)
{
    auto redis = connectFor(x);
    connection.enqueue(a);
    connection.flush();
    EXPECT_EQ(a->signal.waitUntil(past), Signal::look) << "chosen to lead";
    EXPECT_EQ(sweepsWanted, 1) << "from before";
    EXPECT_EQ(connection.giveUp(*a).failure, Failure::lostReply) << "it may have been sent";
    EXPECT_TRUE(connection.sweep());
    redis.reply(":1\r\n:2\r\n");
    EXPECT_FALSE(connection.sweep());
    EXPECT_EQ(inWords(*x), "1");
    EXPECT_TRUE(connection.idle());
    EXPECT_EQ(connection.giveUp(*a).failure, Failure::lostReply) << "it has ended";
}

TEST_F(ThreadLinkTest, ACallerThatNeverCameWakesTheNext)
{
    connectFor(a);
    connection.enqueue(b);
    EXPECT_EQ(a->signal.waitUntil(past), Signal::look);
    EXPECT_EQ(connection.giveUp(*b).failure, Failure::lostReply);
    EXPECT_EQ(a->signal.waitUntil(past), Signal::look) << "again";
    EXPECT_EQ(sweepsWanted, 0);
}

// -------------------------------------------------------------------------------------------- Unawaited calls

TEST_F(ThreadLinkTest, UnawaitedCallsEndThroughTheSweepWhichIsAskedForOnce)
{
    auto redis = connectFor(x);
    EXPECT_EQ(sweepsWanted, 1) << "who queued it may not come back";
    connection.flush();
    EXPECT_THAT(redis.requests(), ElementsAre("x"));
    connection.enqueue(y);
    connection.flush();
    EXPECT_THAT(redis.requests(), ElementsAre("y"));
    EXPECT_EQ(sweepsWanted, 1);
    EXPECT_TRUE(connection.sweep());
    redis.reply(":1\r\n");
    EXPECT_TRUE(connection.sweep());
    EXPECT_EQ(x->ends, 1);
    EXPECT_EQ(inWords(*x), "1");
    redis.reply(":2\r\n");
    EXPECT_FALSE(connection.sweep()) << "nothing is outstanding";
    EXPECT_EQ(y->ends, 1);
    EXPECT_EQ(inWords(*y), "2");
    EXPECT_EQ(sweepsWanted, 1);
    connection.enqueue(z);
    connection.flush();
    EXPECT_EQ(sweepsWanted, 2) << "armed anew";
}

TEST_F(ThreadLinkTest, FlushAsksForNoSweepWhereAWaiterWillRead)
{
    auto redis = connectFor(a);
    a->signal.waitUntil(past); // the connection wakes it
    connection.enqueue(x);
    connection.flush();
    EXPECT_EQ(sweepsWanted, 0);
    EXPECT_EQ(a->signal.waitUntil(past), Signal::look);
    redis.reply(":1\r\n");
    EXPECT_EQ(inWords(*a, connection.await(*a, never)), "1");
    EXPECT_EQ(sweepsWanted, 1) << "nobody is left to read the reply of x";
    redis.reply(":2\r\n");
    EXPECT_FALSE(connection.sweep());
    EXPECT_EQ(x->ends, 1);
}

TEST_F(ThreadLinkTest, AnUnawaitedCallMayQueueTheNextFromItsEnd)
{
    auto redis = connectFor(x);
    x->atEnd = [this] {
        connection.enqueue(y);
        connection.flush();
    };
    connection.flush();
    redis.reply(":1\r\n");
    EXPECT_TRUE(connection.sweep());
    EXPECT_THAT(redis.requests(), ElementsAre("x", "y"));
    redis.reply(":2\r\n");
    EXPECT_FALSE(connection.sweep());
    EXPECT_EQ(inWords(*y), "2");
}

TEST_F(ThreadLinkTest, AnUnawaitedCallThatEndsUnderALeaderMayQueueTheNext)
{
    auto redis = connectFor(x);
    x->atEnd = [this] {
        connection.enqueue(y);
        connection.flush();
    };
    connection.enqueue(a);
    redis.reply(":1\r\n:2\r\n");
    EXPECT_EQ(inWords(*a, connection.await(*a, never)), "2");
    EXPECT_EQ(x->ends, 1);
    connection.sweep();
    redis.reply(":3\r\n");
    connection.sweep();
    EXPECT_THAT(redis.requests(), ElementsAre("x", "a", "y"));
    EXPECT_EQ(inWords(*y), "3");
}

TEST_F(ThreadLinkTest, EveryCallThatIsLeftBehindIsLetGoOf)
{
    std::weak_ptr<TestCall> left;
    auto redis = connectFor(x);
    {
        const auto call = awaited("left");
        left = call;
        connection.enqueue(call);
        connection.await(*call, past);
    }
    EXPECT_FALSE(left.expired());
    connection.flush();
    redis.reply(":1\r\n:2\r\n");
    connection.sweep();
    EXPECT_TRUE(left.expired());
}

// ------------------------------------------------------------------------------------------- A demoted server

const char* const readOnly = "-READONLY You can't write against a read only replica.\r\n";

TEST_F(ThreadLinkTest, ADemotedServerIsSentNothingMoreAndLeftWhenItsAnswersWereRead)
{
    auto old = connectFor(a);
    connection.enqueue(x);
    connection.flush();
    EXPECT_THAT(old.requests(), ElementsAre("a", "x"));
    old.replyUnasked(readOnly);
    EXPECT_TRUE(connection.await(*a, never).replied);
    EXPECT_EQ(demotions, 1);
    connection.enqueue(y);
    connection.flush();
    EXPECT_THAT(old.requests(), IsEmpty()) << "it was asked again";
    EXPECT_FALSE(old.isLeft()) << "an answer is due";
    EXPECT_EQ(connects.size(), 1U);
    old.replyUnasked(":1\r\n");
    connection.sweep();
    EXPECT_EQ(inWords(*x), "1");
    EXPECT_TRUE(old.isLeft());
    ASSERT_EQ(connects.size(), 2U);
    EXPECT_LE(connects[1], BootClock::now()) << "at once";
    EXPECT_THAT(reports, ElementsAre(Pair(true, Errc{}), Pair(false, Errc::serverRefused)));
    auto next = connect();
    connection.flush();
    EXPECT_THAT(next.requests(), ElementsAre("y"));
    next.replyUnasked(":2\r\n");
    connection.sweep();
    EXPECT_EQ(inWords(*y), "2");
}

TEST_F(ThreadLinkTest, ACallThatIsCalledOffIsLeftAsItIs)
{
    std::stop_source source;
    source.request_stop();
    connection.enqueue(a);
    EXPECT_TRUE(connection.await(*a, never, ThreadLink::First::lead, source.get_token()).calledOff);
    EXPECT_TRUE(a->pending);
    EXPECT_EQ(connection.giveUp(*a).failure, Failure::notConnected) << "it was not sent";
    EXPECT_FALSE(a->pending);
    EXPECT_TRUE(connection.idle());
}

// The leader waits for the socket, the others for their signals.
TEST_F(ThreadLinkTest, CallersThatAreCalledOffReturnThoughTheServerIsSilent)
{
    auto redis = connectFor(x);
    std::stop_source source;
    const auto wait = [&](const std::shared_ptr<TestCall>& call) {
        return std::async(std::launch::async, [&, call] {
            connection.enqueue(call);
            const std::stop_callback wakes(source.get_token(), [&] { call->signal.notify(Signal::look); });
            return connection.await(*call, never, ThreadLink::First::lead, source.get_token());
        });
    };
    auto first = wait(a);
    EXPECT_THAT(redis.nextRequests(), ElementsAre("x", "a"));
    auto second = wait(b);
    EXPECT_THAT(redis.nextRequests(), ElementsAre("b")) << "the leader wrote it, or its caller";
    source.request_stop();
    EXPECT_TRUE(first.get().calledOff);
    EXPECT_TRUE(second.get().calledOff);
    EXPECT_EQ(connection.giveUp(*a).failure, Failure::lostReply) << "it was sent";
    EXPECT_EQ(connection.giveUp(*b).failure, Failure::lostReply) << "it was sent";
    redis.reply(":1\r\n:2\r\n:3\r\n");
    while (connection.sweep()) {
    }
    EXPECT_EQ(inWords(*x), "1");
    EXPECT_TRUE(connection.idle()) << "their answers were read";
}

} // namespace
} // namespace redislock::detail
