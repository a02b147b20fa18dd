// Several callers at a time.
#include "support/frozen_thread.hpp"
#include "unit/thread_link_rig.hpp"

#include <unistd.h>

#include <atomic>
#include <future>

namespace redislock::detail {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using Mode = Call::Mode;

// --------------------------------------------------------------------------------------------- Several threads

TEST_F(ThreadLinkTest, AFollowerBecomesTheLeaderWhenTheLeadersReplyCame)
{
    auto redis = connectFor(a);
    connection.enqueue(b);
    std::thread first([&] { EXPECT_EQ(inWords(*a, connection.await(*a, never)), "1"); });
    EXPECT_THAT(redis.nextRequests(), ElementsAre("a", "b"));
    std::thread second([&] { EXPECT_EQ(inWords(*b, connection.await(*b, never)), "2"); });
    redis.reply(":1\r\n");
    first.join();
    redis.reply(":2\r\n"); // only the follower can read it now
    second.join();
    EXPECT_TRUE(connection.idle());
}

TEST_F(ThreadLinkTest, WhoCameLastLeadsNextBecauseItsReplyComesLast)
{
    auto redis = connectFor(a);
    connection.enqueue(b);
    connection.enqueue(c);
    std::thread first([&] { EXPECT_EQ(inWords(*a, connection.await(*a, never)), "1"); });
    EXPECT_THAT(redis.nextRequests(), ElementsAre("a", "b", "c"));
    redis.reply(":1\r\n");
    first.join();
    EXPECT_EQ(b->signal.waitUntil(past), 0U);
    EXPECT_EQ(c->signal.waitUntil(past), Signal::look);
}

TEST_F(ThreadLinkTest, WhoFollowsFirstWritesAndWakesTheOtherWhileTheServerWorks)
{
    auto redis = connectFor(a);
    connection.enqueue(b);
    EXPECT_EQ(a->signal.waitUntil(past), Signal::look) << "told of the connection, and forgotten here";
    std::thread first([&] { EXPECT_EQ(inWords(*a, connection.await(*a, never, ThreadLink::First::follow)), "1"); });
    EXPECT_EQ(b->signal.waitUntil(never), Signal::look) << "before any answer";
    EXPECT_THAT(redis.nextRequests(), ElementsAre("a", "b"));
    redis.reply(":1\r\n:2\r\n");
    EXPECT_EQ(inWords(*b, connection.await(*b, never)), "2");
    first.join();
    EXPECT_TRUE(connection.idle());
}

TEST_F(ThreadLinkTest, WhoFollowsFirstLeadsAllTheSameWhenTheOtherDoesNotCome)
{
    auto redis = connectFor(a);
    connection.enqueue(b);
    EXPECT_EQ(a->signal.waitUntil(past), Signal::look) << "told of the connection, and forgotten here";
    std::thread first([&] { EXPECT_EQ(inWords(*a, connection.await(*a, never, ThreadLink::First::follow)), "1"); });
    EXPECT_EQ(b->signal.waitUntil(never), Signal::look) << "it is to lead now, and nobody does";
    redis.reply(":1\r\n");
    first.join();
}

TEST_F(ThreadLinkTest, WhoFollowsFirstWaitsForTheConnectionLikeOthers)
{
    connection.enqueue(a);
    connection.enqueue(b);
    std::thread first([&] { EXPECT_EQ(inWords(*a, connection.await(*a, never, ThreadLink::First::follow)), "1"); });
    auto redis = connect();
    redis.reply(":1\r\n:2\r\n");
    EXPECT_EQ(inWords(*b, connection.await(*b, never)), "2");
    first.join();
}

TEST_F(ThreadLinkTest, FlushReadsWhatHasComeBeforeItWakesAnybodyToLead)
{
    auto redis = connectFor(x);
    connection.flush();
    EXPECT_THAT(redis.requests(), ElementsAre("x"));
    redis.replyUnasked(":0\r\n:1\r\n"); // the second reply is for the next request
    connection.enqueue(a);
    connection.flush();
    EXPECT_EQ(x->ends, 1);
    EXPECT_EQ(inWords(*a), "1");
    EXPECT_EQ(a->signal.waitUntil(past), Signal::done) << "and not to lead first";
    EXPECT_THAT(redis.requests(), ElementsAre("a"));
    EXPECT_TRUE(connection.idle());
}

TEST_F(ThreadLinkTest, FlushWakesOneToLeadWhereAnswersAreStillToCome)
{
    auto redis = connectFor(x);
    connection.flush();
    redis.reply(":0\r\n");
    connection.enqueue(a);
    connection.enqueue(b);
    connection.flush();
    EXPECT_EQ(x->ends, 1);
    EXPECT_EQ(a->signal.waitUntil(past), 0U);
    EXPECT_EQ(b->signal.waitUntil(past), Signal::look) << "who came last is answered last";
    redis.reply(":1\r\n:2\r\n");
    EXPECT_EQ(inWords(*b, connection.await(*b, never)), "2");
}

TEST_F(ThreadLinkTest, WhatIsAsMuchAsTheServerHasIsWrittenWhileTheLeaderReads)
{
    auto redis = connectFor(a);
    std::thread leader([&] { EXPECT_EQ(inWords(*a, connection.await(*a, never)), "1"); });
    EXPECT_THAT(redis.nextRequests(), ElementsAre("a"));
    connection.enqueue(b);
    std::thread follower([&] { EXPECT_EQ(inWords(*b, connection.await(*b, never)), "2"); });
    EXPECT_THAT(redis.nextRequests(), ElementsAre("b")) << "before the leader's reply came";
    redis.reply(":1\r\n");
    redis.reply(":2\r\n");
    leader.join();
    follower.join();
}

TEST_F(ThreadLinkTest, WhatIsLessWaitsForTheLeader)
{
    std::promise<void> leaderIsBusy;
    std::promise<void> goOn;
    x->atEnd = [&] { // on the leader's thread
        leaderIsBusy.set_value();
        goOn.get_future().wait();
    };
    auto redis = connectFor(x);
    connection.enqueue(a);
    connection.enqueue(b);
    std::thread leader([&] { EXPECT_EQ(inWords(*b, connection.await(*b, never)), "3"); });
    EXPECT_THAT(redis.nextRequests(), ElementsAre("x", "a", "b"));
    redis.reply(":1\r\n");
    leaderIsBusy.get_future().wait();
    connection.enqueue(c);
    connection.await(*c, past); // would write, and leaves
    EXPECT_THAT(redis.requests(), IsEmpty()) << "one request, where the server still has two to answer";
    goOn.set_value();
    EXPECT_THAT(redis.nextRequests(), ElementsAre("c"));
    redis.reply(":2\r\n:3\r\n");
    leader.join();
}

TEST_F(ThreadLinkTest, FlushWritesThoughTheLeaderSleeps)
{
    auto redis = connectFor(a);
    std::atomic<pid_t> id{0};
    std::thread leader([&] {
        id = ::gettid();
        EXPECT_EQ(inWords(*a, connection.await(*a, never)), "1");
    });
    EXPECT_THAT(redis.nextRequests(), ElementsAre("a"));
    EXPECT_TRUE(test::eventually([&] { return test::FrozenThread::sleeps(id); }));
    connection.enqueue(x);
    connection.flush();
    EXPECT_THAT(redis.requests(), ElementsAre("x")) << "at once: the leader has had no reply";
    redis.reply(":1\r\n:2\r\n");
    leader.join();
    EXPECT_TRUE(test::eventually([&] {
        connection.sweep();
        return x->ends == 1;
    }));
}

TEST_F(ThreadLinkTest, WhatALeaderFindsQueuedItWritesBeforeItResigns)
{
    auto redis = connectFor(x);
    connection.enqueue(a);
    redis.reply("-NOSCRIPT No matching script.\r\n:1\r\n");
    EXPECT_EQ(inWords(*a, connection.await(*a, never)), "1");
    EXPECT_THAT(redis.requests(), ElementsAre("x", "a", "EVAL x")) << "before the sweep";
}

TEST_F(ThreadLinkTest, CallersSleepUntilThereIsAConnection)
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

TEST_F(ThreadLinkTest, ALeaderThatLeavesHandsOnToAFollower)
{
    auto redis = connectFor(a);
    connection.enqueue(b);
    std::thread follower([&] { EXPECT_EQ(inWords(*b, connection.await(*b, never)), "2"); });
    connection.await(*a, BootClock::now() + 1ms); // it leads or not, by chance
    redis.reply(":1\r\n:2\r\n");
    follower.join();
    EXPECT_TRUE(connection.idle());
}

TEST_F(ThreadLinkTest, ShutdownEndsALeaderThatReadsAndAFollowerThatSleeps)
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

TEST_F(ThreadLinkTest, ALeaderOutlivesItsConnectionAndLeadsTheNext)
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

/// A background thread, and a Redis that answers each request with its own name, forgets its scripts, and hangs up
/// after a number of requests, some of them unanswered.
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

    ThreadLink connection{{.connect = [this](TimePoint) { want(connectWanted_); },
                           .hurry = [](TimePoint) {},
                           .demoted = [](const std::string&) {},
                           .sweepSoon = [this] { want(sweepWanted_); },
                           .refused = [](const Reply&, const Call*) {},
                           .report = [](bool, Reason) {}},
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

/// Many threads that wait, leave, or do not wait at all. Every call must end, with its own reply or without one.
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

TEST(ThreadLinkThreads, EveryCallOfManyThreadsEndsWithItsOwnReply)
{
    Rig rig(1'000'000);
    stress(rig, 8, 400);
    EXPECT_EQ(rig.hangUps(), 0);
}

TEST(ThreadLinkThreads, EveryCallEndsThoughTheServerHangsUpAgainAndAgain)
{
    Rig rig(60);
    stress(rig, 8, 200);
    EXPECT_GT(rig.hangUps(), 5);
}

TEST(ThreadLinkThreads, ShutdownEndsCallersInWhateverTheyAreDoing)
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
