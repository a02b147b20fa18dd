/// @file
/// Servers that are more, or other, than one master.
#pragma once

#include "redislock/testing/redis_server.hpp"
#include "support/eventually.hpp"
#include "support/raw_redis.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace redislock::test {

/// A Sentinel.
class Sentinel {
public:
    /// @param port of a master named `main`; 1: nobody listens there. @param quorum how many must miss it
    explicit Sentinel(std::uint16_t port = 1, int quorum = 1) : server_(start(folder_, port, quorum)) {}

    [[nodiscard]] testing::RedisServer& server() noexcept { return server_; }
    [[nodiscard]] const testing::RedisServer& server() const noexcept { return server_; }

private:
    static testing::RedisServer start(const testing::detail::TemporaryFolder& folder, std::uint16_t port, int quorum);

    testing::detail::TemporaryFolder folder_;
    testing::RedisServer server_;
};

/// A master named `main` with two replicas and three Sentinels, and what can happen to them. Takes about three seconds
/// to make.
class SentinelDeployment {
public:
    SentinelDeployment();

    /// `redis-sentinel://` with all Sentinels, in order.
    [[nodiscard]] std::string url() const;
    /// Which of the servers the first Sentinel names that answers.
    [[nodiscard]] std::size_t master();
    /// Waits until all Sentinels name the same master, and none of them misses it or replaces it. Before heal(), which
    /// would otherwise undo half a fail-over.
    void settle();
    /// Waits until all six processes are there again, and agree. @return the master
    std::size_t heal();
    /// Has a Sentinel begin a fail-over, and does not wait.
    void failOver();

    std::vector<testing::RedisServer> servers;
    std::vector<Sentinel> sentinels;

private:
    [[nodiscard]] bool isSettled();
    [[nodiscard]] bool isWhole();
};

/// What comes over a connection that listens to a server, with the time of its arrival. It is made again when it ends.
class Feed {
public:
    struct Item {
        std::chrono::system_clock::time_point at;
        std::string text; ///< the last word
    };

    /// @param command MONITOR or SUBSCRIBE, which has been answered when this returns
    Feed(const testing::RedisServer& server, const RawRedis::Arguments& command);
    ~Feed();

    [[nodiscard]] std::vector<Item> items() const;

private:
    void run(const std::stop_token& end);

    RawRedis redis_;
    const RawRedis::Arguments command_;
    mutable std::mutex mutex_;
    std::vector<Item> items_;
    std::jthread thread_;
};

/// A cluster of masters without replicas, over which the slots are spread evenly. Takes about two seconds to make.
class Cluster {
public:
    static constexpr std::size_t slots = 16384;

    explicit Cluster(std::size_t size)
    {
        for (std::size_t i = 0; i < size; ++i) {
            nodes_.emplace_back(testing::RedisServerOptions{.arguments = {"--cluster-enabled", "yes"}});
            RawRedis::Arguments add{"CLUSTER", "ADDSLOTS"}; // Redis 6 has no ADDSLOTSRANGE
            for (std::size_t slot = i * slots / size; slot < (i + 1) * slots / size; ++slot) {
                add.push_back(std::to_string(slot));
            }
            RawRedis admin(nodes_.back());
            admin.command(add);
            admin.command({"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)});
            if (i > 0) {
                RawRedis(nodes_.front()).command({"CLUSTER", "MEET", "127.0.0.1", std::to_string(node(i).port())});
            }
        }
        const auto known = "cluster_known_nodes:" + std::to_string(size);
        for (const auto& each : nodes_) {
            RawRedis admin(each);
            const bool isWhole = eventually(
                [&] {
                    const auto info = admin.command({"CLUSTER", "INFO"}).text();
                    return info.find("cluster_state:ok") != std::string::npos && info.find(known) != std::string::npos;
                },
                std::chrono::seconds(30));
            if (!isWhole) {
                throw std::runtime_error("the nodes make no cluster");
            }
        }
    }

    [[nodiscard]] const testing::RedisServer& node(std::size_t i = 0) const { return nodes_.at(i); }

private:
    std::vector<testing::RedisServer> nodes_;
};

} // namespace redislock::test
