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

/// A cluster over whose masters the slots are spread evenly, and what can happen to it. Takes two to three seconds to
/// make.
class Cluster {
public:
    static constexpr std::size_t slots = 16384;

    /// Where the nodes are: at one address, or node i at 127.0.0.(11 + i), so that packets can be dropped between nodes.
    enum class Addresses : std::uint8_t { shared, own };

    /// @param replicas of each master. Node i + n * masters is a replica of node i
    explicit Cluster(std::size_t masters, std::size_t replicas = 0, const testing::RedisServerOptions& options = {},
                     Addresses addresses = Addresses::shared);

    [[nodiscard]] const testing::RedisServer& node(std::size_t i = 0) const { return nodes_.at(i); }
    [[nodiscard]] testing::RedisServer& node(std::size_t i) { return nodes_.at(i); }
    [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
    /// `redis-cluster://` with one node.
    [[nodiscard]] std::string url(std::size_t i = 0) const;
    /// How nodes and clients reach that node.
    [[nodiscard]] std::string address(std::size_t i) const;
    /// For a PacketFilter: no packet passes between that node and the other ones. Needs addresses of their own; clients
    /// have another one.
    [[nodiscard]] std::vector<std::string> rulesToCutOff(std::size_t i) const;

    /// The node that has the slot of a name, as most of those say that answer.
    [[nodiscard]] std::size_t ownerOf(const std::string& name) const;
    /// A master that has not the slot of a name.
    [[nodiscard]] std::size_t masterWithout(const std::string& name) const;
    /// A replica of that node.
    [[nodiscard]] std::size_t replicaOf(std::size_t master) const;
    /// Waits until all nodes are there again, agree, and have their replicas.
    void heal();

    // moving the slot of a name, step by step
    void open(const std::string& name, std::size_t from, std::size_t to);
    void moveKey(const std::string& key, std::size_t from, std::size_t to);
    void moveKeys(const std::string& name, std::size_t from, std::size_t to);
    void close(const std::string& name, std::size_t to);
    /// After a fail-over of the node that had the slot: the other one forgets what it got, and that it was to get more.
    void abandon(const std::string& name, std::size_t to);
    /// The keys there that are in the slot of a name.
    [[nodiscard]] std::vector<std::string> keysAt(const std::string& name, std::size_t node) const;
    /// Waits until all nodes agree that this one has the slot of a name.
    void awaitOwner(const std::string& name, std::size_t owner) const;

private:
    [[nodiscard]] Value told(const RawRedis::Arguments& command) const;
    [[nodiscard]] std::vector<std::vector<std::string>> nodesTold() const;
    [[nodiscard]] std::string idOf(std::size_t i) const;
    [[nodiscard]] bool isWhole() const;

    std::vector<testing::RedisServer> nodes_;
    std::size_t masters_;
    Addresses addresses_;
};

/// The hash slot of a key, as a server computes it.
std::string keySlot(const testing::RedisServer& server, const std::string& key);

} // namespace redislock::test
