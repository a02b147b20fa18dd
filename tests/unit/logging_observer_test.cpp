#include "redislock/logging_observer.hpp"

#include "redislock/error.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redislock {
namespace {

using namespace std::chrono_literals;
using namespace std::string_view_literals;

struct Line {
    LogLevel level;
    std::string text;
};

class LoggingEvents : public ::testing::Test {
protected:
    static LoggingObserver::Sink into(std::vector<Line>& lines)
    {
        return [&lines](LogLevel level, std::string_view line) { lines.push_back({level, std::string(line)}); };
    }
    /// The lines that one call of an observer writes.
    static std::string written(const std::function<void(Observer&)>& event)
    {
        std::vector<Line> lines;
        LoggingObserver observer(into(lines));
        event(observer);
        return lines.size() == 1 ? std::string(toString(lines[0].level)) + ' ' + lines[0].text
                                 : std::to_string(lines.size()) + " lines";
    }

    const LockEvent hold{"stock:42", "a:17", ObjectKind::redisLock};
    const LockEvent counter{"room", {}, ObjectKind::semaphore};
};

TEST_F(LoggingEvents, EachEventIsALineOfItsLevel)
{
    struct Case {
        std::function<void(Observer&)> event;
        const char* line;
    };
    const std::error_code error = Cause::outOfMemory;
    const Case cases[] = {
        {[&](Observer& o) { o.acquired(hold, 1'200us, 1); },
         R"(debug redisLock "stock:42": acquired by a:17 after 1.20 ms, 1 attempt)"},
        {[&](Observer& o) { o.acquired(counter, 0ns, 0); },
         R"(debug semaphore "room": acquired after 0.00 us, 0 attempts)"},
        {[&](Observer& o) { o.contended(hold, 29'900ms, 200ms, 2); },
         R"(debug redisLock "stock:42": not acquired after 200 ms, 2 attempts: held by a:17 for another 29.9 s)"},
        {[&](Observer& o) { o.contended(hold, std::nullopt, 1s, 1); },
         R"(debug redisLock "stock:42": not acquired after 1.00 s, 1 attempt: held by a:17)"},
        {[&](Observer& o) { o.contended(counter, 5ms, 1s, 1); },
         R"(debug semaphore "room": not acquired after 1.00 s, 1 attempt: not free for another 5.00 ms)"},
        {[&](Observer& o) { o.contended(counter, std::nullopt, 1s, 1); },
         R"(debug semaphore "room": not acquired after 1.00 s, 1 attempt)"},
        {[&](Observer& o) { o.renewed(hold, 850us); }, R"(debug redisLock "stock:42" held by a:17: renewed in 850 us)"},
        {[&](Observer& o) { o.renewalFailed(hold, error); },
         R"(warning redisLock "stock:42" held by a:17: renewal failed: the server is out of memory; raise its maxmemory)"},
        {[&](Observer& o) { o.atRisk(hold, 3s, LossReason::unrenewed); },
         R"(warning redisLock "stock:42" held by a:17: at risk, valid for 3.00 s: unrenewed)"},
        {[&](Observer& o) { o.lost(hold, LossReason::gone); },
         R"(error redisLock "stock:42" held by a:17: lost: gone)"},
        {[&](Observer& o) { o.released(hold, Unlocked::released, 90s); },
         R"(debug redisLock "stock:42" held by a:17: released after 1.50 min)"},
        {[&](Observer& o) { o.released(counter, Unlocked::released, 0ns); }, R"(debug semaphore "room": released)"},
        {[&](Observer& o) { o.unconfirmed(hold); },
         R"(error redisLock "stock:42" held by a:17: its release got no answer while its lease lasted)"},
        {[&](Observer& o) { o.heldTooLong(hold, 36h); },
         R"(warning redisLock "stock:42" held by a:17: held too long, no longer renewed after 1.50 d)"},
        {[&](Observer& o) { o.keyWithoutTtl(hold); },
         R"(warning redisLock "stock:42": its key has no time to live, only its owner or an operator can free it)"
         ": held by a:17"},
        {[&](Observer& o) { o.pushMissed(hold); },
         R"(info redisLock "stock:42" held by a:17: the notification was missed, found free by a periodic check)"},
        {[&](Observer& o) {
             o.subscribeRefused({"stock:42", {}, ObjectKind::fairLock});
         },
         R"(warning fairLock "stock:42": the subscription for wake-ups was refused, waiters poll)"},
        {[](Observer& o) { o.connected("commands"); }, "info connection for commands: connected"},
        {[&](Observer& o) { o.disconnected("renewals", error, "10.0.0.7:6379: the server is out of memory"); },
         "warning connection for renewals: 10.0.0.7:6379: the server is out of memory"},
    };
    for (const Case& each : cases) {
        EXPECT_EQ(written(each.event), each.line);
    }
}

TEST_F(LoggingEvents, TimesAreInTheUnitThatSuitsThem)
{
    struct Case {
        std::chrono::nanoseconds time;
        const char* text;
    };
    const Case cases[] = {{1ns, "0.00 us"},  {999'600ns, "1000 us"}, {9'994us, "9.99 ms"}, {9'996us, "10.0 ms"},
                          {60s, "1.00 min"}, {1h, "1.00 h"},         {30 * 24h, "30.0 d"}, {-1s, "-1.00 s"}};
    for (const Case& each : cases) {
        EXPECT_EQ(written([&](Observer& o) { o.renewed(hold, each.time); }),
                  std::string(R"(debug redisLock "stock:42" held by a:17: renewed in )") + each.text);
    }
}

TEST_F(LoggingEvents, LineIsShortAndPrintableWhateverTheNameIs)
{
    const std::string name(1000, '\n');
    const auto line = written([&](Observer& o) { o.lost({name, "a\0\r\n"sv, ObjectKind(77)}, LossReason(77)); });
    EXPECT_LT(line.size(), 400U);
    EXPECT_TRUE(std::ranges::all_of(line, [](char c) { return c >= ' ' && c <= '~'; })) << line;
    EXPECT_NE(line.find(R"(held by a\x00\x0d\x0a: lost: unknown)"), std::string::npos) << line;
}

TEST_F(LoggingEvents, LinesBelowTheLeastLevelAreLeftOut)
{
    std::vector<Line> lines;
    LoggingObserver observer(into(lines), LogLevel::warning);
    observer.acquired(hold, 1ms, 1);
    observer.connected("commands");
    observer.heldTooLong(hold, 1s);
    observer.lost(hold, LossReason::forced);
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_EQ(lines[0].level, LogLevel::warning);
    EXPECT_EQ(lines[1].level, LogLevel::error);
}

TEST_F(LoggingEvents, SinkThatThrowsLosesThatLineAndNothingElse)
{
    std::vector<Line> lines;
    bool fails = true;
    LoggingObserver observer([&, keep = into(lines)](LogLevel level, std::string_view line) {
        if (std::exchange(fails, false)) {
            throw std::runtime_error("the disk is full");
        }
        keep(level, line);
    });
    observer.lost(hold, LossReason::gone);
    observer.unconfirmed(hold);
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_NE(lines[0].text.find("no answer"), std::string::npos);
}

TEST_F(LoggingEvents, EmptySinkIsRefusedAtOnce)
{
    try {
        const LoggingObserver observer(nullptr);
        FAIL() << "nothing was thrown";
    } catch (const LockError& error) {
        EXPECT_EQ(error.code(), Errc::invalidArgument);
        EXPECT_STREQ(error.what(), "LoggingObserver needs a sink, but got an empty function");
    }
}

} // namespace
} // namespace redislock
