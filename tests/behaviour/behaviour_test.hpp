/// @file
/// The common parts of the suites over drivers.
#pragma once

#include "behaviour/any_lock.hpp"
#include "behaviour/lock_driver.hpp"
#include "behaviour/lock_drivers.hpp"
#include "behaviour/lock_test.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace redislock::test {

/// A lock test over a driver, its parameter, with one client that is ready.
class BehaviourTest : public LockTest, public ::testing::WithParamInterface<Driver> {
protected:
    static bool supports(Feature feature) { return GetParam().supports(feature); }

    AnyLock make(const Client& from, const std::string& name) { return *must(GetParam().make(from, name)); }
    AnyLock make(const std::string& name) { return make(client, name); }
    AnyLock make() { return make(uniqueName()); }

    static Result<Unlocked> release(LockGuard& guard) { return GetParam().release(guard); }

    /// The channel of a lock; if its waiters have channels of their own, the common beginning of these.
    std::string channelOf(const std::string& name)
    {
        auto channel = LockTest::channelOf(name);
        if (GetParam().hasModes) {
            channel.replace(0, channel.find(':'), "redisson_rwlock");
        }
        return supports(Feature::oneChannel) ? channel : channel + ':';
    }
    /// How many listen to the channel of a lock; for a lock that a release grants, how many waiters can be granted it.
    std::int64_t listeners(const std::string& name)
    {
        if (!supports(Feature::oneChannel)) {
            const auto records = raw.command({"HVALS", "redislock_places" + braced(name)}).elements;
            return std::ranges::count_if(
                records, [](const Value& record) { return std::ranges::count(record.text(), ' ') == 4; });
        }
        std::int64_t all = 0;
        for (const auto& channel : channelsOf(name)) {
            all += raw.command({"PUBSUB", "NUMSUB", channel}).elements.at(1).integer();
        }
        return all;
    }
    /// Publishes to all waiters of a lock that it is free, whether it is or not.
    void tellWaiters(const std::string& name)
    {
        if (!supports(Feature::oneChannel)) {
            for (const auto& waiter :
                 raw.command({"LRANGE", "redisson_lock_queue" + braced(name), "0", "-1"}).elements) {
                const auto colon = waiter.text().rfind(':');
                const auto channel = overCluster() ? LockTest::channelOf(name) + ':' : "redisson_lock__channel:";
                raw.command({"PUBLISH", channel + waiter.text().substr(0, colon),
                             waiter.text().substr(colon + 1) + " 0 0 " + name});
            }
        }
        for (const auto& channel : channelsOf(name)) {
            raw.command({"PUBLISH", channel, "0"});
        }
    }
    /// Gives a free lock to a stranger that excludes everybody. @param lease nothing: the key has no time to live
    void heldByAStranger(const std::string& name, std::optional<milliseconds> lease)
    {
        GetParam().hasModes ? raw.command({"HSET", name, "mode", "write", "stranger:1:write", "1"})
                            : raw.command({"HSET", name, "stranger:1", "1"});
        if (lease) {
            raw.command({"PEXPIRE", name, std::to_string(lease->count())});
        }
    }

    Client client{observed()};

private:
    static std::string braced(const std::string& name)
    {
        return name.find('{') == std::string::npos ? ":{" + name + "}" : ":" + name;
    }
    std::vector<std::string> channelsOf(const std::string& name)
    {
        std::vector<std::string> of;
        for (const auto& channel : channels()) {
            const auto text = channel.text();
            if (supports(Feature::oneChannel) ? text == channelOf(name) : text.starts_with(channelOf(name))) {
                of.push_back(text);
            }
        }
        return of;
    }
};

} // namespace redislock::test
