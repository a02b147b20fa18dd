#include "unit/blocking_connection_rig.hpp"

#include <future>
#include <stop_token>

namespace redislock::detail {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using Mode = Call::Mode;

// ---------------------------------------------------------------------------------------------- Connecting

TEST_F(BlockingConnectionTest, ConnectsWhenTheFirstCallNeedsItAndOnlyOnce)
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

TEST_F(BlockingConnectionTest, WhenItCannotConnectAllCallsFailAndTheNextTryIsLater)
{
    connection.enqueue(a);
    connection.enqueue(x);
    connection.connectFailed({Failure::notConnected, Errc::unreachable});
    EXPECT_EQ(inWords(*a, connection.await(*a, never)), "not connected");
    EXPECT_EQ(inWords(*x), "not connected");
    EXPECT_EQ(x->ends, 1);
    EXPECT_TRUE(connection.idle());
    EXPECT_THAT(reports, ElementsAre(Pair(false, Errc::unreachable)));
    const TimePoint before = BootClock::now();
    connection.enqueue(b);
    ASSERT_EQ(connects.size(), 2U);
    EXPECT_GT(connects[1], before);
    EXPECT_LT(connects[1], BootClock::now() + 100ms);
}

TEST_F(BlockingConnectionTest, WhoAsksOnceWaitsForNoLongPause)
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

TEST_F(BlockingConnectionTest, AFatalFaultOfTheConnectReachesTheCallers)
{
    connection.enqueue(a);
    connection.connectFailed({Failure::fatal, Errc::authFailed});
    EXPECT_EQ(inWords(*a, connection.await(*a, never)), make_error_code(Errc::authFailed).message());
}

TEST_F(BlockingConnectionTest, ACallThatComesBackFromItsEndIsTakenForTheNextConnection)
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

TEST_F(BlockingConnectionTest, AConnectionThatNobodyNeedsIsThrownAway)
{
    FakeRedis unwanted = connect();
    EXPECT_TRUE(unwanted.isLeft());
    EXPECT_THAT(reports, IsEmpty());
    connection.connectFailed({});
    EXPECT_THAT(reports, IsEmpty());
}

// ------------------------------------------------------------------------------------- Writing and reading

TEST_F(BlockingConnectionTest, QueuedCallsAreWrittenInOneWriteInTheirOrder)
{
    auto redis = connectFor(a, SOCK_SEQPACKET);
    connection.enqueue(x);
    connection.enqueue(b);
    redis.reply(":1\r\n");
    EXPECT_EQ(inWords(*a, connection.await(*a, never)), "1");
    EXPECT_THAT(redis.nextRequests(), ElementsAre("a", "x", "b"));
    EXPECT_THAT(redis.requests(), IsEmpty());
}

TEST_F(BlockingConnectionTest, ACallAndTheOneBehindItStayTogether)
{
    auto redis = connectFor(a);
    connection.enqueue(x, y);
    connection.enqueue(b, nullptr);
    connection.flush();
    EXPECT_THAT(redis.requests(), ElementsAre("a", "x", "y", "b"));
}

TEST_F(BlockingConnectionTest, RepliesInOrderGoToTheirCallersWhoeverReadsThem)
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

TEST_F(BlockingConnectionTest, RepliesMayComeInPieces)
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

TEST_F(BlockingConnectionTest, ErrorRepliesAreReplies)
{
    auto redis = connectFor(a);
    redis.reply("-OOM command not allowed\r\n");
    EXPECT_EQ(inWords(*a, connection.await(*a, never)), "OOM command not allowed");
}

TEST_F(BlockingConnectionTest, TheSentTimeIsFromBeforeTheWrite)
{
    auto redis = connectFor(a);
    const TimePoint before = BootClock::now();
    redis.reply(":1\r\n");
    connection.await(*a, never);
    EXPECT_GE(a->sentAt, before);
    EXPECT_LE(a->sentAt, BootClock::now());
}

TEST_F(BlockingConnectionTest, ALargeRequestIsWrittenAsTheSocketTakesIt)
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

TEST_F(BlockingConnectionTest, ACallerThatLeavesLeavesItsSlot)
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

TEST_F(BlockingConnectionTest, ACallerThatLeavesIsToldThatItsRequestMayBeSent)
{
    const auto redis = connectFor(a);
    const Outcome outcome = connection.await(*a, past);
    EXPECT_FALSE(outcome.replied);
    EXPECT_EQ(outcome.fault, (Fault{Failure::lostReply, Cause::silent}));
}

TEST_F(BlockingConnectionTest, AnAnswerThatHasComeIsReadThoughTheTimeOfItsCallerIsOver)
{
    auto redis = connectFor(a);
    connection.flush();
    redis.reply(":1\r\n");
    EXPECT_EQ(inWords(*a, connection.await(*a, past)), "1");
}

TEST_F(BlockingConnectionTest, WhatACallerLeftIsReadByTheSweep)
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

TEST_F(BlockingConnectionTest, ACallerThatLeavesHandsOnToTheNextWaiter)
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

TEST_F(BlockingConnectionTest, ACallWhoseCallerLeftBeforeTheConnectionIsNeverSent)
{
    connection.enqueue(a);
    connection.enqueue(b);
    connection.enqueue(c);
    const Outcome outcome = connection.await(*b, past);
    EXPECT_EQ(outcome.fault, (Fault{Failure::notConnected, Cause::connectTimedOut}));
    EXPECT_FALSE(b->pending);
    auto redis = connect();
    redis.reply(":1\r\n:3\r\n");
    EXPECT_EQ(inWords(*c, connection.await(*c, never)), "3");
    EXPECT_THAT(redis.requests(), ElementsAre("a", "c"));
}

TEST_F(BlockingConnectionTest, AConnectionThatCameTooLateForItsOnlyCallerWaitsForTheNext)
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
TEST_F(BlockingConnectionTest, ACallerThatNeverCameLeavesTheLeadToTheSweep)
{
    auto redis = connectFor(x);
    connection.enqueue(a);
    connection.flush();
    EXPECT_EQ(a->signal.waitUntil(past), Signal::look) << "chosen to lead";
    EXPECT_EQ(sweepsWanted, 1) << "from before";
    EXPECT_FALSE(connection.leave(*a)) << "it may have been sent";
    EXPECT_TRUE(connection.sweep());
    redis.reply(":1\r\n:2\r\n");
    EXPECT_FALSE(connection.sweep());
    EXPECT_EQ(inWords(*x), "1");
    EXPECT_TRUE(connection.idle());
    EXPECT_FALSE(connection.leave(*a)) << "it has ended";
}

TEST_F(BlockingConnectionTest, ACallerThatNeverCameWakesTheNext)
{
    connectFor(a);
    connection.enqueue(b);
    EXPECT_EQ(a->signal.waitUntil(past), Signal::look);
    EXPECT_FALSE(connection.leave(*b));
    EXPECT_EQ(a->signal.waitUntil(past), Signal::look) << "again";
    EXPECT_EQ(sweepsWanted, 0);
}

TEST_F(BlockingConnectionTest, ACallThatWaitsForAConnectionMayBeWithdrawn)
{
    connection.enqueue(a);
    connection.enqueue(b);
    connection.withdraw(b, Errc::shutdown);
    EXPECT_EQ(inWords(*b, connection.await(*b, never)), afterShutdown);
    auto redis = connect();
    connection.withdraw(a, Errc::shutdown);
    EXPECT_TRUE(a->pending) << "it is about to be sent";
    redis.reply(":1\r\n");
    EXPECT_EQ(inWords(*a, connection.await(*a, never)), "1");
    EXPECT_THAT(redis.requests(), ElementsAre("a"));
}

// -------------------------------------------------------------------------------------------- Unawaited calls

TEST_F(BlockingConnectionTest, UnawaitedCallsEndThroughTheSweepWhichIsAskedForOnce)
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

TEST_F(BlockingConnectionTest, FlushAsksForNoSweepWhereAWaiterWillRead)
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

TEST_F(BlockingConnectionTest, AnUnawaitedCallMayQueueTheNextFromItsEnd)
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

TEST_F(BlockingConnectionTest, AnUnawaitedCallThatEndsUnderALeaderMayQueueTheNext)
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

TEST_F(BlockingConnectionTest, EveryCallThatIsLeftBehindIsLetGoOf)
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

// -------------------------------------------------------------------------------------------------- NOSCRIPT

TEST_F(BlockingConnectionTest, AnUnknownScriptIsSentWholeForAwaitedAndUnawaitedCalls)
{
    auto redis = connectFor(x);
    connection.enqueue(a);
    TimePoint told{};
    std::thread server([&] {
        EXPECT_THAT(redis.nextRequests(), ElementsAre("x", "a"));
        told = BootClock::now();
        redis.reply("-NOSCRIPT No matching script. Please use EVAL.\r\n-NOSCRIPT\r\n");
        EXPECT_THAT(redis.nextRequests(), ElementsAre("EVAL x", "EVAL a"));
        redis.reply(":1\r\n:2\r\n");
    });
    EXPECT_EQ(inWords(*a, connection.await(*a, never)), "2");
    EXPECT_EQ(inWords(*x), "1");
    EXPECT_EQ(x->ends, 1);
    server.join();
    EXPECT_GT(a->sentAt, told) << "the time of the request that was answered";
}

TEST_F(BlockingConnectionTest, TheCallOfACallerThatLeftIsNotSentAgain)
{
    auto redis = connectFor(a);
    connection.await(*a, past);
    connection.sweep();
    redis.reply("-NOSCRIPT No matching script.\r\n");
    EXPECT_FALSE(connection.sweep());
    EXPECT_THAT(redis.requests(), ElementsAre("a"));
    EXPECT_TRUE(connection.idle());
}

TEST_F(BlockingConnectionTest, AScriptThatIsUnknownThoughItWasSentWholeIsNotSentForever)
{
    auto redis = connectFor(x);
    connection.flush();
    redis.reply("-NOSCRIPT\r\n");
    connection.sweep();
    connection.sweep();
    redis.reply("-NOSCRIPT really\r\n");
    EXPECT_FALSE(connection.sweep());
    EXPECT_EQ(inWords(*x), "NOSCRIPT really");
    EXPECT_THAT(redis.requests(), ElementsAre("x", "EVAL x"));
}

TEST_F(BlockingConnectionTest, TheNextUseOfACallNamesTheScriptAgain)
{
    auto redis = connectFor(x);
    connection.flush();
    redis.reply("-NOSCRIPT\r\n");
    connection.sweep();
    connection.sweep();
    redis.reply(":1\r\n");
    connection.sweep();
    connection.enqueue(x);
    connection.flush();
    EXPECT_THAT(redis.requests(), ElementsAre("x", "EVAL x", "x"));
}

// ------------------------------------------------------------------------------------------- A demoted server

const char* const readOnly = "-READONLY You can't write against a read only replica.\r\n";

TEST_F(BlockingConnectionTest, ADemotedServerIsSentNothingMoreAndLeftWhenItsAnswersWereRead)
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

TEST_F(BlockingConnectionTest, AServerThatStaysAReplicaIsAskedAgainAfterPauses)
{
    auto first = connectFor(a);
    first.reply(readOnly);
    EXPECT_TRUE(connection.await(*a, never).replied);
    EXPECT_THAT(first.requests(), ElementsAre("a"));
    EXPECT_TRUE(first.isLeft());
    EXPECT_EQ(connects.size(), 1U) << "nobody needs another one";
    connection.enqueue(b);
    ASSERT_EQ(connects.size(), 2U);
    EXPECT_LE(connects[1], BootClock::now()) << "at once";
    auto second = connect();
    const TimePoint before = BootClock::now();
    second.reply(readOnly);
    EXPECT_TRUE(connection.await(*b, never).replied);
    connection.enqueue(x);
    ASSERT_EQ(connects.size(), 3U);
    EXPECT_GE(connects[2], before + 40ms) << "a moment later as well";
    EXPECT_EQ(demotions, 2);
    const auto outcome = connection.await(*x, BootClock::now());
    EXPECT_FALSE(outcome.replied);
    EXPECT_EQ(outcome.fault.failure, Failure::notConnected);
    EXPECT_EQ(outcome.fault.error, Errc::serverRefused) << "nobody but a replica was found";
}

TEST_F(BlockingConnectionTest, ACallThatIsCalledOffIsLeftAsItIs)
{
    std::stop_source source;
    source.request_stop();
    connection.enqueue(a);
    EXPECT_TRUE(connection.await(*a, never, BlockingConnection::First::lead, source.get_token()).calledOff);
    EXPECT_TRUE(a->pending);
    EXPECT_TRUE(connection.leave(*a)) << "it was not sent";
    EXPECT_FALSE(a->pending);
    EXPECT_TRUE(connection.idle());
}

// The leader waits for the socket, the others for their signals.
TEST_F(BlockingConnectionTest, CallersThatAreCalledOffReturnThoughTheServerIsSilent)
{
    auto redis = connectFor(x);
    std::stop_source source;
    const auto wait = [&](const std::shared_ptr<TestCall>& call) {
        return std::async(std::launch::async, [&, call] {
            connection.enqueue(call);
            const std::stop_callback wakes(source.get_token(), [&] { call->signal.notify(Signal::look); });
            return connection.await(*call, never, BlockingConnection::First::lead, source.get_token());
        });
    };
    auto first = wait(a);
    EXPECT_THAT(redis.nextRequests(), ElementsAre("x", "a"));
    auto second = wait(b);
    EXPECT_THAT(redis.nextRequests(), ElementsAre("b")) << "the leader wrote it, or its caller";
    source.request_stop();
    EXPECT_TRUE(first.get().calledOff);
    EXPECT_TRUE(second.get().calledOff);
    EXPECT_FALSE(connection.leave(*a)) << "it was sent";
    EXPECT_FALSE(connection.leave(*b)) << "it was sent";
    redis.reply(":1\r\n:2\r\n:3\r\n");
    while (connection.sweep()) {
    }
    EXPECT_EQ(inWords(*x), "1");
    EXPECT_TRUE(connection.idle()) << "their answers were read";
}

TEST_F(BlockingConnectionTest, WhatWaitsToLeaveADemotedServerMayBeWithdrawnOrLeft)
{
    auto old = connectFor(a);
    connection.enqueue(x);
    connection.flush();
    old.replyUnasked(readOnly);
    EXPECT_TRUE(connection.await(*a, never).replied);
    connection.enqueue(b);
    connection.enqueue(c);
    connection.withdraw(b, Errc::shutdown);
    EXPECT_EQ(inWords(*b), afterShutdown);
    EXPECT_TRUE(connection.leave(*c)) << "it was not sent";
    connection.withdraw(x, Errc::shutdown);
    EXPECT_TRUE(x->pending) << "its answer is due";
    EXPECT_EQ(x->ends, 0);
}

} // namespace
} // namespace redislock::detail
