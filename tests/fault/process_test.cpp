// Processes that are stopped, or forked, while they hold a lock.
#include "fault/fault_test.hpp"

#include <csignal>

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace redislock::test {
namespace {

/// One end of a conversation with another process, in lines.
class Line {
public:
    explicit Line(int socket) : socket_(socket) {}

    void say(const std::string& text) const
    {
        const auto line = text + "\n";
        [[maybe_unused]] const auto sent = ::send(socket_, line.data(), line.size(), MSG_NOSIGNAL);
    }
    /// What the other said; empty when it has ended.
    [[nodiscard]] std::string hear() const
    {
        std::string text;
        for (char c = 0; ::recv(socket_, &c, 1, 0) == 1 && c != '\n';) {
            text += c;
        }
        return text;
    }

private:
    int socket_;
};

/// In the child: holds the lock, says so, and tells what it believes when it is asked.
void beHolder(const Line& parent)
{
    Config config = Config::fromUrl(parent.hear());
    config.watchdogTimeout = 900ms;
    const Client client(config);
    const RedisLock held = client.getLock("stock:42");
    held.lock();
    const auto stop = held.stopToken();
    parent.say("held");
    const auto question = parent.hear(); // it is stopped here, and asked meanwhile
    const bool stillHeld = !question.empty() && held.isHeldByCurrentThread();
    const auto valid = held.validFor();
    const bool stopped = eventually([&] { return stop.stop_requested(); });
    const auto how = held.unlock();
    parent.say(std::string(stillHeld ? "held" : "not held") + (valid == 0ms ? ", not valid" : ", valid") +
               (stopped ? ", told" : ", not told") + (how == Unlocked::alreadyLost ? ", lost" : ", not lost"));
}

/// Starts the child before anything else makes threads.
class StoppedHolder : public ::testing::Test {
protected:
    StoppedHolder()
    {
        int sockets[2];
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
            throw std::runtime_error("no socket pair");
        }
        child_ = ::fork();
        if (child_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            beHolder(Line(sockets[1]));
            ::_exit(0);
        }
        ::close(sockets[1]);
        socket_ = sockets[0];
    }
    ~StoppedHolder() override
    {
        ::kill(child_, SIGKILL);
        ::waitpid(child_, nullptr, 0);
        ::close(socket_);
    }

    void stop() const
    {
        int status = 0;
        ::kill(child_, SIGSTOP);
        ASSERT_EQ(::waitpid(child_, &status, WUNTRACED), child_);
        ASSERT_TRUE(WIFSTOPPED(status));
    }
    void goOn() const { ::kill(child_, SIGCONT); }
    [[nodiscard]] Line child() const { return Line(socket_); }

private:
    pid_t child_ = 0;
    int socket_ = -1;
};

TEST_F(StoppedHolder, ForLongerThanItsLeaseKnowsAtOnceThatItIsLostAndHarmsNobody)
{
    const testing::RedisServer server;
    RawRedis redis(server);
    const Client client(server.url());
    const RedisLock next = client.getLock("stock:42");
    child().say(server.url());
    ASSERT_EQ(child().hear(), "held");
    EXPECT_FALSE(next.tryLock());
    stop();
    const Stopwatch watch;
    ASSERT_TRUE(next.tryLock(10s, 20s));
    EXPECT_LT(watch.elapsed(), 900ms + slack);
    const auto hash = redis.hash("stock:42");
    EXPECT_EQ(hash.size(), 1U);
    child().say("what do you believe?");
    goOn();
    EXPECT_EQ(child().hear(), "not held, not valid, told, lost");
    EXPECT_EQ(redis.hash("stock:42"), hash);
    EXPECT_GT(redis.pttl("stock:42"), 10s);
    EXPECT_EQ(next.unlock(), Unlocked::released);
    EXPECT_FALSE(redis.exists("stock:42"));
}

class ForkedProcess : public FaultTest {
protected:
    /// Runs a function in a forked child. @return its number, or 128 and the signal that ended it.
    static int inChild(const std::function<int()>& function)
    {
        const pid_t child = ::fork();
        if (child == 0) {
            ::alarm(20);
            ::_exit(function());
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
};

TEST_F(ForkedProcess, HoldsNothingAndSendsNothingAndItsParentGoesOn)
{
    const RedisLock held = lock();
    held.lock();
    auto own = std::make_unique<Client>(config);
    auto guard = std::make_unique<LockGuard>(own->getLock("guarded"));
    const auto stop = held.stopToken();
    ASSERT_TRUE(seen->await(Event::renewed, 2)); // every connection is there
    const auto connections = proxy.accepted();

    const int wrong = inChild([&] {
        int failed = 0;
        const auto expect = [&](bool right, int bit) { failed |= right ? 0 : bit; };
        expect(!held.isHeldByCurrentThread() && held.holdCount() == 0 && held.validFor() == 0ms, 1);
        expect(held.stopToken().stop_requested() && !*guard && guard->validFor() == 0ms, 2);
        std::error_code ec;
        expect(!held.tryLock(ec) && ec == Errc::forked, 4);
        held.lock(ec);
        expect(ec == Errc::forked && !held.isLocked(ec) && ec == Errc::forked, 8);
        expect(held.unlock() == Unlocked::alreadyLost && guard->release() == Unlocked::alreadyLost, 16);
        guard.reset();
        own->connect(ec);
        expect(ec == Errc::forked, 32);
        own.reset();
        forgetClient();
        return failed;
    });
    EXPECT_EQ(wrong, 0);
    expectFault(wrong < 128, "a child that ended by itself");

    EXPECT_EQ(proxy.accepted(), connections);
    EXPECT_EQ(proxy.requests(request(redisLockUnlock)), 0U) << "the child freed the parent's locks";
    EXPECT_TRUE(held.isHeldByCurrentThread());
    EXPECT_TRUE(*guard);
    EXPECT_TRUE(seen->await(Event::renewed, seen->count(Event::renewed) + 3)) << "the parent no longer renews";
    EXPECT_FALSE(stop.stop_requested());
    EXPECT_EQ(countInRedis(), "1");
    EXPECT_TRUE(redis.exists("guarded"));
    EXPECT_EQ(guard->release(), Unlocked::released);
    EXPECT_EQ(held.unlock(), Unlocked::released);
    EXPECT_EQ(seen->count(Event::disconnected), 0U);
}

} // namespace
} // namespace redislock::test
