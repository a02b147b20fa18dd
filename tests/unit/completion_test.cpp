// A handler, the end of its call, and the end of its execution context.
#include "client/completion.hpp"

#include "redislock/handler.hpp"

#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <future>
#include <latch>
#include <memory>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

namespace redislock::detail {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

/// The events of one call.
struct Fate {
    int called = 0;
    int cancelled = 0;
    int undone = 0;
    std::shared_ptr<int> handler = std::make_shared<int>();
    std::shared_ptr<int> result = std::make_shared<int>();

    [[nodiscard]] bool handlerLives() const { return handler.use_count() > 1; }
};

using Shared = std::shared_ptr<int>;

template <class Executor>
Completion<Shared> completionOn(const Executor& executor, Fate& fate)
{
    Completion<Shared> completion(
        Handler<Shared>(
            asio::bind_executor(executor, [&fate, alive = fate.handler](error_code, const Shared&) { ++fate.called; })),
        asio::system_executor());
    completion.onCancellation([&fate] { ++fate.cancelled; });
    return completion;
}

void complete(Completion<Shared>& completion, Fate& fate)
{
    completion({}, fate.result, Undo([&fate] { ++fate.undone; }));
}

TEST(HandlersContext, IsKnownOfEveryExecutorThatTells)
{
    const auto handler = [](error_code, int) {};
    const auto contextOn = [&](const auto& executor) { return contextOf(asio::bind_executor(executor, handler)); };
    asio::io_context io;
    asio::thread_pool pool(1);
    EXPECT_EQ(contextOn(io.get_executor()), &io);
    EXPECT_EQ(contextOn(pool.get_executor()), &pool);
    EXPECT_EQ(contextOn(asio::make_strand(io)), &io);
    EXPECT_EQ(contextOn(asio::any_io_executor(io.get_executor())), &io);
    EXPECT_EQ(contextOn(asio::any_io_executor(asio::make_strand(pool))), &pool);
    EXPECT_EQ(contextOn(asio::make_strand(asio::any_io_executor(pool.get_executor()))), &pool);
    EXPECT_EQ(contextOf(StepBefore{asio::bind_executor(io, handler), handler}), &io) << "the next step's";
    EXPECT_EQ(contextOf(handler), nullptr) << "it has no executor";
    EXPECT_EQ(contextOn(asio::system_executor()), nullptr) << "it ends with the program";
    asio::async_initiate<const asio::use_future_t<>&, void(error_code, int)>(
        [](auto promise) { EXPECT_EQ(contextOf(promise), nullptr) << "to ask would start threads"; }, asio::use_future);
    EXPECT_EQ(contextOn(asio::any_completion_executor(io.get_executor())), nullptr) << "it does not tell";
}

/// Ends as the context of a program does.
struct Io : asio::io_context {
    void halt() { stop(); }
};
struct Pool : asio::thread_pool {
    Pool() : asio::thread_pool(1) {}
    void halt()
    {
        stop();
        join();
    }
};

template <class Context>
class PendingHandlerIn : public ::testing::Test {
protected:
    std::optional<Context> context{std::in_place};
    Fate fate;
};
using Contexts = ::testing::Types<Io, Pool>;
TYPED_TEST_SUITE(PendingHandlerIn, Contexts, );

TYPED_TEST(PendingHandlerIn, IsDestroyedWithIt)
{
    auto completion = completionOn(this->context->get_executor(), this->fate);
    auto onStrand = completionOn(asio::make_strand(*this->context), this->fate);
    auto erased = completionOn(asio::any_io_executor(this->context->get_executor()), this->fate);
    this->context->halt();
    EXPECT_TRUE(this->fate.handlerLives());
    this->context.reset();
    EXPECT_FALSE(this->fate.handlerLives());
    EXPECT_EQ(this->fate.cancelled, 3);
    for (auto* each : {&completion, &onStrand, &erased}) {
        complete(*each, this->fate);
    }
    EXPECT_EQ(this->fate.undone, 3);
    EXPECT_EQ(this->fate.result.use_count(), 1);
    EXPECT_EQ(this->fate.called, 0);
}

TYPED_TEST(PendingHandlerIn, WhoseCallHasEndedIsDestroyedWithItAllTheSame)
{
    this->context->halt();
    auto completion = completionOn(this->context->get_executor(), this->fate);
    complete(completion, this->fate);
    EXPECT_TRUE(this->fate.handlerLives()) << "it waits for its turn to run";
    EXPECT_EQ(this->fate.undone, 0);
    this->context.reset();
    EXPECT_FALSE(this->fate.handlerLives());
    EXPECT_EQ(this->fate.undone, 1);
    EXPECT_EQ(this->fate.result.use_count(), 1);
    EXPECT_EQ(this->fate.called + this->fate.cancelled, 0);
}

TYPED_TEST(PendingHandlerIn, IsDestroyedAtOnceWhenItWasBegunInADestructorThatTheContextCalled)
{
    std::optional<Completion<Shared>> late;
    const auto begin = [&, executor = this->context->get_executor()] {
        late.emplace(completionOn(executor, this->fate));
        EXPECT_FALSE(this->fate.handlerLives());
    };
    {
        Completion<Shared> first(
            Handler<Shared>(asio::bind_executor(
                this->context->get_executor(),
                [undo = std::make_unique<Undo>(begin)](error_code, const Shared&) { undo->dismiss(); })),
            asio::system_executor());
        this->context->halt();
        this->context.reset();
    }
    ASSERT_TRUE(late);
    complete(*late, this->fate);
    EXPECT_EQ(this->fate.undone, 1);
}

TEST(PendingHandler, KeepsItsContextAtWorkUntilItsCallEnds)
{
    asio::io_context io;
    Fate fate;
    auto completion = completionOn(io.get_executor(), fate);
    EXPECT_EQ(io.poll(), 0U);
    EXPECT_FALSE(io.stopped()) << "out of work";
    std::thread ending([&] { complete(completion, fate); });
    EXPECT_EQ(io.run(), 1U);
    ending.join();
    EXPECT_EQ(fate.called, 1);
    EXPECT_EQ(fate.undone, 0);
    EXPECT_FALSE(fate.handlerLives());
}

TEST(PendingHandler, WhoseCallEndsWithoutAWordIsDestroyed)
{
    asio::io_context io;
    Fate fate;
    {
        const auto completion = completionOn(io.get_executor(), fate);
        EXPECT_TRUE(fate.handlerLives());
    }
    EXPECT_FALSE(fate.handlerLives());
    EXPECT_EQ(io.run(), 0U) << "and is no work any more";
}

TEST(PendingHandler, RunsOnTheSystemsThreads)
{
    std::promise<void> called;
    Completion<int> completion(
        Handler<int>(asio::bind_executor(asio::system_executor(), [&](error_code, int) { called.set_value(); })),
        asio::system_executor());
    completion({}, 1);
    called.get_future().wait();
}

TEST(PendingHandler, IsNoWorkOfAContextThatDoesNotTell)
{
    asio::io_context io;
    Fate fate;
    auto completion = completionOn(asio::any_completion_executor(io.get_executor()), fate);
    complete(completion, fate);
    EXPECT_EQ(io.run(), 1U);
    EXPECT_EQ(fate.called, 1);
}

/// A signal may outlive the context, when its slot's handler is gone.
TEST(PendingHandler, LeavesASignalThatOutlivesItsContextAlone)
{
    asio::cancellation_signal signal;
    std::optional<asio::io_context> io(std::in_place);
    int cancelled = 0;
    Completion<int> completion(
        Handler<int>(asio::bind_cancellation_slot(signal.slot(), asio::bind_executor(*io, [](error_code, int) {}))),
        asio::system_executor());
    completion.onCancellation([&] { ++cancelled; });
    io.reset();
    EXPECT_EQ(cancelled, 1);
    completion({}, 1);
    signal.emit(asio::cancellation_type::terminal);
    EXPECT_EQ(cancelled, 2) << "an operation that is over ignores it";
}

/// The executor of an io_context; counts the functions that it gets.
struct CountingExecutor {
    asio::io_context::executor_type inner;
    std::atomic<int>* posted;

    template <class Function>
    void execute(Function&& function) const
    {
        ++*posted;
        inner.execute(std::forward<Function>(function));
    }
    [[nodiscard]] asio::io_context& query(asio::execution::context_t /*property*/) const noexcept
    {
        return inner.context();
    }
    friend bool operator==(const CountingExecutor&, const CountingExecutor&) noexcept = default;
};

/// Also a test for ThreadSanitizer and AddressSanitizer: the end of the call never uses a context that is gone.
TEST(PendingHandler, IsHadByTheCallOrByTheContextHoweverTheyMeet)
{
    struct Round {
        Fate fate;
        std::atomic<int> posted{0};
        std::optional<asio::io_context> io{std::in_place};
        std::optional<Completion<Shared>> completion{completionOn(CountingExecutor{io->get_executor(), &posted}, fate)};
    };
    constexpr std::size_t rounds = 10'000;
    constexpr std::size_t together = 100;
    for (std::size_t i = 0; i < rounds; i += together) {
        std::array<Round, together> batch;
        std::latch start(2);
        std::thread calls([&] {
            start.arrive_and_wait();
            for (auto& round : batch) {
                complete(*round.completion, round.fate);
                round.completion.reset();
            }
        });
        start.arrive_and_wait();
        for (auto& round : batch) {
            if ((i / together) % 2 == 0) {
                round.io->poll();
            }
            round.io.reset();
            EXPECT_FALSE(round.fate.handlerLives()) << "the context is gone";
        }
        calls.join();
        for (const auto& [fate, posted, io, completion] : batch) {
            ASSERT_EQ(posted + fate.cancelled, 1);
            ASSERT_EQ(fate.called + fate.undone, 1);
            ASSERT_EQ(fate.result.use_count(), 1);
        }
    }
}

} // namespace
} // namespace redislock::detail
