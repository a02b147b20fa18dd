// Leased permits: a request that is lost, late or doubled neither takes nor gives twice, nor changes another lease.
#include "fault/counter_fault.hpp"

#include <boost/asio/use_future.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace redislock::test {
namespace {

using detail::scripts::permitExpirableSemaphoreAcquire;
using detail::scripts::permitExpirableSemaphoreLease;
using detail::scripts::permitExpirableSemaphoreRelease;
using detail::scripts::semaphoreAcquire;

using PermitFault = CounterFault;

TEST_F(PermitFault, AcquireTakesOnePermitWhateverIsLost)
{
    const auto semaphore = client().getPermitExpirableSemaphore(counter);
    for (const auto& [how, loss] : everyLoss()) {
        SCOPED_TRACE(how);
        set(5);
        inject(request(permitExpirableSemaphoreAcquire), loss);
        Permit permit = semaphore.acquire(20s);
        EXPECT_TRUE(permit);
        EXPECT_EQ(value(), "4");
        EXPECT_EQ(redis.command({"ZCARD", timeouts}).integer(), 1);
        inject(request(permitExpirableSemaphoreRelease), loss);
        EXPECT_EQ(permit.release(), Unlocked::released);
        EXPECT_EQ(value(), "5");
        EXPECT_EQ(redis.command({"ZCARD", timeouts}).integer(), 0);
        permit = semaphore.asyncAcquire(nonExpiring, boost::asio::use_future).get();
        EXPECT_EQ(value(), "4");
        inject(request(permitExpirableSemaphoreRelease), loss);
        permit = Permit(); // the end of a permit does not wait
        EXPECT_TRUE(isLeft("5"));
    }
}

TEST_F(PermitFault, AcquireThatIsGivenUpLeavesNothingTakenThoughItComesLate)
{
    set(5);
    const auto late = inject(request(permitExpirableSemaphoreAcquire), Action::stallDirection());
    std::error_code ec;
    EXPECT_FALSE(client().getPermitExpirableSemaphore(counter).tryAcquire(0ms, nonExpiring, ec));
    EXPECT_EQ(ec, Errc::unreachable);
    ASSERT_EQ(proxy.hits(late), 1U);
    EXPECT_TRUE(eventually([&] { return redis.command({"KEYS", "redislock_request:*"}).elements.size() == 1; }));
    const auto before = executed();
    proxy.resume();
    EXPECT_TRUE(eventually([&] { return executed() > before; })) << "the late acquire did not run";
    EXPECT_EQ(value(), "5");
    EXPECT_EQ(redis.command({"ZCARD", timeouts}).integer(), 0);
}

TEST_F(PermitFault, AcquireThatIsCalledOffLeavesNothingTakenWhereverItIs)
{
    config.unreachableAfter = 20s;
    struct Kind {
        const char* name;
        const Script& script;
        std::function<bool(std::stop_token, std::error_code&)> acquire;
        std::function<std::int64_t()> ask;
    };
    const Kind kinds[] = {
        {"semaphore", semaphoreAcquire,
         [this](std::stop_token stop, std::error_code& ec) {
             return client().getSemaphore(counter).acquire(2, std::move(stop), ec);
         },
         [this] { return client().getSemaphore(counter).availablePermits(); }},
        {"leased permits", permitExpirableSemaphoreAcquire,
         [this](std::stop_token stop, std::error_code& ec) {
             const Permit taken = client().getPermitExpirableSemaphore(counter).acquire(600s, std::move(stop), ec);
             return static_cast<bool>(taken);
         },
         [this] { return client().getPermitExpirableSemaphore(counter).availablePermits(); }},
    };
    for (const Kind& kind : kinds) {
        for (const char* const point : {"connecting", "asking, not arrived", "asking, executed"}) {
            SCOPED_TRACE(std::string(kind.name) + ", " + point);
            const bool connecting = point == std::string_view("connecting");
            const bool executed = point == std::string_view("asking, executed");
            forgetClient();
            redis.command({"DEL", counter, timeouts});
            set(5);
            const auto disconnected = seen->count(Event::disconnected);
            std::optional<RuleId> stalled;
            if (connecting) {
                proxy.refuse();
            } else {
                stalled = inject(executed ? reply(kind.script) : request(kind.script), Action::stallDirection());
            }
            std::stop_source source;
            auto call = std::async(std::launch::async, [&] {
                std::error_code ec;
                const bool taken = kind.acquire(source.get_token(), ec);
                EXPECT_FALSE(ec) << ec.message();
                return taken;
            });
            expectFault(eventually([&] {
                            return stalled ? proxy.hits(*stalled) == 1
                                           : seen->count(Event::disconnected) > disconnected;
                        }),
                        "it is there");
            const Stopwatch watch;
            source.request_stop();
            EXPECT_FALSE(call.get());
            EXPECT_LT(watch.elapsed(), slack);
            endFaults();
            kind.ask(); // this answer comes after everything that the client has sent
            EXPECT_TRUE(isLeft("5"));
            EXPECT_EQ(redis.command({"ZCARD", timeouts}).integer(), 0);
        }
    }
}

TEST_F(PermitFault, LateCopyOfItsAcquireLeavesALeaseAsItIs)
{
    set(1);
    const auto semaphore = client().getPermitExpirableSemaphore(counter);
    const auto late = inject(request(permitExpirableSemaphoreAcquire), Action::stallDirection());
    Permit permit = semaphore.acquire(10s);
    ASSERT_EQ(proxy.hits(late), 1U);
    EXPECT_TRUE(semaphore.updateLeaseTime(permit.id(), 600s));
    const auto before = executed();
    proxy.resume();
    EXPECT_TRUE(eventually([&] { return executed() > before; })) << "the late acquire did not run";
    EXPECT_GT(semaphore.getLeaseTime(permit.id()).value_or(0ms), 300s);
    EXPECT_GT(permit.validFor(), 300s);
    EXPECT_EQ(permit.release(), Unlocked::released);
    EXPECT_EQ(value(), "1");
}

TEST_F(PermitFault, LateChangeOfALeaseDoesNotCutTheNextOne)
{
    config.unreachableAfter = 800ms;
    set(1);
    const auto semaphore = client().getPermitExpirableSemaphore(counter);
    Permit permit = semaphore.acquire(600s);
    const auto late = inject(request(permitExpirableSemaphoreLease), Action::stallDirection());
    std::error_code ec;
    semaphore.updateLeaseTime(permit.id(), 20s, ec);
    ASSERT_EQ(proxy.hits(late), 1U);
    EXPECT_TRUE(semaphore.updateLeaseTime(permit.id(), 600s));
    const auto before = executed();
    proxy.resume();
    EXPECT_TRUE(eventually([&] { return executed() > before; })) << "the late change did not run";
    EXPECT_GT(semaphore.getLeaseTime(permit.id()).value_or(0ms), 300s);
    EXPECT_GT(permit.validFor(), 300s);
    EXPECT_EQ(permit.release(), Unlocked::released);
    EXPECT_EQ(value(), "1");
}

TEST_F(PermitFault, ReleaseWithoutAnAnswerIsUnconfirmedAndGoesOn)
{
    config.unreachableAfter = 800ms;
    set(1);
    Permit permit = client().getPermitExpirableSemaphore(counter).acquire(20s);
    const auto lost = inject(request(permitExpirableSemaphoreRelease, 0), Action::drop());
    EXPECT_EQ(permit.release(), Unlocked::unconfirmed);
    EXPECT_EQ(value(), "0");
    proxy.remove(lost);
    EXPECT_TRUE(isLeft("1"));
}

// Under the sanitizers a forked child may neither start threads nor allocate at any time.
#if !defined(REDISLOCK_THREAD_SANITIZER) && !defined(REDISLOCK_ADDRESS_SANITIZER)
TEST_F(PermitFault, PermitOfAProcessThatIsKilledIsFreeWhenItsLeaseIsOver)
{
    set(1);
    const pid_t child = ::fork();
    if (child == 0) {
        try {
            Config own = config;
            own.observer = nullptr;
            Client other(own);
            const Permit permit = other.getPermitExpirableSemaphore(counter).acquire(600ms);
            ::kill(::getpid(), SIGKILL);
        } catch (...) {
        }
        ::_exit(1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    expectFault(WIFSIGNALED(status), "process killed");
    EXPECT_EQ(value(), "0");
    const Stopwatch watch;
    Permit permit = client().getPermitExpirableSemaphore(counter).tryAcquire(15s, 10s);
    EXPECT_TRUE(permit);
    EXPECT_LT(watch.elapsed(), 600ms + slack) << "the poll is every 20 s";
    EXPECT_EQ(permit.release(), Unlocked::released);
    EXPECT_EQ(value(), "1");
}
#endif

} // namespace
} // namespace redislock::test
