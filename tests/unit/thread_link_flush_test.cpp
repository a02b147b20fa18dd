// What callers that do not wait may rely on, and how callers wait for each other's writes.
#include "support/frozen_thread.hpp"
#include "unit/thread_link_rig.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>

namespace redislock::detail {
namespace {

/// Where a thread stands still in its next send(), as if others had taken its processor.
struct SendGate {
    enum class Side { before, after };

    Side side; ///< of the system call
    std::promise<void> reached{};
    std::promise<void> opened{};

    void pass()
    {
        reached.set_value();
        opened.get_future().wait();
    }
};

thread_local SendGate* sendGate = nullptr;

} // namespace
} // namespace redislock::detail

/// In front of the system's own.
extern "C" ssize_t send(int socket, const void* bytes, size_t size, int flags)
{
    using Side = redislock::detail::SendGate::Side;
    auto* const gate = std::exchange(redislock::detail::sendGate, nullptr);
    if (gate != nullptr && gate->side == Side::before) {
        gate->pass();
    }
    const auto sent = ::sendto(socket, bytes, size, flags, nullptr, 0);
    if (gate != nullptr && gate->side == Side::after) {
        gate->pass();
    }
    return sent;
}

namespace redislock::detail {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// ------------------------------------------------------------------------- A leader that is awake and stands still

class ThreadLinkStanding : public ThreadLinkTest {
protected:
    /// The leader waits for `a`, and stands when it has read this and told the owner of `x`.
    void letLead(std::string_view replies)
    {
        x->atEnd = [this] {
            stands_.set_value();
            goOn.get_future().wait();
        };
        connection.enqueue(a);
        leader = std::thread([this] { EXPECT_EQ(inWords(*a, connection.await(*a, never)), "2"); });
        EXPECT_THAT(redis.nextRequests(), ElementsAre("x", "a"));
        redis.replyUnasked(replies);
        stands_.get_future().wait();
    }

    /// Answers `a` and `y`; the leader goes on.
    void letEnd(FakeRedis& server)
    {
        server.reply(":2\r\n:3\r\n");
        leader.join();
        EXPECT_TRUE(test::eventually([this] {
            connection.sweep();
            return y->ends == 1;
        }));
        EXPECT_EQ(inWords(*y), "3");
    }

    FakeRedis redis = connectFor(x);
    std::promise<void> goOn;
    std::thread leader;

private:
    std::promise<void> stands_;
};

TEST_F(ThreadLinkStanding, FlushWritesThoughTheLeaderIsAwake)
{
    letLead(":1\r\n");
    connection.enqueue(y);
    connection.flush();
    EXPECT_THAT(redis.requests(), ElementsAre("y")) << "the process may end now";
    goOn.set_value();
    letEnd(redis);
}

TEST_F(ThreadLinkStanding, FlushWritesThoughNoReplyIsDue)
{
    letLead(":1\r\n-NOSCRIPT\r\n");
    connection.enqueue(y);
    connection.flush();
    EXPECT_THAT(redis.requests(), ElementsAre("EVAL a", "y"));
    goOn.set_value();
    letEnd(redis);
}

TEST_F(ThreadLinkStanding, FlushWritesNothingWhereAReplyCameUnasked)
{
    letLead(":1\r\n-NOSCRIPT\r\n");
    redis.replyUnasked(":7\r\n");
    connection.enqueue(y);
    connection.flush();
    EXPECT_THAT(redis.requests(), IsEmpty()) << "its answer would be another's";
    goOn.set_value();
    EXPECT_TRUE(test::eventually([this] { return connectsWanted == 2; })) << "the leader ends the connection";
    auto next = connect();
    EXPECT_THAT(next.nextRequests(), ElementsAre("a", "y"));
    letEnd(next);
}

// ------------------------------------------------------------------------------ A caller that stands still in send()

class ThreadLinkSending : public ThreadLinkTest {
protected:
    /// A thread of its own, which may sleep in what it does.
    class Caller {
    public:
        explicit Caller(std::function<void()> what)
            : thread_([this, what = std::move(what)] {
                  id_ = ::gettid();
                  what();
              })
        {
        }
        Caller(const Caller&) = delete;
        Caller& operator=(const Caller&) = delete;
        ~Caller() { thread_.join(); }

        [[nodiscard]] bool sleeps() const
        {
            return test::eventually([this] { return test::FrozenThread::sleeps(id_); });
        }

    private:
        std::atomic<pid_t> id_{0};
        std::thread thread_;
    };

    /// Another caller writes what is queued, and stands.
    std::unique_ptr<Caller> writeAndStand(SendGate& gate)
    {
        auto writer = std::make_unique<Caller>([this, &gate] {
            sendGate = &gate;
            connection.flush();
        });
        gate.reached.get_future().wait();
        return writer;
    }
};

TEST_F(ThreadLinkSending, FlushSleepsUntilAnotherCallerHasWritten)
{
    auto redis = connectFor(x);
    SendGate gate{SendGate::Side::before};
    const auto writer = writeAndStand(gate);
    const auto flush = [this] { connection.flush(); };
    auto withIt = std::make_unique<Caller>(flush);
    EXPECT_TRUE(withIt->sleeps()) << "its request is taken, and not written";
    connection.enqueue(y);
    auto behind = std::make_unique<Caller>(flush);
    EXPECT_TRUE(behind->sleeps());
    gate.opened.set_value();
    withIt.reset();
    behind.reset();
    EXPECT_THAT(redis.requests(), ElementsAre("x", "y"));
    redis.replyUnasked(":1\r\n:2\r\n");
    EXPECT_TRUE(test::eventually([this] { return !connection.sweep(); }));
    EXPECT_EQ(inWords(*y), "2");
}

TEST_F(ThreadLinkSending, LeaderSleepsWhileAnotherCallerWritesAndNoReplyIsDue)
{
    auto redis = connectFor(x);
    SendGate gate{SendGate::Side::after};
    const auto writer = writeAndStand(gate);
    redis.reply(":1\r\n");
    connection.enqueue(a);
    EXPECT_EQ(inWords(*a, connection.await(*a, BootClock::now() + 1ms)), "pending") << "no longer than it may";
    EXPECT_EQ(x->ends, 1);
    EXPECT_THAT(redis.requests(), ElementsAre("x"));
    connection.enqueue(b);
    const Caller leader([this] { EXPECT_EQ(inWords(*b, connection.await(*b, never)), "3"); });
    EXPECT_TRUE(leader.sleeps());
    gate.opened.set_value();
    EXPECT_THAT(redis.nextRequests(), ElementsAre("a", "b"));
    redis.replyUnasked(":2\r\n:3\r\n");
}

TEST_F(ThreadLinkSending, FlushSleepsNoLongerThanItsConnection)
{
    const auto redis = connectFor(x);
    SendGate gate{SendGate::Side::before};
    const auto writer = writeAndStand(gate);
    auto flushing = std::make_unique<Caller>([this] { connection.flush(); });
    EXPECT_TRUE(flushing->sleeps());
    connection.shutdown(Errc::shutdown);
    flushing.reset();
    gate.opened.set_value();
}

} // namespace
} // namespace redislock::detail
