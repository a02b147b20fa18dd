/// @file
/// The common parts of the fault tests of semaphores and latches.
#pragma once

#include "fault/asynchronous_test.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace redislock::test {

/// One counter beside the lock of the fixture. Only answers to requests, which expire, may be left of it.
class CounterFault : public FaultTest {
protected:
    CounterFault()
    {
        namespace scripts = detail::scripts;
        for (const auto* script : {&scripts::counterGet, &scripts::counterTrySet, &scripts::counterDelete,
                                   &scripts::semaphoreAcquire, &scripts::semaphoreAdd, &scripts::semaphoreDrain,
                                   &scripts::semaphoreWithdraw, &scripts::permitExpirableSemaphoreAcquire,
                                   &scripts::permitExpirableSemaphoreLease, &scripts::permitExpirableSemaphoreRelease,
                                   &scripts::permitExpirableSemaphoreCount, &scripts::countDownLatchCountDown}) {
            redis.command({"SCRIPT", "LOAD", script->text()});
        }
    }

    void expectNothingLeft() override
    {
        // The second copy of a doubled request may run after the first was answered, and may leave an answer as well.
        forgetClient();
        EXPECT_TRUE(eventually([&] { return redis.info("connected_clients") == "1"; }));
        redis.command({"DEL", counter, timeouts});
        for (const Value& key : redis.command({"KEYS", "redislock_request:*"}).elements) {
            EXPECT_GT(redis.pttl(key.text()), 0ms) << key;
            redis.command({"DEL", key.text()});
        }
        FaultTest::expectNothingLeft();
    }

    static std::vector<Loss> everyLoss()
    {
        auto all = lostRequests();
        for (auto& loss : lostReplies()) {
            all.push_back(std::move(loss));
        }
        all.push_back({"request doubled", Action::duplicate()});
        return all;
    }

    void set(std::int64_t value) { redis.command({"SET", counter, std::to_string(value)}); }
    std::string value() { return redis.get(counter).value_or("none"); }
    bool isLeft(const std::string& expected, std::chrono::milliseconds within = 5s)
    {
        return eventually([&] { return value() == expected; }, within);
    }
    /// How many scripts were executed, for any client.
    std::uint64_t executed() { return redis.commandCalls("evalsha"); }
    std::int64_t listeners(const std::string& channel)
    {
        return redis.command({"PUBSUB", "NUMSUB", channel}).elements.at(1).integer();
    }
    bool somebodyListens(const std::string& channel)
    {
        return eventually([&] { return listeners(channel) > 0; });
    }
    bool nobodyListens(const std::string& channel)
    {
        return eventually([&] { return listeners(channel) == 0; });
    }

    const std::string counter = "permits:7";
    const std::string timeouts = "{permits:7}:timeout";
    const std::string semaphoreChannel = detail::semaphoreChannel(counter);
    const std::string latchChannel = detail::latchChannel(counter);
};

} // namespace redislock::test
