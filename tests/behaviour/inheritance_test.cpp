// A lease that is passed on inside a client: to which caller, what changes, and when the lease goes through Redis all
// the same.
#include "behaviour/lock_test.hpp"
#include "behaviour/worker.hpp"
#include "redislock/lock_guard.hpp"
#include "support/frozen_thread.hpp"

#include <boost/asio/use_future.hpp>

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace redislock::test {
namespace {

class Inheritance : public LockTest {
protected:
    /// Threads that lock and unlock a lock until the crowd ends.
    class Crowd {
    public:
        explicit Crowd(const RedisLock& lock)
        {
            for (int i = 0; i < 4; ++i) {
                threads_.emplace_back([this, lock](const std::stop_token& stop) {
                    while (!stop.stop_requested()) {
                        lock.lock();
                        const auto how = lock.unlock();
                        passed_ += how == Unlocked::passedOn ? 1 : 0;
                        lost_ += how == Unlocked::alreadyLost ? 1 : 0;
                    }
                });
            }
        }
        [[nodiscard]] int passed() const { return passed_; }
        [[nodiscard]] int lost() const { return lost_; }

    private:
        std::atomic<int> passed_{0}, lost_{0};
        std::vector<std::jthread> threads_; ///< last member: destroyed first
    };

    /// Ends holds of this thread while another caller waits, until one is passed on: the first hold is not, and on a
    /// busy machine a hold may last too long to be passed on. @param wait makes the caller wait
    /// @param leave ends the caller's hold if it was not passed on
    template <class Waiting>
    bool letInherit(const RedisLock& lock, const std::function<Waiting()>& wait,
                    const std::function<void(Waiting&)>& leave, std::optional<Waiting>& passed)
    {
        for (int i = 0; i < 100 && !passed; ++i) {
            lock.lock();
            holder = holderOf(lock.name());
            auto waiting = wait();
            std::this_thread::sleep_for(5ms);
            requests = scriptCalls();
            if (lock.unlock() == Unlocked::passedOn) {
                passed.emplace(std::move(waiting));
            } else {
                leave(waiting);
            }
        }
        return passed.has_value();
    }

    /// The same with a thread as the other caller.
    bool passOnTo(Worker& other, const RedisLock& lock)
    {
        using Locked = std::future<void>;
        std::optional<Locked> passed;
        const auto wait = [&] { return other.start([lock] { lock.lock(); }); };
        const auto leave = [&](Locked& locked) {
            locked.get();
            other.run([lock] { lock.unlock(); });
        };
        const bool isPassed = letInherit<Locked>(lock, wait, leave, passed);
        if (isPassed) {
            passed->get();
        }
        return isPassed;
    }

    Client client{observed()};
    std::string holder;         ///< of the hold that was passed on
    std::uint64_t requests = 0; ///< before the passing on
};

TEST_F(Inheritance, TheHolderInRedisStaysAndTheHoldIsTheNextCallers)
{
    Config config = observed();
    config.watchdogTimeout = 10min; // no renewal comes in between
    Client patient(config);
    const auto lock = patient.getLock(uniqueName());
    Worker other;
    ASSERT_TRUE(passOnTo(other, lock));
    EXPECT_EQ(scriptCalls(), requests) << "without a request";
    EXPECT_EQ(holderOf(lock.name()), holder);
    EXPECT_EQ(countOf(lock.name()), "1");
    EXPECT_FALSE(lock.isHeldByCurrentThread());
    EXPECT_EQ(lock.validFor(), 0ms);
    EXPECT_TRUE(lock.stopToken().stop_requested()) << "there is no hold";
    std::error_code ec;
    lock.unlock(ec);
    EXPECT_EQ(ec, Errc::notHeld);
    other.run([&] {
        EXPECT_EQ(lock.holdCount(), 1U);
        EXPECT_GT(lock.validFor(), 0ms);
        EXPECT_FALSE(lock.stopToken().stop_requested());
        EXPECT_EQ(lock.unlock(), Unlocked::released);
    });
}

TEST_F(Inheritance, TheObserverIsToldOfTheEndOfOneHoldAndTheBeginningOfTheNext)
{
    const auto lock = client.getLock(uniqueName());
    Worker other;
    ASSERT_TRUE(passOnTo(other, lock));
    EXPECT_EQ(other.run([&] { return lock.unlock(); }), Unlocked::released);
    ASSERT_TRUE(eventually([&] { return observer()->count("released") == observer()->count("acquired"); }));
    std::vector<Told> told = observer()->all();
    std::erase_if(told, [&](const Told& each) { return each.holder != holder || each.what == "renewed"; });
    ASSERT_EQ(told.size(), 4U);
    EXPECT_EQ(told[0].what, "acquired");
    EXPECT_EQ(told[1].what, "released");
    EXPECT_EQ(told[1].how, Unlocked::passedOn);
    EXPECT_EQ(told[2].what, "acquired");
    EXPECT_EQ(told[2].attempts, 0U);
    EXPECT_GT(told[2].time, 0ns);
    EXPECT_EQ(told[3].how, Unlocked::released);
}

TEST_F(Inheritance, AnAsynchronousCallerGetsItAndIsToldWhenItIsLost)
{
    const auto lock = client.getLock(uniqueName());
    using Locked = std::future<LockGuard>;
    std::optional<Locked> passed;
    const bool isPassed = letInherit<Locked>(
        lock, [&] { return lock.asyncLock(boost::asio::use_future); }, [](Locked& locked) { (void)locked.get(); },
        passed);
    ASSERT_TRUE(isPassed);
    auto guard = passed->get();
    EXPECT_TRUE(guard);
    EXPECT_EQ(holderOf(lock.name()), holder);
    const auto stop = guard.stopToken();
    EXPECT_FALSE(stop.stop_requested());
    raw.command({"DEL", lock.name()}); // the holder's next renewal finds this
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
    EXPECT_FALSE(guard);
    EXPECT_EQ(guard.release(), Unlocked::alreadyLost);
}

TEST_F(Inheritance, TheHoldThatWasPassedOnIsRenewed)
{
    const auto lock = client.getLock(uniqueName());
    Worker other;
    ASSERT_TRUE(passOnTo(other, lock));
    const auto before = observer()->count("renewed", lock.name());
    EXPECT_TRUE(observer()->await("renewed", lock.name(), before + 5)) << "longer than a lease";
    EXPECT_EQ(holderOf(lock.name()), holder);
    EXPECT_EQ(other.run([&] { return lock.unlock(); }), Unlocked::released);
}

TEST_F(Inheritance, FixedLeasesAndTokensGoThroughRedis)
{
    const auto lock = client.getLock(uniqueName());
    const auto fenced = client.getFencedLock(uniqueName());
    Worker other;
    for (int i = 0; i < 10; ++i) {
        lock.lock(20s);
        auto waiting = other.start([&] { lock.lock(); });
        std::this_thread::sleep_for(5ms);
        EXPECT_EQ(lock.unlock(), Unlocked::released) << "of a fixed lease";
        waiting.get();
        std::thread fixed([&] {
            lock.lock(20s);
            EXPECT_EQ(lock.unlock(), Unlocked::released);
        });
        std::this_thread::sleep_for(5ms);
        EXPECT_EQ(other.run([&] { return lock.unlock(); }), Unlocked::released) << "to a fixed lease";
        fixed.join();
        fenced.lock();
        waiting = other.start([&] { fenced.lock(); });
        std::this_thread::sleep_for(5ms);
        EXPECT_EQ(fenced.unlock(), Unlocked::released);
        waiting.get();
        EXPECT_EQ(other.run([&] { return fenced.unlock(); }), Unlocked::released);
    }
}

TEST_F(Inheritance, ALockThatRedisLostIsFoundLongBeforeItsNextRenewal)
{
    Config config = observed();
    config.watchdogTimeout = 10min;
    Client patient(config);
    const auto lock = patient.getLock(uniqueName());
    const Crowd crowd(lock);
    ASSERT_TRUE(eventually([&] { return crowd.passed() > 10; }));
    EXPECT_TRUE(eventually([&] {
        raw.command({"DEL", lock.name()}); // this may hit between a grant and the release through Redis
        return crowd.lost() > 0;
    }));
}

TEST_F(Inheritance, AHolderIsPassedOnForATenthOfASecondAtMost)
{
    const auto lock = client.getLock(uniqueName());
    std::mutex mutex;
    std::map<std::string, std::chrono::nanoseconds> seen; // the holders, since when
    int passed = 0;
    std::chrono::nanoseconds longest{};
    const auto play = [&](const std::stop_token& stop) {
        RawRedis own{server()};
        if (overCluster()) {
            own.joinCluster(ports());
        }
        while (!stop.stop_requested()) {
            lock.lock();
            const auto in = own.hash(lock.name()).begin()->first;
            std::this_thread::sleep_for(5ms); // meanwhile the other one waits
            const std::lock_guard guard(mutex);
            const auto since = seen.try_emplace(in, bootTime()).first->second;
            const auto before = bootTime();
            if (lock.unlock() == Unlocked::passedOn) {
                ++passed;
                longest = std::max(longest, before - since);
            }
        }
    };
    {
        std::jthread one(play);
        std::jthread other(play);
        EXPECT_TRUE(eventually([&] {
            const std::lock_guard guard(mutex);
            return passed > 20 && seen.size() > 4;
        }));
    }
    EXPECT_LT(longest, 100ms);
}

TEST_F(Inheritance, WhoLeavesAtTheSameMomentLeavesNothing)
{
    const auto lock = client.getLock(uniqueName());
    Worker other;
    for (int i = 0; i < 200; ++i) {
        lock.lock();
        std::stop_source stop;
        auto waiting = other.start([&, token = stop.get_token()] {
            return lock.tryLock(waitForever, keepRenewing, token) && isEnded(lock.unlock());
        });
        std::this_thread::sleep_for(std::chrono::microseconds(i));
        std::thread leaving([&] { stop.request_stop(); });
        EXPECT_TRUE(isEnded(lock.unlock()));
        leaving.join();
        waiting.get();
        ASSERT_TRUE(eventually([&] { return !raw.exists(lock.name()); })) << "round " << i;
    }
}

TEST_F(Inheritance, ToACallerThatDoesNotKnowOfItYetIsGivenBackAtTheEndOfTheClient)
{
    Client ending(config());
    const auto lock = ending.getLock(uniqueName());
    Worker other;
    const auto thread = other.run([] { return ::pthread_self(); });
    const auto id = other.run([] { return ::gettid(); });
    bool isPassed = false;
    for (int i = 0; i < 100 && !isPassed; ++i) {
        lock.lock();
        auto waiting = other.start([&] {
            std::error_code ec;
            lock.lock(ec);
            return ec;
        });
        std::this_thread::sleep_for(5ms);
        ASSERT_TRUE(eventually([&] { return FrozenThread::sleeps(id); }));
        {
            const FrozenThread frozen(thread);
            isPassed = lock.unlock() == Unlocked::passedOn;
            if (isPassed) {
                EXPECT_TRUE(ending.shutdown(5s));
                EXPECT_FALSE(raw.exists(lock.name()));
            }
        }
        EXPECT_EQ(waiting.get(), isPassed ? make_error_code(Errc::shutdown) : std::error_code());
        if (!isPassed) {
            EXPECT_EQ(other.run([&] { return lock.unlock(); }), Unlocked::released);
        }
    }
    EXPECT_TRUE(isPassed);
}

} // namespace
} // namespace redislock::test
