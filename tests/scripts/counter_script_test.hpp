/// @file
/// The common parts of the tests of semaphores' and latches' scripts.
#pragma once

#include "scripts/script_test.hpp"

namespace redislock::test {

/// A counter at `name`, which needs no time to live.
class CounterScriptTest : public ScriptTest {
protected:
    CounterScriptTest() { foreign.insert(name); }

    [[nodiscard]] std::string request(const std::string& id) const { return detail::requestKey(name, id); }

    [[nodiscard]] Words keys(const std::string& id, const Words& settled = {}) const
    {
        Words all{name, request(id)};
        all.insert(all.end(), settled.begin(), settled.end());
        return all;
    }

    Value trySet(const std::string& id, std::int64_t value, std::int64_t liveMs = 0)
    {
        return run(detail::scripts::counterTrySet, keys(id),
                   {std::to_string(value), std::to_string(liveMs), detail::semaphoreChannel(name),
                    std::to_string(value), keep});
    }

    Value get() { return run(detail::scripts::counterGet, {name}, {}); }

    RawRedis listenTo(const std::string& channel) const
    {
        RawRedis connection(server());
        EXPECT_EQ(connection.command({"SUBSCRIBE", channel}).elements.at(0).text(), "subscribe");
        return connection;
    }

    const std::string keep = "60000";
};

} // namespace redislock::test
