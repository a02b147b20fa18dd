/// @file
/// A master, two replicas, and three Sentinels.
#pragma once

#include "shared/shop.hpp"

#include <redislock/redislock.hpp>
#include <redislock/testing/redis_server.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <initializer_list>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace failover {

class Servers {
public:
    /// Starts them. They find each other within about two seconds: see awaitReady().
    Servers()
    {
        start({});
        const auto port = std::to_string(servers_.front().port());
        start({"--replicaof", "127.0.0.1", port, "--repl-diskless-sync-delay", "0"});
        start({"--replicaof", "127.0.0.1", port, "--repl-diskless-sync-delay", "0"});
        for (const auto* name : {"1", "2", "3"}) {
            const auto file = (folder_.path() / name).string();
            std::ofstream(file) << fmt::format("sentinel monitor main 127.0.0.1 {} 2\n"
                                               "sentinel down-after-milliseconds main 500\n"
                                               "sentinel failover-timeout main 3000\n",
                                               port);
            sentinels_.emplace_back(Options{.arguments = {file, "--sentinel"}});
        }
    }

    void awaitReady() const
    {
        await([&] { return count(servers_, {"INFO", "replication"}, "link_status:up") == 2; });
        const auto known = "num-slaves 2 num-other-sentinels 2";
        await([&] { return count(sentinels_, {"SENTINEL", "MASTER", "main"}, known) == 3; });
    }

    /// For the clients.
    [[nodiscard]] redislock::Config config() const
    {
        return redislock::Config::fromUrl(fmt::format("redis-sentinel://127.0.0.1:{},127.0.0.1:{},127.0.0.1:{}/main",
                                                      sentinels_[0].port(), sentinels_[1].port(),
                                                      sentinels_[2].port()));
    }

    /// From now on the replicas get nothing that the master acknowledges, because it does not let them in any more.
    void holdReplicasBack() const
    {
        count({&servers_[1], 2}, {"CONFIG", "SET", "masterauth", "wrong"}, "");
        count({servers_.data(), 1}, {"CLIENT", "KILL", "TYPE", "replica"}, "");
        await([&] { return count({servers_.data(), 1}, {"INFO", "replication"}, "connected_slaves:0") == 1; });
    }

    /// The new master's replica may follow it.
    void letReplicasIn() const { count({&servers_[1], 2}, {"CONFIG", "SET", "masterauth", ""}, ""); }

    void killMaster() { servers_.front().kill(); }

    /// Returns when another server takes writes, and a Sentinel says that it is the master.
    void awaitNewMaster() const
    {
        await([&] { return count({&servers_[1], 2}, {"INFO", "replication"}, "role:master") == 1; });
        const auto old = std::to_string(servers_.front().port());
        await([&] { return count(sentinels_, {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main"}, old) < 3; });
    }

private:
    using Server = redislock::testing::RedisServer;
    using Options = redislock::testing::RedisServerOptions;

    void start(std::vector<std::string> arguments)
    {
        servers_.emplace_back(Options{.arguments = std::move(arguments)});
    }

    /// A server may give no answer: a Sentinel closes the connections of the replica that it promotes.
    template <class IsSo>
    static void await(IsSo isSo)
    {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        std::string why = "it does not do what it should";
        while (std::chrono::steady_clock::now() < end) {
            try {
                if (isSo()) {
                    return;
                }
            } catch (const std::runtime_error& error) {
                why = error.what();
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        throw std::runtime_error("one of the servers cannot be used: " + why);
    }

    /// Asks all of them. @return how many answers contain the text
    static std::ptrdiff_t count(std::span<const Server> servers, std::initializer_list<std::string_view> words,
                                std::string_view text)
    {
        return std::ranges::count_if(servers, [&](const Server& each) {
            const auto reply = example::Shop(redislock::Config::fromUrl(each.url()), "").command(words);
            std::string all(reply->str == nullptr ? "" : reply->str);
            for (std::size_t i = 0; i < reply->elements; ++i) {
                all += fmt::format("{} ", reply->element[i]->str == nullptr ? "" : reply->element[i]->str);
            }
            return all.find(text) != std::string::npos;
        });
    }

    redislock::testing::detail::TemporaryFolder folder_; ///< of the Sentinels' files
    std::vector<Server> servers_;                        ///< the first is the master at the beginning
    std::vector<Server> sentinels_;
};

} // namespace failover
