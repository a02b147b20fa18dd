// Asynchronous questions that are cancelled at every possible point, and their results under faults.
#include "fault/asynchronous_test.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace redislock::test {
namespace {

using asio::use_future;
using detail::scripts::redisLockForceUnlock;
using detail::scripts::redisLockHolder;

/// A question that is under way, whatever it asks.
class Question {
public:
    virtual ~Question() = default;
    virtual void cancel(asio::cancellation_type type) = 0;
    [[nodiscard]] virtual bool finish() = 0;
    [[nodiscard]] virtual error_code error() const = 0;
    /// Whether the answer is right for a lock that another program holds.
    [[nodiscard]] virtual bool isAnswered() const = 0;
};

template <class T>
class QuestionOf final : public Question {
public:
    template <class Start>
    explicit QuestionOf(Start start) : call_(start)
    {
    }
    void cancel(asio::cancellation_type type) override { call_.cancel(type); }
    bool finish() override { return call_.finish(); }
    error_code error() const override { return call_.error; }
    bool isAnswered() const override { return !call_.error && call_.value; }

private:
    WatchedCall<T> call_;
};

/// A kind of question, and the first script that it sends.
struct Kind {
    const char* name;
    const Script& script;
    std::function<std::unique_ptr<Question>(const RedisLock&)> ask;
};

template <class T, class Start>
Kind kindOf(const char* name, const Script& script, Start start)
{
    return {name, script, [start](const RedisLock& lock) {
                return std::make_unique<QuestionOf<T>>([&](auto token) { start(lock, std::move(token)); });
            }};
}

class AsyncQuestion : public AsynchronousFaultTest {
protected:
    AsyncQuestion()
    {
        config.watchdogTimeout = 60s; // so that a command has the time commandTimeout
        config.commandTimeout = 300ms;
    }

    static std::vector<Kind> kinds()
    {
        return {
            kindOf<bool>("asyncIsLocked", redisLockPttl,
                         [](const RedisLock& l, auto token) { l.asyncIsLocked(std::move(token)); }),
            kindOf<std::optional<std::chrono::milliseconds>>(
                "asyncRemainingTimeToLive", redisLockPttl,
                [](const RedisLock& l, auto token) { l.asyncRemainingTimeToLive(std::move(token)); }),
            kindOf<bool>("asyncForceUnlock", redisLockHolder,
                         [](const RedisLock& l, auto token) { l.asyncForceUnlock(std::move(token)); }),
        };
    }

    void begin()
    {
        reset();
        redis.command({"SCRIPT", "LOAD", redisLockHolder.text()});
        redis.command({"SCRIPT", "LOAD", redisLockForceUnlock.text()});
        foreignLock(60s);
    }

    /// Cancels a question at the point to which @p prepare brings it.
    void expectCancellable(const Kind& kind, const std::function<void()>& prepare, const std::function<bool()>& reached)
    {
        for (const auto type : cancellations) {
            SCOPED_TRACE(std::string(kind.name) + ", cancellation " + std::to_string(static_cast<int>(type)));
            begin();
            prepare();
            const auto question = kind.ask(lock());
            expectFault(eventually(reached), "the question is not there");
            const Stopwatch watch;
            question->cancel(type);
            ASSERT_TRUE(question->finish());
            EXPECT_LT(watch.elapsed(), config.unreachableAfter - 1s);
            EXPECT_EQ(question->error(), asio::error::operation_aborted);
            endFaults();
            expectNothingLeft();
        }
    }
};

TEST_F(AsyncQuestion, CancelledWhileItConnectsEndsAtOnce)
{
    std::size_t before = 0;
    for (const auto& kind : kinds()) {
        expectCancellable(
            kind,
            [&] {
                before = seen->count(Event::disconnected);
                proxy.refuse();
            },
            [&] { return seen->count(Event::disconnected) > before; });
    }
}

TEST_F(AsyncQuestion, CancelledWhileItIsUnderWayEndsAtOnceAndLeavesEveryAnswerInItsPlace)
{
    for (const auto& kind : kinds()) {
        RuleId rule{};
        const auto hit = [&] { return proxy.hits(rule) == 1; };
        const std::vector<std::pair<Match, Action>> faults{
            {{.command = "PING"}, Action::stallDirection()},
            {request(kind.script), Action::stallDirection()},
            {reply(kind.script), Action::stallDirection()},
            {reply(kind.script), Action::swallow()},
        };
        for (const auto& [match, action] : faults) {
            expectCancellable(
                kind, [&, m = match, a = action] { rule = inject(m, a); }, hit);
        }
        expectCancellable(
            kind,
            [&] {
                redis.command({"SCRIPT", "FLUSH"});
                rule = inject({.command = "EVAL", .direction = Direction::reply}, Action::stallDirection());
            },
            hit);
    }
}

TEST_F(AsyncQuestion, CancelledWhileItBacksOffEndsAtOnce)
{
    for (const auto& kind : kinds()) {
        RuleId rule{};
        auto every = reply(kind.script);
        every.nth = 0;
        expectCancellable(
            kind, [&] { rule = inject(every, Action::replace("-LOADING Redis is loading the dataset\r\n")); },
            [&] { return proxy.hits(rule) >= 2; });
    }
}

TEST_F(AsyncQuestion, CancelledBetweenItsTwoStepsEndsAtOnce)
{
    RuleId rule{};
    for (const auto& match : {request(redisLockForceUnlock), reply(redisLockForceUnlock)}) {
        expectCancellable(
            kinds().back(), [&] { rule = inject(match, Action::stallDirection()); },
            [&] { return proxy.hits(rule) == 1; });
    }
}

TEST_F(AsyncQuestion, CancelledBeforeItBeginsOrAfterItsEndEndsOnce)
{
    for (const auto& kind : kinds()) {
        SCOPED_TRACE(kind.name);
        begin();
        {
            std::optional<StandingThread> standing(lock());
            const auto question = kind.ask(lock());
            question->cancel(asio::cancellation_type::terminal);
            standing.reset();
            ASSERT_TRUE(question->finish());
            EXPECT_EQ(question->error(), asio::error::operation_aborted);
        }
        const auto question = kind.ask(lock());
        ASSERT_TRUE(proxy.awaitRequests(request(kind.script), 1));
        ASSERT_TRUE(question->finish());
        EXPECT_TRUE(question->isAnswered());
        question->cancel(asio::cancellation_type::terminal);
        EXPECT_TRUE(question->finish()) << "once";
        expectFault(true, "none: the cancellation came outside the call");
        expectNothingLeft();
    }
}

TEST_F(AsyncQuestion, IsRepeatedWhenItsRequestOrReplyIsLost)
{
    for (const auto& kind : kinds()) {
        for (const auto& losses : {lostRequests(), lostReplies()}) {
            for (const auto& [how, action] : losses) {
                SCOPED_TRACE(std::string(kind.name) + ", " + how);
                begin();
                inject(request(kind.script), action);
                const auto question = kind.ask(lock());
                ASSERT_TRUE(question->finish());
                EXPECT_TRUE(question->isAnswered()) << question->error().message();
                expectNothingLeft();
            }
        }
    }
}

TEST_F(AsyncQuestion, WithoutAServerIsUnreachableInTime)
{
    config.unreachableAfter = 500ms;
    for (const auto& kind : kinds()) {
        SCOPED_TRACE(kind.name);
        begin();
        proxy.refuse();
        const Stopwatch watch;
        const auto question = kind.ask(lock());
        ASSERT_TRUE(question->finish());
        EXPECT_GE(watch.elapsed(), 500ms);
        EXPECT_LT(watch.elapsed(), 500ms + slack);
        EXPECT_EQ(question->error(), Errc::unreachable);
        expectFault(proxy.connections() == 0, "no server");
        endFaults();
        awaitServer();
        expectNothingLeft();
    }
}

TEST_F(AsyncQuestion, EndsWithTheClientWhereverItIs)
{
    for (const auto& kind : kinds()) {
        SCOPED_TRACE(kind.name);
        begin();
        const auto rule = inject(reply(kind.script), Action::stallDirection());
        const auto question = kind.ask(lock());
        expectFault(proxy.awaitHits(rule), "asking");
        forgetClient();
        ASSERT_TRUE(question->finish());
        EXPECT_EQ(question->error(), make_error_code(Errc::shutdown));
        endFaults();
        expectNothingLeft();
    }
}

} // namespace
} // namespace redislock::test
