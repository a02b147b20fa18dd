// A process that forks with asynchronous calls under way: every call in the child reports this, and the child disturbs
// nobody.
#include "behaviour/lock_test.hpp"

#include <redislock/redislock.hpp>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <utility>

namespace redislock::test {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

class AsyncFork : public LockTest {
protected:
    /// Runs a call on an executor of this process. @return its error; nothing if its handler was not called.
    template <class T, class Start>
    static std::optional<error_code> errorOf(Start start)
    {
        asio::io_context io;
        std::optional<error_code> error;
        start(asio::bind_executor(io, [&](error_code ec, T) { error = ec; }));
        io.run_for(2s);
        return error;
    }

    /// Checks the result of every call in a child. @return the number of the first call with a wrong result, or 0.
    static int callsInAChild(Client& client, const RedisLock& lock, LockGuard& held)
    {
        const error_code forked = make_error_code(Errc::forked);
        if (errorOf<LockGuard>([&](auto token) { lock.asyncLock(token); }) != forked) {
            return 1;
        }
        if (errorOf<LockGuard>([&](auto token) { lock.asyncTryLock(10s, 10s, token); }) != forked) {
            return 2;
        }
        if (errorOf<bool>([&](auto token) { lock.asyncIsLocked(token); }) != forked) {
            return 3;
        }
        if (errorOf<bool>([&](auto token) { lock.asyncForceUnlock(token); }) != forked) {
            return 4;
        }
        if (held || held.validFor() > 0ms) {
            return 5;
        }
        // there is nothing to release in the child
        if (errorOf<Unlocked>([&](auto token) { held.asyncRelease(token); }) != error_code()) {
            return 6;
        }
        asio::io_context io;
        std::optional<error_code> connected;
        client.asyncConnect(asio::bind_executor(io, [&](error_code ec) { connected = ec; }));
        io.run_for(2s);
        if (connected != forked) {
            return 7;
        }
        // there is nothing to wait for either
        return errorOf<bool>([&](auto token) { client.asyncShutdown(token); }) == error_code() ? 0 : 8;
    }
};

TEST_F(AsyncFork, ChildIsToldByEveryCallAndItsGuardsSendNothing)
{
    Client client(observed());
    const auto lock = client.getLock(uniqueName());
    auto held = lock.asyncLock(60s, asio::use_future).get();
    auto waiting = lock.asyncLock(60s, asio::use_future);
    const auto sent = scriptCalls();
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(10); // ends the child if it hangs
        ::_exit(callsInAChild(client, lock, held));
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_EQ(scriptCalls(), sent);
    EXPECT_TRUE(held);
    EXPECT_EQ(held.asyncRelease(asio::use_future).get(), Unlocked::released);
    EXPECT_EQ(waiting.get().asyncRelease(asio::use_future).get(), Unlocked::released);
}

TEST_F(AsyncFork, ChildMayEndTheContextOfItsParentsCalls)
{
    const Client client(observed());
    const auto lock = client.getLock(uniqueName());
    auto first = lock.asyncLock(60s, asio::use_future).get();
    std::optional<asio::io_context> io(std::in_place);
    const auto alive = std::make_shared<int>();
    bool called = false;
    lock.asyncLock(60s, asio::bind_executor(
                            *io, [&called, alive](error_code ec, const LockGuard& guard) { called = !ec && guard; }));
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(10); // ends the child if it hangs
        io.reset();
        ::_exit(alive.use_count() == 1 ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_EQ(alive.use_count(), 2);
    EXPECT_EQ(first.asyncRelease(asio::use_future).get(), Unlocked::released);
    io->run();
    EXPECT_TRUE(called);
}

} // namespace
} // namespace redislock::test
