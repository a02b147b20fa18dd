/// @file
/// The servers of one round, and what happens to them.
#pragma once

#include "measurement.hpp"
#include "redislock/testing/redis_server.hpp"
#include "reference/raw_connection.hpp"
#include "support/deployments.hpp"
#include "support/fault_proxy.hpp"
#include "support/packets.hpp"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace redislock::bench {

using Time = Clock::time_point;
using Moment = std::atomic<Time>; ///< Time{}: not yet

/// How a master loses its office:
///  - switchover: SENTINEL FAILOVER; the old master lives on, and acknowledges writes until Sentinels tell it
///  - kill: SIGKILL; the Sentinels notice
///  - stop: SIGSTOP, until resume()
///  - behind-address: FAILOVER TO a replica, to which new connections to the one address lead then; old ones stay
///  - cluster-switchover, cluster-kill, cluster-stop: CLUSTER FAILOVER, SIGKILL, SIGSTOP in a cluster; other masters
///    notice
///  - cluster-half-moved: SIGKILL while the slot of the names moves to another master, which has half of the held locks
///  - cluster-other-shard: SIGKILL of a master that has none of the names
///  - cluster-partition: no packet passes between the master and other nodes, until resume(); clients reach all
constexpr std::string_view otherShard = "cluster-other-shard";
constexpr std::string_view partition = "cluster-partition"; ///< needs test::enterNetworkOfItsOwn()
constexpr std::string_view masterFaults[] = {"switchover",         "kill",         "stop",         "behind-address",
                                             "cluster-switchover", "cluster-kill", "cluster-stop", "cluster-half-moved",
                                             otherShard,           partition};
/// With which the names of the locks begin: they are in one slot.
constexpr std::string_view tag = "{gap}";
/// The same for another master of the cluster.
constexpr std::string_view otherTag = "{other}";
/// Of the names of locks that are only held, before a number.
constexpr std::string_view heldPrefix = "{gap}:held:";

/// A master, two replicas, and what stands before them: three Sentinels, or a proxy with one address; or a cluster of
/// three masters with a replica each.
class Deployment {
public:
    /// For the Sentinels.
    static constexpr std::string_view master = "main";

    /// Returns when all replicas follow, and all Sentinels know each other.
    explicit Deployment(std::string_view fault) : fault_(fault)
    {
        if (fault.starts_with("cluster-")) {
            cluster_.emplace(3, 1, testing::RedisServerOptions{},
                             fault == partition ? test::Cluster::Addresses::own : test::Cluster::Addresses::shared);
            old_ = cluster_->ownerOf(std::string(fault == otherShard ? otherTag : tag));
            return;
        }
        for (int i = 0; i < 3; ++i) {
            std::vector<std::string> arguments{"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"};
            if (i > 0) {
                arguments.insert(arguments.end(), {"--replicaof", localhost, std::to_string(servers_[0].port())});
            }
            servers_.emplace_back(testing::RedisServerOptions{.arguments = arguments});
        }
        for (std::size_t i = 1; i < servers_.size(); ++i) {
            askUntil(servers_[i].port(), {"INFO", "replication"},
                     [](const redisReply& reply) { return textOf(reply).find("link_status:up") != std::string::npos; });
        }
        if (fault == "behind-address") {
            proxy_.emplace(servers_.front());
            proxy_->passBytes();
        } else {
            startSentinels();
        }
    }

    /// The ports that a client is told of: those of the Sentinels, or that of the proxy.
    [[nodiscard]] std::vector<std::uint16_t> ports() const
    {
        std::vector<std::uint16_t> ports;
        for (std::size_t i = 0; cluster_ && i < cluster_->size(); ++i) {
            ports.push_back(cluster_->node(i).port());
        }
        for (const auto& each : sentinels_) {
            ports.push_back(each.port());
        }
        return proxy_ ? std::vector<std::uint16_t>{proxy_->port()} : ports;
    }
    /// For Config::fromUrl().
    [[nodiscard]] std::string url() const
    {
        return cluster_ ? cluster_->url()
               : proxy_ ? proxy_->url()
                        : fmt::format("redis-sentinel://{0}:{2},{0}:{3},{0}:{4}/{1}", localhost, master, ports()[0],
                                      ports()[1], ports()[2]);
    }

    /// What comes before the fault. @param held how many locks are held
    void prepare(std::size_t held)
    {
        if (fault_ == "cluster-half-moved") {
            const auto to = cluster_->ownerOf(std::string(otherTag));
            cluster_->open(std::string(tag), old_, to);
            for (std::size_t i = 0; i < held; i += 2) {
                cluster_->moveKey(fmt::format("{}{}", heldPrefix, i), old_, to);
            }
        }
    }
    /// Causes the fault, and begins to look for the new master.
    void cause()
    {
        if (cluster_) {
            return causeInCluster();
        }
        for (std::size_t i = 1; i < servers_.size(); ++i) {
            probes_.emplace_back([this, &server = servers_[i]](const std::stop_token& stop) {
                if (askUntil(
                        server.port(), {"SET", "gap:probe", "1"}, [](const redisReply&) { return true; }, stop)) {
                    note(writableAt);
                    proxy_ ? proxy_->setUpstream(server), note(namedAt) : void();
                }
            });
        }
        for (const auto& each : sentinels_) {
            probes_.emplace_back([this, port = each.port()](const std::stop_token& stop) {
                const auto isOther = [old = std::to_string(servers_[0].port())](const redisReply& reply) {
                    return reply.elements == 2 && textOf(*reply.element[1]) != old;
                };
                if (askUntil(port, {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", master}, isOther, stop)) {
                    note(namedAt);
                }
            });
        }
        auto& old = servers_.front();
        if (fault_ == "switchover") {
            RawConnection(localhost, sentinels_[0].port()).command({"SENTINEL", "FAILOVER", master});
        } else if (fault_ == "kill") {
            old.kill();
        } else if (fault_ == "stop") {
            old.freeze();
        } else {
            RawConnection(localhost, old.port())
                .command({"FAILOVER", "TO", localhost, std::to_string(servers_.back().port())});
        }
    }

    /// Lets a stopped master go on, and packets pass.
    void resume()
    {
        packets_.reset();
        cluster_ ? cluster_->node(old_).thaw() : servers_.front().thaw();
    }
    /// How Redisson's driver connects.
    [[nodiscard]] std::string_view kind() const noexcept { return cluster_ ? "cluster" : master; }

    /// When a server other than the old master first took a write of a raw connection.
    Moment writableAt{};
    /// When a Sentinel first answered with another address, or the one address led to the new master.
    Moment namedAt{};

private:
    void causeInCluster()
    {
        const auto next = cluster_->replicaOf(old_);
        probes_.emplace_back([this, port = cluster_->node(next).port()](const std::stop_token& stop) {
            const auto probe = std::string(fault_ == otherShard ? otherTag : tag) + "probe";
            if (askUntil(
                    port, {"SET", probe, "1"}, [](const redisReply&) { return true; }, stop)) {
                note(writableAt);
                note(namedAt);
            }
        });
        if (fault_ == "cluster-switchover") {
            RawConnection(localhost, cluster_->node(next).port()).command({"CLUSTER", "FAILOVER"});
        } else if (fault_ == "cluster-stop") {
            cluster_->node(old_).freeze();
        } else if (fault_ == partition) {
            packets_.emplace(cluster_->rulesToCutOff(old_));
        } else {
            cluster_->node(old_).kill();
        }
    }

    static constexpr const char* localhost = "127.0.0.1";

    static std::string textOf(const redisReply& reply)
    {
        return reply.str == nullptr ? std::string() : std::string(reply.str, reply.len);
    }

    static std::string fieldOf(const redisReply& reply, std::string_view name)
    {
        std::size_t i = 0;
        while (i + 2 < reply.elements && textOf(*reply.element[i]) != name) {
            i += 2;
        }
        return textOf(*reply.element[i + 1]);
    }

    /// Asks again and again, over a new connection each time. @return false: stopped before the answer was right
    template <class IsRight>
    static bool askUntil(std::uint16_t port, std::initializer_list<std::string_view> words, IsRight isRight,
                         const std::stop_token& stop = {})
    {
        while (!stop.stop_requested()) {
            try {
                if (isRight(*RawConnection(localhost, port).command(words))) {
                    return true;
                }
            } catch (const std::exception&) {
                // refused for now
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(3));
        }
        return false;
    }

    static void note(Moment& moment)
    {
        Time none{};
        moment.compare_exchange_strong(none, Clock::now());
    }

    void startSentinels()
    {
        for (int i = 0; i < 3; ++i) {
            const auto file = folder_.path() / std::to_string(i);
            std::ofstream(file) << fmt::format("sentinel monitor {0} {1} {2} 2\n"
                                               "sentinel down-after-milliseconds {0} 500\n"
                                               "sentinel failover-timeout {0} 3000\n"
                                               "sentinel parallel-syncs {0} 2\n",
                                               master, localhost, servers_[0].port());
            sentinels_.emplace_back(testing::RedisServerOptions{.arguments = {file.string(), "--sentinel"}});
        }
        for (const auto& each : sentinels_) {
            askUntil(each.port(), {"SENTINEL", "MASTER", master}, [](const redisReply& reply) {
                return fieldOf(reply, "num-slaves") == "2" && fieldOf(reply, "num-other-sentinels") == "2";
            });
        }
    }

    const std::string_view fault_;
    testing::detail::TemporaryFolder folder_; ///< of the Sentinels' files
    std::vector<testing::RedisServer> servers_;
    std::vector<testing::RedisServer> sentinels_;
    std::optional<test::FaultProxy> proxy_;
    std::optional<test::Cluster> cluster_;
    std::optional<test::PacketFilter> packets_;
    std::size_t old_ = 0;              ///< the node that is to lose its office
    std::vector<std::jthread> probes_; // end first
};

} // namespace redislock::bench
