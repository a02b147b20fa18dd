/// @file
/// The common parts of the tests of groups: several servers, and a client for each.
#pragma once

#include "behaviour/lock_test.hpp"
#include "behaviour/worker.hpp"
#include "redislock/redislock.hpp"

#include <boost/asio/use_future.hpp>

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

namespace redislock::test {

/// Servers for all tests of one program. After each test the name must be free on all of them.
class GroupTest : public LockTest {
protected:
    /// Server 0 is the server of the other tests.
    static testing::RedisServer& serverOf(std::size_t index)
    {
        static std::deque<testing::RedisServer> others;
        while (others.size() < index) {
            others.push_back(testServer());
        }
        return index == 0 ? server() : others.at(index - 1);
    }

    void TearDown() override
    {
        for (std::size_t i = 0; i < clients.size(); ++i) {
            RawRedis own = rawOf(i);
            EXPECT_TRUE(eventually([&] { return !own.exists(name); })) << "left locked on server " << i;
        }
        LockTest::TearDown();
    }

    static RawRedis rawOf(std::size_t index)
    {
        RawRedis own(serverOf(index));
        if (index == 0 && overCluster()) {
            own.joinCluster(ports());
        }
        return own;
    }

    static Config configOf(std::size_t index)
    {
        Config config = LockTest::config();
        const Config of = testConfig(serverOf(index));
        config.endpoint = of.endpoint;
        config.sentinels = of.sentinels;
        config.cluster = of.cluster;
        config.tls = of.tls;
        return config;
    }

    /// A client for each of the first @p count servers; kept for the test.
    std::deque<Client>& clientsOf(std::size_t count)
    {
        while (clients.size() < count) {
            clients.emplace_back(configOf(clients.size()));
        }
        return clients;
    }

    /// The lock of the test's name on each of the first @p count servers.
    std::vector<RedisLock> locksOn(std::size_t count)
    {
        std::vector<RedisLock> locks;
        for (std::size_t i = 0; i < count; ++i) {
            locks.push_back(clientsOf(count)[i].getLock(name));
        }
        return locks;
    }

    /// On how many of the first @p count servers the test's name is locked.
    std::size_t lockedOn(std::size_t count)
    {
        std::size_t locked = 0;
        for (std::size_t i = 0; i < count; ++i) {
            locked += rawOf(i).exists(name) ? 1U : 0U;
        }
        return locked;
    }

    const std::string name = uniqueName();
    std::deque<Client> clients;
    Worker other;
};

} // namespace redislock::test
