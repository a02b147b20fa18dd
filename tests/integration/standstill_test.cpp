// Processes that are stopped while calls are under way: the server's answers of that time count, and no call is
// `unreachable` because the process stood still.
#include "behaviour/lock_test.hpp"
#include "integration/asker_process.hpp"
#include "support/fault_proxy.hpp"
#include "wire/script.hpp"

#include <gtest/gtest.h>

#include <string>

namespace redislock::test {
namespace {

/// A process whose calls have all been sent, and executed, when it is stopped; the answers are held back.
class Standstill : public LockTest {
protected:
    Standstill()
    {
        raw.command({"SET", AskerProcess::semaphore(name), "5"});
        raw.command({"SET", AskerProcess::latch(name), "2"});
        EXPECT_EQ(process.line(), "ready");
        const auto held = proxy.add(answers, Action::stallDirection());
        const auto executed = raw.commandCalls("evalsha");
        proxy.clearRequestLog();
        process.tell("ask");
        EXPECT_TRUE(eventually([&] { return raw.commandCalls("evalsha") == executed + AskerProcess::askers; }));
        EXPECT_TRUE(proxy.awaitHits(held));
        process.freeze();
        proxy.clear();
    }

    ~Standstill() override
    {
        process.kill(); // its locks are of no use any more
        for (const auto& key : raw.command({"KEYS", "*" + name + "*"}).elements) {
            raw.command({"DEL", key.text()});
        }
    }

    /// Lets the process go on, after more time than its calls would have waited for an answer.
    std::string goOn()
    {
        const Stopwatch watch;
        EXPECT_TRUE(eventually([&] { return watch.elapsed() > limit + 500ms; }, 2 * limit));
        process.thaw();
        return process.line();
    }

    void expectCountedOnce()
    {
        EXPECT_EQ(raw.get(AskerProcess::semaphore(name)), "6");
        EXPECT_EQ(raw.get(AskerProcess::latch(name)), "1");
    }

    static constexpr std::chrono::milliseconds limit{3000};
    const Match answers{.command = "EVALSHA", .direction = Direction::reply, .nth = 1};
    const std::string name = uniqueName();
    FaultProxy proxy{server()};
    AskerProcess process{proxy.url() + "?command_timeout=3000&unreachable_after=3000", name};
};

TEST_F(Standstill, WhoGoesOnReadsTheAnswersThatCameMeanwhile)
{
    proxy.resume();
    EXPECT_EQ(goOn(), AskerProcess::allWell);
    const Match confirmation{
        .command = "EVALSHA", .script = std::string(detail::scripts::redisLockRenew.sha1), .nth = 0};
    EXPECT_EQ(proxy.requests("EVALSHA") - proxy.requests(confirmation), AskerProcess::askers) << "each asked once";
    expectCountedOnce();
}

TEST_F(Standstill, WhoGoesOnWithoutAnAnswerAsksOnceMore)
{
    proxy.closeAll();
    proxy.resume();
    EXPECT_EQ(goOn(), AskerProcess::allWell);
    expectCountedOnce();
}

} // namespace
} // namespace redislock::test
