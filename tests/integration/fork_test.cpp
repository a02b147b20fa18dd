// A process that forks: the child has no part in its parent's client and does not disturb it.
#include "behaviour/blocking_drivers.hpp"
#include "behaviour/lock_test.hpp"
#include "behaviour/worker.hpp"
#include "support/sanitizers.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace redislock::test {
namespace {

using D = BlockingCodes;

// The C library's fork() takes its allocator's locks first. Those of the sanitizers' allocators may be held by a thread
// that the child does not have: a child that allocates then may hang.
#if defined(REDISLOCK_THREAD_SANITIZER) || defined(REDISLOCK_ADDRESS_SANITIZER)
constexpr bool childMayAllocate = false;
#else
constexpr bool childMayAllocate = true;
#endif

class Fork : public LockTest {
protected:
    /// Runs a function in a child.
    /// @return the first check that failed there, counted from 1; 0: none; negative: the child crashed or hung.
    template <class Function>
    static int inChild(Function function)
    {
        const pid_t child = ::fork();
        if (child == 0) {
            int checks = 0;
            int failed = 0;
            const auto check = [&](bool good) {
                ++checks;
                failed = failed == 0 && !good ? checks : failed;
            };
            try {
                function(check);
            } catch (...) {
                ::_exit(100);
            }
            ::_exit(failed);
        }
        int status = 0;
        if (!eventually([&] { return ::waitpid(child, &status, WNOHANG) == child; }, 8s)) {
            ::kill(child, SIGKILL);
            ::waitpid(child, &status, 0);
        }
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }
};

TEST_F(Fork, ChildHoldsNothingAndItsCallsAreRefused)
{
    const Client client(observed());
    const auto lock = client.getLock(uniqueName());
    const auto guarded = client.getLock(uniqueName());
    EXPECT_EQ(D::lock(lock), true);
    const LockGuard guard(guarded);
    const auto sent = scriptCalls();
    const auto connections = raw.info("total_connections_received");
    EXPECT_EQ(inChild([&](auto check) {
                  check(!lock.isHeldByCurrentThread());
                  check(lock.holdCount() == 0);
                  check(lock.validFor() == 0ms);
                  check(lock.stopToken().stop_requested());
                  check(!guard);
                  check(guard.validFor() == 0ms);
                  check(guard.stopToken().stop_requested());
                  check(D::lock(lock) == Errc::forked);
                  check(D::tryLock(lock) == Errc::forked);
                  check(D::tryLock(lock, 10s, 10s) == Errc::forked);
                  check(D::isLocked(lock) == Errc::forked);
                  check(D::forceUnlock(lock) == Errc::forked);
                  check(D::remainingTimeToLive(lock) == Errc::forked);
                  check(D::guard(lock).error == Errc::forked);
                  std::error_code ec;
                  client.connect(ec);
                  check(ec == Errc::forked);
              }),
              0);
    EXPECT_LE(scriptCalls(), sent + 6) << "the parent's renewals alone";
    EXPECT_EQ(raw.info("total_connections_received"), connections);
    EXPECT_TRUE(lock.isHeldByCurrentThread());
    EXPECT_TRUE(static_cast<bool>(guard));
    const auto renewals = observer()->count("renewed", lock.name());
    EXPECT_TRUE(observer()->await("renewed", lock.name(), renewals + 3));
    EXPECT_EQ(observer()->count("lost"), 0U);
    EXPECT_EQ(observer()->count("disconnected:commands"), 0U);
    EXPECT_EQ(D::unlock(lock), Unlocked::released);
}

TEST_F(Fork, ChildMayLeaveTheScopesOfItsParent)
{
    auto client = std::make_unique<Client>(observed());
    auto lock = client->getLock(uniqueName());
    const auto guarded = client->getLock(uniqueName());
    auto guard = std::make_unique<LockGuard>(guarded);
    const auto holder = [&] { return holderOf(lock.name()) + holderOf(guarded.name()); };
    auto held = std::make_unique<std::scoped_lock<RedisLock>>(lock);
    const auto before = holder();
    EXPECT_EQ(inChild([&](auto) {
                  held.reset(); // std::terminate, if this threw
                  guard.reset();
                  client.reset();
              }),
              0);
    EXPECT_EQ(holder(), before);
    EXPECT_TRUE(lock.isHeldByCurrentThread());
    EXPECT_TRUE(static_cast<bool>(*guard));
    const auto renewals = observer()->count("renewed", lock.name());
    EXPECT_TRUE(observer()->await("renewed", lock.name(), renewals + 3));
    held.reset();
    EXPECT_FALSE(raw.exists(lock.name()));
}

TEST_F(Fork, ChildMayMakeAClientOfItsOwn)
{
    if constexpr (childMayAllocate) {
        const Client client(observed());
        const auto lock = client.getLock(uniqueName());
        EXPECT_EQ(D::lock(lock), true);
        EXPECT_EQ(inChild([&](auto check) {
                      const Client own(config());
                      check(own.id() != client.id());
                      const auto mine = own.getLock(lock.name());
                      check(D::tryLock(mine) == false);
                      const auto another = own.getLock(lock.name() + ":child");
                      check(D::lock(another) == true);
                      check(D::unlock(another) == Unlocked::released);
                  }),
                  0);
        EXPECT_TRUE(lock.isHeldByCurrentThread());
        EXPECT_EQ(D::unlock(lock), Unlocked::released);
    }
}

/// Threads that lock and unlock all the time.
class BusyFork : public Fork {
protected:
    BusyFork()
    {
        for (int i = 0; i < 3; ++i) {
            threads_.emplace_back([lock = client.getLock(uniqueName())](const std::stop_token& stop) {
                while (!stop.stop_requested()) {
                    const LockGuard held(lock);
                    EXPECT_TRUE(lock.isHeldByCurrentThread());
                }
            });
        }
    }
    void TearDown() override
    {
        threads_.clear();
        Fork::TearDown();
    }

    Client client{observed()};

private:
    std::vector<std::jthread> threads_;
};

TEST_F(BusyFork, ChildrenNeitherHangNorDisturb)
{
    const auto lock = client.getLock(uniqueName());
    for (int round = 0; round < 50 && !HasFailure(); ++round) {
        EXPECT_EQ(inChild([&](auto check) {
                      check(lock.holdCount() == 0);
                      std::error_code ec;
                      check(!lock.tryLock(ec) && ec == Errc::forked);
                      check(!lock.isLocked(ec) && ec == Errc::forked);
                  }),
                  0)
            << "round " << round;
    }
    EXPECT_EQ(D::lock(lock), true);
    EXPECT_EQ(D::unlock(lock), Unlocked::released);
}

TEST_F(BusyFork, ChildrenMayAskTheirParentsClientForLocks)
{
    const auto name = uniqueName();
    for (int round = 0; round < 50 && childMayAllocate && !HasFailure(); ++round) {
        EXPECT_EQ(inChild([&](auto check) {
                      const auto lock = client.getLock(name);
                      std::error_code ec;
                      check(!lock.tryLock(ec) && ec == Errc::forked);
                  }),
                  0)
            << "round " << round;
    }
}

} // namespace
} // namespace redislock::test
