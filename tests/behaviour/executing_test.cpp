// Functions that run under a lock: executeWithLock and locked.
#include "behaviour/behaviour_test.hpp"
#include "behaviour/group_test.hpp"
#include "behaviour/worker.hpp"
#include "redislock/async_execute_with_lock.hpp"
#include "redislock/execute_with_lock.hpp"

#include <boost/asio/use_future.hpp>

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <type_traits>
#include <vector>

namespace redislock::test {
namespace {

class Executing : public BehaviourTest {
protected:
    bool becomesFree(const std::string& name)
    {
        return eventually([&] { return !raw.exists(name); });
    }

    /// The code of the LockError that @p function throws.
    template <class Function>
    static std::error_code codeOf(Function function)
    {
        try {
            function();
        } catch (const LockError& e) {
            return e.code();
        }
        return {};
    }
};

INSTANTIATE_TEST_SUITE_P(, Executing,
                         driversWith({Feature::executing, Feature::waiting, Feature::leases, Feature::reentrance}),
                         driverName);

TEST_P(Executing, FunctionRunsUnderTheLockAndItsResultComesBack)
{
    const auto lock = make();
    const auto sold = executeWithLock(lock.plain(), 100ms, 10s, [&] {
        EXPECT_TRUE(lock.isHeldByCurrentThread());
        EXPECT_EQ(countOf(lock.name()), "1");
        EXPECT_GT(lock.validFor(), 9s);
        return std::string("sold");
    });
    EXPECT_EQ(sold, "sold");
    EXPECT_FALSE(lock.isHeldByCurrentThread());
    EXPECT_TRUE(becomesFree(lock.name()));
}

TEST_P(Executing, FunctionThatReturnsNothingGivesWhetherItRan)
{
    const auto lock = make();
    int calls = 0;
    EXPECT_TRUE(executeWithLock(lock.plain(), 0ms, keepRenewing, [&] { ++calls; }));
    Worker other;
    EXPECT_EQ(other.run([&] { return lock.lock(); }), true);
    const Stopwatch watch;
    EXPECT_FALSE(executeWithLock(lock.plain(), 0ms, keepRenewing, [&] { ++calls; }));
    EXPECT_FALSE(executeWithLock(lock.plain(), 200ms, 10s, [&] { ++calls; }));
    EXPECT_GE(watch.elapsed(), 200ms);
    EXPECT_EQ(executeWithLock(lock.plain(), 0ms, 10s, [&] { return ++calls; }), std::optional<int>());
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(other.run([&] { return lock.unlock(); }), Unlocked::released);
}

TEST_P(Executing, FunctionThatTakesATokenGetsTheHolds)
{
    const auto lock = make();
    const auto stopped = executeWithLock(lock.plain(), 100ms, 300ms, [&](const std::stop_token& token) {
        EXPECT_FALSE(token.stop_requested());
        return eventually([&] { return token.stop_requested(); });
    });
    EXPECT_EQ(stopped, true);
}

TEST_P(Executing, ExceptionOfTheFunctionPassesThroughAndFreesTheLock)
{
    const auto lock = make();
    const auto sell = [&]() -> int { throw std::runtime_error("sold out"); };
    EXPECT_THROW((void)executeWithLock(lock.plain(), 100ms, 10s, sell), std::runtime_error);
    EXPECT_FALSE(lock.isHeldByCurrentThread());
    EXPECT_TRUE(becomesFree(lock.name()));
}

TEST_P(Executing, ResultsMayBeMovedOnlyAndReferencesAreCopied)
{
    const auto lock = make();
    auto owned = executeWithLock(lock.plain(), 100ms, 10s, [] { return std::make_unique<int>(42); });
    ASSERT_TRUE(owned);
    EXPECT_EQ(**owned, 42);
    int stock = 7;
    const auto copied = executeWithLock(lock.plain(), 100ms, 10s, [&]() -> int& { return stock; });
    static_assert(std::is_same_v<decltype(copied), const std::optional<int>>);
    stock = 8;
    EXPECT_EQ(copied, 7);
}

TEST_P(Executing, ExecutingNestsInAHoldOfItsThread)
{
    const auto lock = make();
    EXPECT_EQ(lock.lock(), true);
    EXPECT_TRUE(executeWithLock(lock.plain(), 0ms, 10s, [&] { EXPECT_EQ(lock.holdCount(), 2U); }));
    EXPECT_EQ(lock.holdCount(), 1U);
    EXPECT_EQ(lock.unlock(), Unlocked::released);
}

TEST_P(Executing, BadLeaseIsRefusedBeforeTheFunctionRuns)
{
    const auto lock = make();
    bool ran = false;
    EXPECT_EQ(codeOf([&] { (void)executeWithLock(lock.plain(), 100ms, 0ms, [&] { ran = true; }); }),
              Errc::invalidArgument);
    EXPECT_FALSE(ran);
}

TEST_P(Executing, DecoratedFunctionLocksTheNameThatItsArgumentsGive)
{
    const auto prefix = uniqueName();
    clean(prefix + "42");
    const auto nameOf = [&](int id, const std::string& /*who*/) { return prefix + std::to_string(id); };
    const auto sell = [&](int id, const std::string& who) {
        EXPECT_TRUE(make(prefix + std::to_string(id)).isHeldByCurrentThread());
        EXPECT_TRUE(raw.exists(prefix + std::to_string(id)));
        return who + std::to_string(id);
    };
    auto sellLocked = locked(client, nameOf, sell);
    EXPECT_EQ(sellLocked(42, std::string("sold ")), "sold 42");
    EXPECT_FALSE(make(prefix + "42").isHeldByCurrentThread());
    EXPECT_TRUE(becomesFree(prefix + "42"));
}

TEST_P(Executing, DecoratedFunctionForwardsItsArgumentsAndItsResult)
{
    const auto name = uniqueName();
    int stock = 1;
    auto take = locked(
        client, [&](const std::unique_ptr<int>&) { return name; },
        [&](std::unique_ptr<int> amount) -> int& {
            stock += *amount;
            return stock;
        });
    int& result = take(std::make_unique<int>(2));
    EXPECT_EQ(&result, &stock);
    EXPECT_EQ(stock, 3);
}

TEST_P(Executing, DecoratedFunctionExcludesThreads)
{
    const auto name = uniqueName();
    int inside = 0; // guarded by the lock
    int calls = 0;
    auto work = locked(
        client, [&] { return name; },
        [&] {
            EXPECT_EQ(++inside, 1);
            ++calls;
            --inside;
        });
    {
        std::vector<std::unique_ptr<Worker>> workers;
        for (int i = 0; i < 4; ++i) {
            workers.push_back(std::make_unique<Worker>());
            workers.back()->start([&] {
                for (int round = 0; round < 25; ++round) {
                    work();
                }
            });
        }
    }
    EXPECT_EQ(calls, 100);
}

TEST_P(Executing, DecoratedFunctionPassesExceptionsAndFreesTheLock)
{
    const auto name = uniqueName();
    auto sell = locked(
        client, [&] { return name; }, [] { throw std::runtime_error("sold out"); });
    EXPECT_THROW(sell(), std::runtime_error);
    EXPECT_TRUE(becomesFree(name));
    auto unnamed = locked(
        client, [] { return std::string(); }, [] { FAIL() << "ran without a lock"; });
    EXPECT_EQ(codeOf(unnamed), Errc::invalidArgument);
}

TEST_P(Executing, DecoratedFunctionOutlivesItsClientAndThenRefuses)
{
    const auto name = uniqueName();
    std::function<int()> sell;
    {
        const Client ending(config());
        sell = locked(
            ending, [&] { return name; }, [] { return 1; });
        EXPECT_EQ(sell(), 1);
    }
    EXPECT_EQ(codeOf([&] { sell(); }), Errc::shutdown);
}

/// Functions that run under locks of every kind, and under a group.
class ExecutingAnything : public GroupTest {
protected:
    /// Runs @p test with a lock of each kind.
    /// @param test is called with the lock's name, the lock, and its guard's type
    template <class Test>
    void forEachLock(Test test)
    {
        const std::vector<RedisLock> members = locksOn(3);
        const Client& client = clients[0];
        test("RedisLock", client.getLock(name));
        test("FairLock", client.getFairLock(name));
        test("WriteLock", client.getReadWriteLock(name).writeLock());
        test("MultiLock", MultiLock(members));
        test("RedLock", RedLock(members));
    }

    bool becomesFree()
    {
        return eventually([&] { return lockedOn(3) == 0; });
    }
};

TEST_F(ExecutingAnything, RunsUnderTheLockAndGivesTheResult)
{
    forEachLock([this](const char* kind, const auto& lock) {
        SCOPED_TRACE(kind);
        const auto sold = executeWithLock(lock, 5s, 10s, [&](const std::stop_token& lost) {
            EXPECT_FALSE(lost.stop_requested());
            EXPECT_GE(lockedOn(3), 1U);
            return 42;
        });
        EXPECT_EQ(sold, 42);
        EXPECT_TRUE(becomesFree());
        std::error_code ec = make_error_code(Errc::lost);
        EXPECT_TRUE(executeWithLock(
            lock, 5s, 10s, [] {}, ec));
        EXPECT_FALSE(ec);
        EXPECT_TRUE(becomesFree());
        EXPECT_EQ(asyncExecuteWithLock(
                      lock, 5s, 10s, [] { return 43; }, boost::asio::use_future)
                      .get(),
                  43);
        EXPECT_TRUE(becomesFree());
    });
}

TEST_F(ExecutingAnything, RunsNothingWhereTheLockIsNotToBeHad)
{
    const Client far(configOf(0));
    const Client beside(configOf(1));
    forEachLock([&](const char* kind, const auto& lock) {
        SCOPED_TRACE(kind);
        const bool isHalf = std::string(kind) == "WriteLock";
        const Lock held = isHalf ? Lock(far.getReadWriteLock(name).writeLock()) : Lock(far.getLock(name));
        // Leases of a minute outlast the test on a busy machine without renewals, and leave a group's members the time
        // to answer. A single attempt waits for its answer, a wait of some milliseconds may be over before.
        held.lock(1min);
        beside.getLock(name).lock(1min);
        int runs = 0;
        const auto run = [&] { return ++runs; };
        EXPECT_FALSE(executeWithLock(lock, oneAttempt, 1min, run));
        std::error_code ec = make_error_code(Errc::lost);
        EXPECT_FALSE(executeWithLock(lock, oneAttempt, 1min, run, ec));
        EXPECT_FALSE(ec) << "contention is none";
        EXPECT_FALSE(executeWithLock(lock, 20ms, 1ms, run, ec));
        EXPECT_EQ(ec, Errc::invalidArgument);
        EXPECT_THROW((void)executeWithLock(lock, 20ms, 1ms, run), LockError);
        std::stop_source source;
        auto calledOff = other.start([&] { return executeWithLock(lock, 1h, 1min, source.get_token(), run); });
        EXPECT_EQ(calledOff.wait_for(20ms), std::future_status::timeout);
        source.request_stop();
        EXPECT_FALSE(calledOff.get());
        EXPECT_FALSE(executeWithLock(lock, 1h, 1min, source.get_token(), run, ec));
        EXPECT_FALSE(ec);
        EXPECT_FALSE(locked(lock, oneAttempt, 1min, run)());
        EXPECT_EQ(runs, 0);
        EXPECT_EQ(held.unlock(), Unlocked::released);
        EXPECT_EQ(beside.getLock(name).unlock(), Unlocked::released);
    });
}

TEST_F(ExecutingAnything, DecoratedFunctionTakesTheLockThatItIsGivenOrFinds)
{
    forEachLock([this](const char* kind, const auto& lock) {
        SCOPED_TRACE(kind);
        const auto sell = [this](int id, std::unique_ptr<int> amount) {
            EXPECT_GE(lockedOn(3), 1U);
            return id + *amount;
        };
        const auto lockOf = [&](int id, const std::unique_ptr<int>& amount) {
            EXPECT_EQ(id + *amount, 42);
            return lock;
        };
        EXPECT_EQ(locked(lock, sell)(40, std::make_unique<int>(2)), 42);
        EXPECT_EQ(locked(lockOf, sell)(40, std::make_unique<int>(2)), 42);
        EXPECT_EQ(locked(lock, 5s, 10s, sell)(40, std::make_unique<int>(2)), std::optional(42));
        EXPECT_EQ(locked(lockOf, 5s, 10s, sell)(40, std::make_unique<int>(2)), std::optional(42));
        EXPECT_TRUE(becomesFree());
    });
    bool ran = false;
    EXPECT_TRUE(locked(
        clients[0], [this] { return name; }, 5s, 10s, [&] { ran = true; })());
    EXPECT_TRUE(ran);
}

} // namespace
} // namespace redislock::test
