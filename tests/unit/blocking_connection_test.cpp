// The other end of every connection here is the test itself, which plays Redis on a socketpair.
#include "transport/blocking_connection.hpp"

#include "protocol/codec.hpp"
#include "redislock/detail/protocol/command.hpp"
#include "support/eventually.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace redislock::detail {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using Mode = Call::Mode;

const TimePoint past{};
constexpr TimePoint never = TimePoint::max();

/// Asks for its name; counts how often it ended unawaited.
class TestCall final : public Call {
public:
    explicit TestCall(std::string name, Mode how = Mode::awaited) : name_(std::move(name)) { mode = how; }

    void encode(std::string& out, Form by) const override
    {
        appendCommand(out, {by == Form::bySha ? "EVALSHA" : "EVAL", name_});
    }
    void finished() noexcept override
    {
        ++ends;
        if (atEnd) {
            atEnd();
        }
    }

    std::function<void()> atEnd;
    std::atomic<int> ends{0};

private:
    std::string name_;
};

std::shared_ptr<TestCall> awaited(std::string name)
{
    return std::make_shared<TestCall>(std::move(name));
}

std::shared_ptr<TestCall> detached(std::string name)
{
    return std::make_shared<TestCall>(std::move(name), Mode::detached);
}

/// "1" for the reply 1, "unreachable" and the like with what it leaves open for failures, "pending" before the end.
std::string inWords(const Call& call, const Outcome& outcome)
{
    if (call.pending) {
        return "pending";
    }
    if (outcome.replied) {
        return call.reply.isError() ? call.reply.text : std::to_string(call.reply.integer);
    }
    switch (outcome.fault.failure) {
    case Failure::notConnected:
        return "not connected";
    case Failure::lostReply:
        return "reply lost";
    case Failure::refused:
        return "refused";
    case Failure::fatal:
        break;
    }
    return make_error_code(outcome.fault.error).message();
}

std::string inWords(const Call& call)
{
    return inWords(call, call.outcome);
}

const std::string afterShutdown = make_error_code(Errc::shutdown).message();

/// The server's end of a connection.
class FakeRedis {
public:
    explicit FakeRedis(int socket) noexcept : socket_(socket) {}
    FakeRedis(FakeRedis&& other) noexcept : socket_(std::exchange(other.socket_, -1)), reader_(std::move(other.reader_))
    {
        assertIdle(other);
    }
    FakeRedis& operator=(FakeRedis&& other) noexcept
    {
        hangUp();
        assertIdle(other);
        socket_ = std::exchange(other.socket_, -1);
        reader_ = std::move(other.reader_);
        owed_ = 0;
        return *this;
    }
    ~FakeRedis() { hangUp(); }

    void hangUp() noexcept
    {
        if (sender_.joinable()) {
            ::shutdown(socket_, SHUT_RD); // ends its wait
            sender_.join();
        }
        if (socket_ >= 0) {
            ::close(std::exchange(socket_, -1));
        }
    }

    /// Replies as a server does: when a request is there. At once if it is; otherwise a thread waits for it.
    void reply(std::string_view text)
    {
        std::string bytes(text);
        const auto replies = std::count(bytes.begin(), bytes.end(), '\n');
        if (owed_ > 0 || isAsked(0)) {
            owed_ -= std::min<std::ptrdiff_t>(owed_, replies);
            return replyUnasked(bytes);
        }
        sender_ = std::thread([this, bytes = std::move(bytes), before = std::move(sender_)]() mutable {
            if (before.joinable()) {
                before.join();
            }
            (void)isAsked(10'000);
            replyUnasked(bytes);
        });
    }

    void replyUnasked(std::string_view bytes) const { ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL); }

    /// What has come since the last time, without waiting: "a", or "EVAL a" where the script was sent whole.
    std::vector<std::string> requests()
    {
        std::vector<std::string> all;
        while (receive(MSG_DONTWAIT)) {
            take(all);
        }
        return all;
    }

    /// The requests of the next packet, waiting for it; empty at the end of the connection.
    std::vector<std::string> nextRequests()
    {
        std::vector<std::string> all;
        while (all.empty() && receive(0)) {
            take(all);
        }
        return all;
    }

    /// The number of bytes that have come, without waiting, and without a look at them.
    [[nodiscard]] std::size_t drain()
    {
        owed_ = std::numeric_limits<std::ptrdiff_t>::max();
        std::array<char, 64 * 1024> buffer;
        std::size_t all = 0;
        for (;;) {
            const auto n = ::recv(socket_, buffer.data(), buffer.size(), MSG_DONTWAIT);
            if (n <= 0) {
                return all;
            }
            all += static_cast<std::size_t>(n);
        }
    }

    /// Whether the client has ended the connection.
    [[nodiscard]] bool isLeft() const
    {
        char byte = 0;
        return ::recv(socket_, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0;
    }

private:
    static void assertIdle(const FakeRedis& other)
    {
        if (other.sender_.joinable()) {
            throw std::logic_error("moved while a reply is outstanding");
        }
    }

    [[nodiscard]] bool isAsked(int milliseconds) const
    {
        pollfd socket{socket_, POLLIN, 0};
        return ::poll(&socket, 1, milliseconds) > 0;
    }

    bool receive(int flags)
    {
        std::array<char, 16 * 1024> buffer;
        const auto n = ::recv(socket_, buffer.data(), buffer.size(), flags);
        if (n > 0) {
            reader_.feed({buffer.data(), static_cast<std::size_t>(n)});
        }
        return n > 0;
    }

    void take(std::vector<std::string>& all)
    {
        Reply request;
        while (reader_.next(request) == ReplyReader::Status::complete) {
            const bool whole = request.elements.at(0).text == "EVAL";
            all.push_back((whole ? "EVAL " : "") + request.elements.at(1).text);
            ++owed_;
        }
    }

    int socket_;
    std::ptrdiff_t owed_ = 0; // replies to requests that were taken
    std::thread sender_;
    ReplyReader reader_; // requests are arrays of texts, as replies may be
};

std::pair<int, int> socketPair(int type)
{
    int ends[2];
    if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0) {
        throw std::runtime_error("no socketpair");
    }
    return {ends[0], ends[1]};
}

/// A connection whose background is the test: it connects and sweeps when the test says so.
class BlockingConnectionTest : public ::testing::Test {
protected:
    /// @param type with SOCK_SEQPACKET each write of the client is one packet of its own.
    FakeRedis connect(int type = SOCK_STREAM)
    {
        const auto [client, server] = socketPair(type);
        connection.connected(Stream(client));
        return FakeRedis(server);
    }

    /// Queues a first call, so that a connection is wanted, and connects.
    FakeRedis connectFor(const std::shared_ptr<TestCall>& first, int type = SOCK_STREAM)
    {
        connection.enqueue(first);
        return connect(type);
    }

    static std::string bytes(std::size_t count) { return std::string(count, 'x'); }

    void wantConnection(TimePoint notBefore)
    {
        connects.push_back(notBefore);
        ++connectsWanted;
    }

    std::vector<TimePoint> connects; ///< wanted, not before these moments
    std::atomic<int> connectsWanted{0};
    int sweepsWanted = 0;
    std::vector<std::pair<bool, Errc>> reports;
    BlockingConnection connection{{.connect = [this](TimePoint notBefore) { wantConnection(notBefore); },
                                   .sweepSoon = [this] { ++sweepsWanted; },
                                   .report = [this](bool up, Errc error) { reports.emplace_back(up, error); }},
                                  1h,
                                  1};
    const std::shared_ptr<TestCall> a = awaited("a");
    const std::shared_ptr<TestCall> b = awaited("b");
    const std::shared_ptr<TestCall> c = awaited("c");
    const std::shared_ptr<TestCall> x = detached("x");
    const std::shared_ptr<TestCall> y = detached("y");
    const std::shared_ptr<TestCall> z = detached("z");
};

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
    const TimePoint before = BootClock::now();
    auto redis = connectFor(a);
    EXPECT_EQ(a->sentAt, TimePoint{});
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
    connectFor(a);
    const Outcome outcome = connection.await(*a, past);
    EXPECT_FALSE(outcome.replied);
    EXPECT_EQ(outcome.fault, (Fault{Failure::lostReply, Errc::unreachable}));
}

TEST_F(BlockingConnectionTest, WhatACallerLeftUnwrittenIsWrittenByTheSweep)
{
    auto redis = connectFor(a);
    connection.await(*a, past);
    EXPECT_EQ(sweepsWanted, 1) << "nobody else is there";
    EXPECT_TRUE(connection.sweep());
    EXPECT_THAT(redis.requests(), ElementsAre("a"));
    redis.reply(":1\r\n");
    EXPECT_FALSE(connection.sweep());
    EXPECT_TRUE(connection.idle());
}

TEST_F(BlockingConnectionTest, ACallerThatLeavesHandsOnToTheNextWaiter)
{
    connectFor(a);
    a->signal.waitUntil(past); // told of the connection
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
    EXPECT_EQ(outcome.fault, (Fault{Failure::notConnected, Errc::unreachable}));
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
    a->signal.waitUntil(past); // told of the connection
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

// ------------------------------------------------------------------------------------------ Lost connections

TEST_F(BlockingConnectionTest, AnUnsolicitedReplyClosesTheConnection)
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
TEST_F(BlockingConnectionTest, AReplyThatCameWhileNothingWasAskedIsGivenToNobody)
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

TEST_F(BlockingConnectionTest, BytesThatAreNoReplyCloseTheConnection)
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

TEST_F(BlockingConnectionTest, AReplyThatIsTooLargeClosesTheConnection)
{
    auto redis = connectFor(a);
    redis.reply("*1000000\r\n");
    EXPECT_EQ(inWords(*a, connection.await(*a, never)), "reply lost");
    EXPECT_EQ(connects.size(), 1U);
}

TEST_F(BlockingConnectionTest, RepliesBeforeTheEndOfTheConnectionAreGiven)
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

TEST_F(BlockingConnectionTest, UnwrittenCallsSurviveALostConnectionAndWrittenOnesFail)
{
    const auto large = detached(bytes(3'000'000)); // more than the socket takes: what is behind it stays unwritten
    auto redis = connectFor(large);
    connection.flush();
    connection.enqueue(y);
    connection.enqueue(b);
    EXPECT_TRUE(large->pending);
    redis.hangUp();
    EXPECT_FALSE(connection.sweep());
    EXPECT_EQ(inWords(*large), "reply lost");
    EXPECT_EQ(large->ends, 1);
    EXPECT_EQ(inWords(*y), "pending");
    EXPECT_EQ(inWords(*b), "pending");
    ASSERT_EQ(connects.size(), 2U);
    auto next = connect();
    EXPECT_EQ(b->signal.waitUntil(past), Signal::look) << "somebody is told to lead";
    next.reply(":1\r\n:2\r\n");
    EXPECT_EQ(inWords(*b, connection.await(*b, never)), "2");
    EXPECT_EQ(inWords(*y), "1");
    EXPECT_THAT(next.requests(), ElementsAre("y", "b"));
}

TEST_F(BlockingConnectionTest, ACallThatSurvivedNamesItsScriptAgain)
{
    const auto large = detached(bytes(3'000'000));
    auto redis = connectFor(x);
    connection.flush();
    connection.enqueue(large);
    connection.sweep(); // the socket takes some of the large one
    redis.reply("-NOSCRIPT\r\n");
    connection.sweep(); // x is now to be sent whole, behind the large one
    EXPECT_TRUE(x->pending);
    redis.hangUp();
    connection.sweep();
    auto next = connect();
    connection.flush();
    EXPECT_THAT(next.requests(), ElementsAre("x"));
}

TEST_F(BlockingConnectionTest, AConnectionThatServedIsMadeAgainAtOnceAndOneThatDidNotLater)
{
    auto redis = connectFor(a);
    redis.reply(":1\r\n");
    connection.await(*a, never);
    connection.enqueue(x);
    redis.hangUp();
    connection.flush();
    EXPECT_TRUE(x->pending) << "it was not written yet";
    ASSERT_EQ(connects.size(), 2U);
    EXPECT_LE(connects[1], BootClock::now()) << "it served";
    connect().hangUp();
    const TimePoint before = BootClock::now();
    connection.flush();
    ASSERT_EQ(connects.size(), 3U);
    EXPECT_GT(connects[2], before) << "it served nothing";
}

TEST_F(BlockingConnectionTest, FlushFindsALostConnectionToo)
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

class BlockingConnectionTimeOut : public BlockingConnectionTest {
protected:
    BlockingConnection hasty{{.connect = [this](TimePoint notBefore) { wantConnection(notBefore); },
                              .sweepSoon = [this] { ++sweepsWanted; },
                              .report = [this](bool up, Errc error) { reports.emplace_back(up, error); }},
                             1ms,
                             1};
    FakeRedis hastyConnect()
    {
        const auto [client, server] = socketPair(SOCK_STREAM);
        hasty.connected(Stream(client));
        return FakeRedis(server);
    }
};

TEST_F(BlockingConnectionTimeOut, TheOldestUnansweredRequestEndsTheConnectionForEverybody)
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

TEST_F(BlockingConnectionTimeOut, TheRequestOfACallerThatLeftEndsItToo)
{
    hasty.enqueue(a);
    auto redis = hastyConnect();
    hasty.await(*a, past);
    hasty.enqueue(b);
    EXPECT_EQ(inWords(*b, hasty.await(*b, never)), "reply lost");
    EXPECT_TRUE(hasty.idle());
}

TEST_F(BlockingConnectionTimeOut, TheSweepEndsItWhenNobodyWaits)
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

TEST_F(BlockingConnectionTimeOut, AnIdleConnectionHasNone)
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

TEST_F(BlockingConnectionTest, ShutdownEndsWrittenAndUnwrittenCallsAndLaterOnes)
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

TEST_F(BlockingConnectionTest, ShutdownIsOnceAndNothingComesAfterIt)
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

// --------------------------------------------------------------------------------------------- Several threads

TEST_F(BlockingConnectionTest, AFollowerBecomesTheLeaderWhenTheLeadersReplyCame)
{
    auto redis = connectFor(a);
    connection.enqueue(b);
    std::thread first([&] { EXPECT_EQ(inWords(*a, connection.await(*a, never)), "1"); });
    EXPECT_THAT(redis.nextRequests(), ElementsAre("a", "b"));
    std::thread second([&] { EXPECT_EQ(inWords(*b, connection.await(*b, never)), "2"); });
    redis.reply(":1\r\n");
    first.join();
    redis.reply(":2\r\n"); // nobody but the follower can read it now
    second.join();
    EXPECT_TRUE(connection.idle());
}

TEST_F(BlockingConnectionTest, CallersSleepUntilThereIsAConnection)
{
    connection.enqueue(a);
    connection.enqueue(b);
    std::thread first([&] { EXPECT_EQ(inWords(*a, connection.await(*a, never)), "1"); });
    std::thread second([&] { EXPECT_EQ(inWords(*b, connection.await(*b, never)), "2"); });
    auto redis = connect();
    redis.reply(":1\r\n:2\r\n");
    first.join();
    second.join();
}

TEST_F(BlockingConnectionTest, ALeaderThatLeavesHandsOnToAFollower)
{
    auto redis = connectFor(a);
    connection.enqueue(b);
    std::thread follower([&] { EXPECT_EQ(inWords(*b, connection.await(*b, never)), "2"); });
    connection.await(*a, BootClock::now() + 1ms); // leads or not, as it comes
    redis.reply(":1\r\n:2\r\n");
    follower.join();
    EXPECT_TRUE(connection.idle());
}

TEST_F(BlockingConnectionTest, ShutdownEndsALeaderThatReadsAndAFollowerThatSleeps)
{
    auto redis = connectFor(a);
    connection.enqueue(b);
    std::thread first([&] { EXPECT_EQ(inWords(*a, connection.await(*a, never)), afterShutdown); });
    redis.nextRequests(); // it leads
    std::thread second([&] { EXPECT_EQ(inWords(*b, connection.await(*b, never)), afterShutdown); });
    connection.shutdown(Errc::shutdown);
    first.join();
    second.join();
    EXPECT_TRUE(redis.isLeft());
}

TEST_F(BlockingConnectionTest, ALeaderOutlivesItsConnectionAndLeadsTheNext)
{
    auto redis = connectFor(a);
    std::thread leader([&] {
        EXPECT_EQ(inWords(*a, connection.await(*a, never)), "reply lost");
        connection.enqueue(b);
        EXPECT_EQ(inWords(*b, connection.await(*b, never)), "2");
    });
    EXPECT_THAT(redis.nextRequests(), ElementsAre("a"));
    redis.hangUp();
    EXPECT_TRUE(test::eventually([this] { return connectsWanted == 2; }));
    auto next = connect();
    next.reply(":2\r\n");
    leader.join();
}

/// A background thread, and a Redis that answers each request with its own name, forgets its scripts, and hangs up after so
/// many requests with some of them unanswered.
class Rig {
public:
    explicit Rig(int requestsPerConnection) : requestsPerConnection_(requestsPerConnection) {}
    Rig(const Rig&) = delete;
    Rig& operator=(const Rig&) = delete;
    ~Rig()
    {
        connection.shutdown(Errc::shutdown);
        {
            const std::lock_guard lock(mutex_);
            stopping_ = true;
        }
        changed_.notify_all();
        background_.join();
        if (redis_.joinable()) {
            redis_.join();
        }
    }

    [[nodiscard]] int hangUps() const { return hangUps_; }

    BlockingConnection connection{{.connect = [this](TimePoint) { want(connectWanted_); },
                                   .sweepSoon = [this] { want(sweepWanted_); },
                                   .report = [](bool, Errc) {}},
                                  1h,
                                  1};

private:
    void want(bool& what)
    {
        {
            const std::lock_guard lock(mutex_);
            what = true;
        }
        changed_.notify_all();
    }

    void run()
    {
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [this] { return stopping_ || connectWanted_ || sweepWanted_; });
            if (stopping_) {
                return;
            }
            const bool connecting = std::exchange(connectWanted_, false);
            const bool sweeping = std::exchange(sweepWanted_, false);
            lock.unlock();
            if (connecting) {
                connect();
            }
            const bool again = sweeping && connection.sweep();
            std::this_thread::yield();
            lock.lock();
            sweepWanted_ = sweepWanted_ || again;
        }
    }

    void connect()
    {
        if (redis_.joinable()) {
            redis_.join(); // the connection before it has ended
        }
        const auto [client, server] = socketPair(SOCK_STREAM);
        redis_ = std::thread([this, socket = server] { serve(FakeRedis(socket)); });
        connection.connected(Stream(client));
    }

    void serve(FakeRedis redis)
    {
        for (int served = 0;;) {
            const auto requests = redis.nextRequests();
            if (requests.empty()) {
                return;
            }
            std::string replies;
            for (const auto& request : requests) {
                if (++served > requestsPerConnection_) {
                    redis.reply(replies);
                    ++hangUps_;
                    return;
                }
                const std::string whole = "EVAL ";
                if (request.starts_with(whole)) {
                    replies += ":" + request.substr(whole.size()) + "\r\n";
                } else {
                    replies += served % 7 == 1 ? "-NOSCRIPT No matching script.\r\n" : ":" + request + "\r\n";
                }
            }
            redis.reply(replies);
        }
    }

    const int requestsPerConnection_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool connectWanted_ = false;
    bool sweepWanted_ = false;
    bool stopping_ = false;
    std::atomic<int> hangUps_{0};
    std::thread redis_;
    std::thread background_{[this] { run(); }};
};

/// Many threads that wait, leave, and do not wait at all. Every call must end, with its own reply or none.
void stress(Rig& rig, int threads, int calls)
{
    std::atomic<int> replied{0};
    std::atomic<int> left{0};
    std::vector<std::thread> callers;
    std::mutex mutex;
    std::vector<std::shared_ptr<TestCall>> unawaited;
    for (int t = 0; t < threads; ++t) {
        callers.emplace_back([&, t] {
            Random random(static_cast<std::uint64_t>(t));
            for (int i = 0; i < calls; ++i) {
                const std::string name = std::to_string(t * calls + i);
                if (random.next() % 4 == 0) {
                    const auto call = detached(name);
                    rig.connection.enqueue(call);
                    rig.connection.flush();
                    const std::lock_guard lock(mutex);
                    unawaited.push_back(call);
                    continue;
                }
                const bool patient = random.next() % 4 != 0;
                Outcome outcome;
                do {
                    const auto call = awaited(name);
                    rig.connection.enqueue(call);
                    outcome = rig.connection.await(
                        *call, patient ? never : BootClock::now() + std::chrono::microseconds(random.next() % 100));
                    if (outcome.replied) {
                        EXPECT_EQ(std::to_string(call->reply.integer), name);
                        ++replied;
                    }
                } while (patient && !outcome.replied);
                left += outcome.replied ? 0 : 1;
            }
        });
    }
    for (auto& caller : callers) {
        caller.join();
    }
    EXPECT_TRUE(test::eventually([&] { return rig.connection.idle(); }, 20s)) << "a request was left without a leader";
    EXPECT_TRUE(test::eventually(
        [&] {
            return std::all_of(unawaited.begin(), unawaited.end(), [](const auto& call) { return call->ends == 1; });
        },
        20s));
    EXPECT_EQ(replied + left + static_cast<int>(unawaited.size()), threads * calls);
    EXPECT_GT(replied, threads * calls / 2);
    EXPECT_FALSE(unawaited.empty());
}

TEST(BlockingConnectionThreads, EveryCallOfManyThreadsEndsWithItsOwnReply)
{
    Rig rig(1'000'000);
    stress(rig, 8, 400);
    EXPECT_EQ(rig.hangUps(), 0);
}

TEST(BlockingConnectionThreads, EveryCallEndsThoughTheServerHangsUpAgainAndAgain)
{
    Rig rig(60);
    stress(rig, 8, 200);
    EXPECT_GT(rig.hangUps(), 5);
}

TEST(BlockingConnectionThreads, ShutdownEndsCallersInWhateverTheyAreDoing)
{
    for (int round = 0; round < 20; ++round) {
        Rig rig(30);
        std::atomic<int> ended{0};
        std::atomic<int> replies{0};
        std::vector<std::thread> callers;
        for (int t = 0; t < 4; ++t) {
            callers.emplace_back([&] {
                for (;;) {
                    const auto call = awaited("1");
                    rig.connection.enqueue(call);
                    const Outcome outcome = rig.connection.await(*call, never);
                    replies += outcome.replied ? 1 : 0;
                    if (!outcome.replied && outcome.fault.error == Errc::shutdown) {
                        ++ended;
                        return;
                    }
                }
            });
        }
        while (replies < 50 * (round % 4)) {
            std::this_thread::yield();
        }
        rig.connection.shutdown(Errc::shutdown);
        for (auto& caller : callers) {
            caller.join();
        }
        EXPECT_EQ(ended, 4);
    }
}

} // namespace
} // namespace redislock::detail
