// Semaphores and latches of a user whose rights are taken away and given back.
#include "fault/counter_fault.hpp"
#include "fault/denied_user.hpp"

#include <boost/asio/use_future.hpp>

namespace redislock::test {
namespace {

using detail::scripts::countDownLatchCountDown;
using detail::scripts::semaphoreAcquire;
using detail::scripts::semaphoreAdd;
using detail::scripts::semaphoreDrain;

/// The server denies the client's user its requests, and allows them again soon.
class DeniedCounterUser : public CounterFault {
protected:
    DeniedCounterUser()
    {
        config.unreachableAfter = 2s; // a password that is refused later is an outage
        config.commandTimeout = 5s;
    }

    /// Waits until a repetition in the background was denied too.
    void awaitDenial(const DeniedUser::Way& way, std::uint64_t before)
    {
        expectFault(eventually([&] { return errorsSent(way.error) >= before + 2; }), "a repetition that was denied");
    }

    DeniedUser user{redis, config};
};

TEST_F(DeniedCounterUser, PermitIsGivenBackWhenItsUserIsBack)
{
    struct Case {
        const char* how;
        std::function<void(Permit&, const PermitExpirableSemaphore&)> end;
    };
    const Case cases[] = {
        {"release()", [](Permit& permit, const auto&) { EXPECT_EQ(permit.release(), Unlocked::unconfirmed); }},
        {"asyncRelease()",
         [](Permit& permit, const auto&) {
             EXPECT_THROW(permit.asyncRelease(boost::asio::use_future).get(), boost::system::system_error);
         }},
        {"the end of a guard", [](Permit& permit, const auto&) { permit = Permit(); }},
        {"release by its id",
         [](Permit& permit, const auto& semaphore) {
             std::error_code ec;
             EXPECT_EQ(semaphore.release(permit.id(), ec), Unlocked::unconfirmed);
             // no error if the request was under way when its connection was ended
             EXPECT_TRUE(!ec || ec == Errc::authFailed || ec == Errc::permissionDenied) << ec.message();
         }},
    };
    const auto semaphore = client().getPermitExpirableSemaphore(counter);
    for (const auto& way : DeniedUser::ways()) {
        for (const Case& c : cases) {
            SCOPED_TRACE(std::string(c.how) + ", " + way.how);
            set(1);
            Permit permit = semaphore.acquire(600s);
            const auto before = errorsSent(way.error);
            user.deny(way);
            c.end(permit, semaphore);
            awaitDenial(way, before);
            EXPECT_EQ(value(), "0");
            user.allow();
            EXPECT_TRUE(isLeft("1"));
        }
    }
}

TEST_F(DeniedCounterUser, RequestThatMayHaveBeenExecutedIsUnreachableAndCountsOnce)
{
    const auto off = DeniedUser::ways().front();
    const auto semaphore = client().getSemaphore(counter);
    const auto latch = client().getCountDownLatch(counter);
    struct Case {
        const char* how;
        Match lost;
        std::function<void(std::error_code&)> ask;
        std::string before, meanwhile, after;
    };
    const auto asynchronous = [](std::error_code& ec, auto future) {
        try {
            future.get();
        } catch (const boost::system::system_error& e) {
            ec = e.code();
        }
    };
    const Case cases[] = {
        {"release", reply(semaphoreAdd), [&](auto& ec) { semaphore.release(2, ec); }, "1", "3", "3"},
        {"asyncRelease", reply(semaphoreAdd),
         [&](auto& ec) { asynchronous(ec, semaphore.asyncRelease(2, boost::asio::use_future)); }, "1", "3", "3"},
        {"countDown", reply(countDownLatchCountDown), [&](auto& ec) { latch.countDown(ec); }, "3", "2", "2"},
        {"drainPermits", reply(semaphoreDrain), [&](auto& ec) { semaphore.drainPermits(ec); }, "3", "0", "3"},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.how);
        set(3);
        EXPECT_EQ(semaphore.availablePermits(), 3); // so that the client is connected
        redis.command({"SET", counter, c.before});
        const auto before = errorsSent(off.error);
        const auto swallowed = inject(c.lost, Action::swallow(), 1);
        std::error_code ec;
        auto asked = std::async(std::launch::async, [&] { c.ask(ec); });
        ASSERT_TRUE(proxy.awaitHits(swallowed));
        user.deny(off);
        asked.get();
        EXPECT_EQ(ec, Errc::unreachable);
        awaitDenial(off, before);
        EXPECT_EQ(value(), c.meanwhile);
        proxy.clearRequestLog();
        user.allow();
        EXPECT_TRUE(proxy.awaitRequests({.command = "EVALSHA", .direction = Direction::request}));
        EXPECT_TRUE(isLeft(c.after));
    }
}

TEST_F(DeniedCounterUser, AcquireWithoutAnAnswerIsWithdrawnWhenItsUserIsBack)
{
    const auto off = DeniedUser::ways().front();
    set(3);
    const auto before = errorsSent(off.error);
    const auto swallowed = inject(reply(semaphoreAcquire), Action::swallow(), 1);
    std::error_code ec;
    auto asked = std::async(std::launch::async, [&] { client().getSemaphore(counter).acquire(2, ec); });
    ASSERT_TRUE(proxy.awaitHits(swallowed));
    user.deny(off);
    asked.get();
    EXPECT_EQ(ec, Errc::authFailed);
    awaitDenial(off, before);
    EXPECT_EQ(value(), "1");
    user.allow();
    EXPECT_TRUE(isLeft("3"));
}

} // namespace
} // namespace redislock::test
