/// @file
/// The common parts of the tests of semaphores and latches.
#pragma once

#include "behaviour/lock_test.hpp"
#include "redislock/redislock.hpp"

#include <boost/asio/use_future.hpp>

#include <future>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace redislock::test {

/// Two clients that rely on messages and do not poll. After each test the counters are deleted, and only answers to
/// requests, with a time to live, may be left.
class CounterTest : public LockTest {
protected:
    void TearDown() override
    {
        for (const auto& counter : counters_) {
            raw.command({"DEL", counter, "{" + counter + "}:timeout"});
        }
        for (const Value& key : raw.command({"KEYS", "redislock_request:*"}).elements) {
            EXPECT_NE(raw.pttl(key.text()), milliseconds(-1)) << key;
        }
        LockTest::TearDown();
    }

    /// A name for this test alone.
    std::string counterName()
    {
        counters_.push_back(uniqueName());
        return counters_.back();
    }

    std::int64_t listenersTo(const std::string& channel)
    {
        return raw.command({"PUBSUB", "NUMSUB", channel}).elements.at(1).integer();
    }

    template <class Function>
    static auto inBackground(Function function)
    {
        return std::async(std::launch::async, std::move(function));
    }

    template <class Future>
    static bool isDone(Future& future, milliseconds within = soon)
    {
        return future.wait_for(within) == std::future_status::ready;
    }

    Client client{config()};
    Client far{config()};

private:
    std::vector<std::string> counters_;
};

} // namespace redislock::test
