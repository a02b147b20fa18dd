#include "link/connect/credentials_calls.hpp"

#include "support/eventually.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace redislock::detail {
namespace {

using namespace std::chrono_literals;
using Wall = std::chrono::system_clock;

/// A function that stands still until it is let go, and what its callers were told.
class CredentialsCallsTest : public ::testing::Test {
protected:
    ~CredentialsCallsTest() override
    {
        letGo();
        EXPECT_TRUE(test::eventually([this] { return *running == 0; }));
    }

    /// A function that may outlive the test.
    CredentialsProvider slow()
    {
        return [gate = gate_.get_future().share(), running = running, called = called](const Endpoint& endpoint) {
            ++*running;
            ++*called;
            gate.wait();
            --*running;
            return Credentials{endpoint.host, "secret", Wall::time_point::max()};
        };
    }
    void letGo()
    {
        if (!std::exchange(isOpen_, true)) {
            gate_.set_value();
        }
    }
    std::unique_ptr<CredentialsCalls> make(CredentialsProvider function, std::chrono::milliseconds timeout = 10s)
    {
        Config config;
        config.credentials = std::move(function);
        config.credentialsTimeout = timeout;
        return std::make_unique<CredentialsCalls>(io, config, lastErrors);
    }
    void ask(CredentialsCalls& calls)
    {
        calls.ask({.host = "redis", .port = 6379, .unixSocket = ""}, [this](const Credentials* given) {
            told.push_back(given != nullptr ? given->username + ":" + given->password : "none");
        });
    }
    [[nodiscard]] std::string why() const { return lastErrors.about(Cause::credentialsMissing).text; }

    std::shared_ptr<std::atomic<int>> running = std::make_shared<std::atomic<int>>(0);
    std::shared_ptr<std::atomic<int>> called = std::make_shared<std::atomic<int>>(0);
    boost::asio::io_context io;
    LastErrors lastErrors{"redis:6379", ""};
    std::vector<std::string> told;

private:
    std::promise<void> gate_;
    bool isOpen_ = false;
};

TEST_F(CredentialsCallsTest, AreSharedByAllWhoAskMeanwhileAndNotCached)
{
    const auto calls = make(slow());
    ask(*calls);
    ask(*calls);
    EXPECT_TRUE(told.empty());
    letGo();
    io.run();
    EXPECT_EQ(told, (std::vector<std::string>{"redis:secret", "redis:secret"}));
    EXPECT_EQ(*called, 1);
    ask(*calls);
    io.restart();
    io.run();
    EXPECT_EQ(told.size(), 3U);
    EXPECT_EQ(*called, 2);
    lastErrors.note(Errc::unreachable, "secret");
    EXPECT_EQ(lastErrors.about(Errc::unreachable).text, "");
}

TEST_F(CredentialsCallsTest, FourAtATimeThoseThatHangIncluded)
{
    const auto calls = make(slow(), 20ms);
    for (int i = 1; i <= 4; ++i) {
        ask(*calls);
        io.restart();
        io.run();
        EXPECT_EQ(why(), "no answer in 20 ms");
        EXPECT_TRUE(test::eventually([&] { return *running == i; }));
    }
    const auto others = make([](const Endpoint&) { return Credentials{"", "x"}; });
    ask(*others);
    EXPECT_EQ(told, std::vector<std::string>(5, "none")) << "at once";
    EXPECT_EQ(why(), "4 calls of Config::credentials are still running");
    EXPECT_EQ(*called, 4);
    letGo();
    EXPECT_TRUE(test::eventually([&] {
        ask(*others);
        io.restart();
        io.run();
        return told.back() == ":x";
    }));
}

TEST_F(CredentialsCallsTest, ThatGiveNothingOfUseSayWhy)
{
    const struct {
        CredentialsProvider function;
        std::string words;
    } cases[] = {
        {[](const Endpoint&) -> Credentials { throw std::runtime_error("vault\nis sealed"); },
         "Config::credentials threw: vault\\x0ais sealed"},
        {[](const Endpoint&) -> Credentials { throw 1; }, "Config::credentials threw"},
        {[](const Endpoint&) { return Credentials{}; }, "Config::credentials gave an empty password"},
        {[](const Endpoint&) {
             return Credentials{"u", "hunter2", Wall::now() - 1s};
         },
         "Config::credentials gave credentials that have expired"},
        {[](const Endpoint&) {
             return Credentials{"u", "hunter2", Wall::time_point::min()};
         },
         "Config::credentials gave credentials that have expired"},
    };
    for (const auto& [function, words] : cases) {
        const auto calls = make(function);
        ask(*calls);
        io.restart();
        io.run();
        EXPECT_EQ(told.back(), "none");
        EXPECT_EQ(why(), words);
    }
}

TEST_F(CredentialsCallsTest, MayOutliveWhoAskedAndBlockAllSignals)
{
    std::promise<int> blocked;
    auto function = [slow = slow(), &blocked](const Endpoint& endpoint) {
        sigset_t now;
        ::pthread_sigmask(SIG_SETMASK, nullptr, &now);
        blocked.set_value(::sigismember(&now, SIGTERM));
        return slow(endpoint);
    };
    auto own = std::make_unique<boost::asio::io_context>();
    Config config;
    config.credentials = function;
    auto calls = std::make_unique<CredentialsCalls>(*own, config, lastErrors);
    ask(*calls);
    EXPECT_EQ(blocked.get_future().get(), 1);
    calls.reset();
    own->run(); // there is nothing to wait for
    own.reset();
    letGo();
    EXPECT_TRUE(test::eventually([this] { return *running == 0; }));
    EXPECT_TRUE(told.empty());
}

TEST(CredentialsTest, AreReplacedWhenAFifthOfTheirTimeIsLeft)
{
    const Wall::time_point wall = Wall::now();
    const TimePoint now{1h};
    const auto after = [&](Wall::time_point end) { return replacementTime({"", "x", end}, wall, now); };
    EXPECT_EQ(after(Wall::time_point::max()), TimePoint::max());
    EXPECT_EQ(after(wall + 10min), now + 8min);
    EXPECT_EQ(after(wall + 1ms), now + 100ms);
    EXPECT_GT(after(Wall::time_point::max() - 1ns), now + 24h);
}

} // namespace
} // namespace redislock::detail
