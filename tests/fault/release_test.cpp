// Requests and replies of a release that are lost, late or doubled.
#include "fault/denied_user.hpp"
#include "fault/fault_test.hpp"

#include <boost/asio/use_future.hpp>

namespace redislock::test {
namespace {

using LostRequest = FaultTest;
using LostReply = FaultTest;
using LateRelease = FaultTest;
using DoubledRelease = FaultTest;
using UnawaitedRelease = FaultTest;

TEST_F(LostRequest, UnlockIsRepeatedUntilItIsConfirmed)
{
    for (const auto& [how, loss] : lostRequests()) {
        SCOPED_TRACE(how);
        lock().lock(20s);
        proxy.clearRequestLog();
        inject(request(redisLockUnlock), loss);
        EXPECT_EQ(lock().unlock(), Unlocked::released);
        EXPECT_FALSE(redis.exists(name));
        EXPECT_EQ(holdersIn(redisLockUnlock).size(), 1U);
    }
}

TEST_F(LostRequest, UnlockThatNeverArrivesIsUnconfirmedWhenTheLeaseIsOver)
{
    config.unreachableAfter = 20s;
    const RedisLock held = lock();
    held.lock(1000ms);
    inject(request(redisLockUnlock, 0), Action::drop());
    const auto valid = held.validFor();
    const Stopwatch watch;
    EXPECT_EQ(held.unlock(), Unlocked::unconfirmed);
    EXPECT_GE(watch.elapsed(), valid - 500ms);
    EXPECT_LT(watch.elapsed(), valid + slack);
    EXPECT_FALSE(held.isHeldByCurrentThread());
    EXPECT_TRUE(seen->await(Event::unconfirmed));
    EXPECT_TRUE(eventually([&] { return !redis.exists(name); }, 1000ms + slack));
}

TEST_F(LostRequest, UnlockThatIsUnconfirmedGoesOnInTheBackground)
{
    config.unreachableAfter = 800ms;
    lock().lock(25s);
    const auto lost = inject(request(redisLockUnlock, 0), Action::drop());
    const Stopwatch watch;
    EXPECT_EQ(lock().unlock(), Unlocked::unconfirmed);
    EXPECT_LT(watch.elapsed(), config.unreachableAfter + slack);
    EXPECT_EQ(countInRedis(), "1");
    proxy.remove(lost);
    EXPECT_TRUE(eventually([&] { return !redis.exists(name); }, 2 * config.commandTimeout + slack));
    EXPECT_TRUE(seen->await(Event::released));
}

TEST_F(LostReply, UnlockThatFindsNothingAfterItsOwnFirstTryIsReleased)
{
    for (const auto& [how, loss] : lostReplies()) {
        SCOPED_TRACE(how);
        lock().lock(20s);
        proxy.clearRequestLog();
        inject(request(redisLockUnlock), loss);
        EXPECT_EQ(lock().unlock(), Unlocked::released);
        EXPECT_FALSE(redis.exists(name));
        EXPECT_GE(requestsFor(redisLockUnlock).size(), 2U);
    }
}

TEST_F(LostReply, UnlockOfAHoldThatSomebodyTookMeanwhileTouchesNobody)
{
    lock().lock(20s);
    const auto stalled = inject(reply(redisLockUnlock), Action::stallDirection());
    auto next = std::async(std::launch::async, [this, stalled] {
        const bool hit = proxy.awaitHits(stalled);
        foreignLock(30s); // between the first try, which was executed, and the second
        return hit;
    });
    EXPECT_EQ(lock().unlock(), Unlocked::released);
    EXPECT_TRUE(next.get());
    EXPECT_EQ(redis.hash(name), (std::map<std::string, std::string>{{foreigner, "1"}}));
    redis.command({"DEL", name});
}

TEST_F(LostReply, GuardsReleaseIsRepeatedUntilItArrives)
{
    config.commandTimeout = 2s;
    auto losses = lostRequests();
    for (auto& loss : lostReplies()) {
        losses.push_back(std::move(loss));
    }
    std::size_t released = 0;
    for (const auto& [how, loss] : losses) {
        SCOPED_TRACE(how);
        inject(request(redisLockUnlock), loss);
        LockGuard guard(lock(), Lease(20s));
        EXPECT_EQ(countInRedis(), "1");
        const Stopwatch watch;
        guard = LockGuard();
        EXPECT_LT(watch.elapsed(), config.commandTimeout) << "it waited";
        EXPECT_FALSE(lock().isHeldByCurrentThread());
        EXPECT_TRUE(eventually([&] { return !redis.exists(name); }));
        EXPECT_TRUE(seen->await(Event::released, ++released));
        EXPECT_EQ(seen->all(Event::released).back().how, Unlocked::released);
    }
}

TEST_F(LostReply, GuardsReleaseOfANestedLevelLeavesTheCountExact)
{
    auto losses = lostRequests();
    for (auto& loss : lostReplies()) {
        losses.push_back(std::move(loss));
    }
    losses.push_back({"request doubled", Action::duplicate()});
    for (const auto& [how, loss] : losses) {
        SCOPED_TRACE(how);
        const LockGuard outer(lock(), Lease(20s));
        {
            const LockGuard inner(lock(), Lease(20s));
            EXPECT_EQ(countInRedis(), "2");
            inject(request(redisLockUnlock), loss);
        }
        EXPECT_EQ(lock().holdCount(), 1U);
        EXPECT_TRUE(eventually([&] { return countInRedis() == "1"; }, 2 * config.commandTimeout + slack));
    }
}

TEST_F(LostReply, GuardsReleaseBehindThatOfANestedLevelIsSentAgainAndAgain)
{
    const auto cut = inject(request(redisLockUnlock, 0), Action::cut(), 3);
    std::optional<LockGuard> outer(std::in_place, lock(), Lease(60s));
    std::optional<LockGuard> inner(std::in_place, lock(), Lease(60s));
    inner.reset(); // neither end waits for an answer
    outer.reset();
    EXPECT_TRUE(proxy.awaitHits(cut, 3));
    EXPECT_TRUE(eventually([&] { return !redis.exists(name); }));
}

TEST_F(LateRelease, OfAHoldDoesNotTouchTheNextHoldOfTheSameThread)
{
    lock().lock(20s);
    const auto late = inject(request(redisLockUnlock), Action::stallDirection());
    EXPECT_EQ(lock().unlock(), Unlocked::released); // released by its second try
    ASSERT_EQ(proxy.hits(late), 1U);
    lock().lock(20s);
    const auto before = redis.hash(name);
    const auto executed = redis.commandCalls("evalsha");
    proxy.resume();
    EXPECT_TRUE(eventually([&] { return redis.commandCalls("evalsha") > executed; })) << "the late release did not run";
    EXPECT_EQ(holdersIn(redisLockUnlock).size(), 1U);
    EXPECT_EQ(redis.hash(name), before);
    EXPECT_EQ(countInRedis(), "1");
    EXPECT_EQ(lock().unlock(), Unlocked::released);
}

TEST_F(LateRelease, OfAGuardDoesNotTouchTheNextHoldOfTheSameThread)
{
    const auto late = inject(request(redisLockUnlock), Action::stallDirection());
    {
        const LockGuard first(lock(), Lease(20s));
    }
    lock().lock(20s); // its request follows the release on the same connection, then on the next one
    ASSERT_EQ(proxy.hits(late), 1U);
    const auto before = redis.hash(name);
    EXPECT_EQ(countInRedis(), "1");
    const auto executed = redis.commandCalls("evalsha");
    proxy.resume();
    EXPECT_TRUE(eventually([&] { return redis.commandCalls("evalsha") > executed; })) << "the late release did not run";
    EXPECT_EQ(redis.hash(name), before);
    EXPECT_TRUE(lock().isHeldByCurrentThread());
    EXPECT_EQ(lock().unlock(), Unlocked::released);
}

TEST_F(DoubledRelease, OfAHoldDoesNotTouchTheNextHoldOfTheSameThread)
{
    const auto doubled = inject(request(redisLockUnlock, 0), Action::duplicate());
    constexpr int rounds = 20;
    for (int i = 0; i < rounds; ++i) {
        {
            const LockGuard guard(lock(), Lease(20s));
        }
        lock().lock(20s);
        EXPECT_EQ(countInRedis(), "1");
        EXPECT_EQ(lock().unlock(), Unlocked::released);
    }
    EXPECT_GE(proxy.hits(doubled), 2U * rounds);
    EXPECT_EQ(holdersIn(redisLockLock).size(), 2U * rounds) << "a holder was used twice";
}

TEST_F(UnawaitedRelease, IsSentAgainWholeWhenRedisForgotTheScript)
{
    for (int i = 1; i <= 3; ++i) {
        {
            const LockGuard guard(lock(), Lease(20s));
            redis.command({"SCRIPT", "FLUSH"});
        }
        EXPECT_TRUE(eventually([&] { return !redis.exists(name); }));
        const Match whole{.command = "EVAL", .script = redisLockUnlock.text()};
        EXPECT_EQ(proxy.requests(whole), static_cast<std::size_t>(i));
        expectFault(errorsSent("NOSCRIPT") >= static_cast<std::uint64_t>(i), "NOSCRIPT");
    }
}

/// The server denies the client's user its requests, and allows them again long before the leases are over.
class DeniedRelease : public FaultTest {
protected:
    DeniedRelease()
    {
        config.unreachableAfter = 2s; // a password that is refused later is an outage
        config.commandTimeout = 5s;
    }

    /// Ends a hold while the user is denied; returns when a try in the background was denied too.
    template <class End>
    void endDenied(const DeniedUser::Way& way, End end)
    {
        const auto before = errorsSent(way.error);
        user.deny(way);
        end();
        expectFault(eventually([&] { return errorsSent(way.error) >= before + 2; }), "a repetition that was denied");
    }

    DeniedUser user{redis, config};
};

TEST_F(DeniedRelease, GoesOnUntilItsUserIsBack)
{
    struct Case {
        const char* how;
        std::function<void(RedisLock&, LockGuard&)> end;
    };
    const Case cases[] = {
        {"unlock()", [](RedisLock& held, LockGuard&) { EXPECT_EQ(held.unlock(), Unlocked::unconfirmed); }},
        {"release()", [](RedisLock&, LockGuard& guard) { EXPECT_EQ(guard.release(), Unlocked::unconfirmed); }},
        {"the end of a guard", [](RedisLock&, LockGuard& guard) { guard = LockGuard(); }},
        {"asyncRelease()",
         [](RedisLock&, LockGuard& guard) {
             auto how = guard.asyncRelease(boost::asio::use_future);
             ASSERT_EQ(how.wait_for(10s), std::future_status::ready);
             EXPECT_EQ(how.get(), Unlocked::unconfirmed);
         }},
    };
    std::size_t released = 0;
    for (const auto& way : DeniedUser::ways()) {
        for (const Case& c : cases) {
            for (const bool asynchronous : {false, true}) {
                const bool ofThread = std::string_view(c.how) == "unlock()";
                if (ofThread && asynchronous) {
                    continue;
                }
                SCOPED_TRACE(std::string(c.how) + (asynchronous ? " of an asynchronous hold, " : ", ") + way.how);
                RedisLock held = lock();
                LockGuard guard;
                if (ofThread) {
                    held.lock(60s);
                } else {
                    guard =
                        asynchronous ? held.asyncLock(60s, boost::asio::use_future).get() : LockGuard(held, Lease(60s));
                }
                endDenied(way, [&] { c.end(held, guard); });
                EXPECT_TRUE(redis.exists(name));
                user.allow();
                EXPECT_TRUE(eventually([&] { return !redis.exists(name); }));
                EXPECT_TRUE(seen->await(Event::released, ++released));
                EXPECT_EQ(seen->all(Event::released).back().how, Unlocked::released);
            }
        }
    }
}

TEST_F(DeniedRelease, OfANestedLevelIsToldWhenItsUserIsBack)
{
    for (const auto& way : DeniedUser::ways()) {
        for (const bool awaited : {false, true}) {
            SCOPED_TRACE(std::string(awaited ? "unlock(), " : "the end of a guard, ") + way.how);
            const LockGuard outer(lock(), Lease(60s));
            LockGuard inner;
            awaited ? lock().lock(60s) : void(inner = LockGuard(lock(), Lease(60s)));
            endDenied(way, [&] {
                if (awaited) {
                    EXPECT_EQ(lock().unlock(), Unlocked::unconfirmed);
                } else {
                    inner = LockGuard();
                }
            });
            EXPECT_EQ(countInRedis(), "2");
            user.allow();
            EXPECT_TRUE(eventually([&] { return countInRedis() == "1"; }));
            EXPECT_TRUE(lock().isHeldByCurrentThread());
        }
    }
}

TEST_F(DeniedRelease, OfWhatAnUnansweredAcquireMayHaveGotGoesOnToo)
{
    const auto off = DeniedUser::ways().front();
    const auto swallowed = inject(reply(redisLockLock), Action::swallow(), 1);
    auto acquire = std::async(std::launch::async, [&] {
        std::error_code ec;
        EXPECT_FALSE(lock().tryLock(20s, 60s, ec));
        return ec;
    });
    ASSERT_TRUE(proxy.awaitHits(swallowed));
    endDenied(off, [&] { EXPECT_EQ(acquire.get(), Errc::authFailed); });
    EXPECT_EQ(countInRedis(), "1");
    user.allow();
    EXPECT_TRUE(eventually([&] { return !redis.exists(name); }));
}

TEST_F(DeniedRelease, OfAGroupGoesOnForEachMember)
{
    for (const auto& way : DeniedUser::ways()) {
        SCOPED_TRACE(way.how);
        const MultiLock both({lockOf("first"), lockOf("second")});
        GroupGuard guard(both, Lease(60s));
        endDenied(way, [&] { EXPECT_EQ(guard.release(), Unlocked::unconfirmed); });
        EXPECT_TRUE(redis.exists("first") && redis.exists("second"));
        user.allow();
        EXPECT_TRUE(eventually([&] { return !redis.exists("first") && !redis.exists("second"); }));
    }
}

} // namespace
} // namespace redislock::test
