/// @file
/// What a cluster costs: against the same library with one server.
#include "hand_over_processes.hpp"
#include "held.hpp"
#include "process_facts.hpp"
#include "reference/server_facts.hpp"
#include "rows.hpp"
#include "support/deployments.hpp"
#include "uncontended.hpp"

#include <redislock/redislock.hpp>

#include <boost/asio/use_future.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace redislock::bench {

namespace {

using Nodes = std::shared_ptr<const test::Cluster>;

Nodes clusterOf(std::size_t nodes)
{
    return std::make_shared<const test::Cluster>(nodes);
}

Config inCluster(const Nodes& nodes)
{
    return Config::fromUrl(nodes->url());
}

std::vector<RawConnection> connectionsTo(const Nodes& nodes)
{
    std::vector<RawConnection> all;
    for (std::size_t i = 0; i < nodes->size(); ++i) {
        all.emplace_back(nodes->node(i).host(), nodes->node(i).port());
    }
    return all;
}

/// Keeps the nodes for as long as the measurement.
Measure on(Nodes nodes, Side ours, Side reference)
{
    return [nodes = std::move(nodes), measure = inTurn(std::move(ours), std::move(reference))](
               Seconds duration, First first) { return measure(duration, first); };
}

/// Clients of one kind, which all stay, and the memory that they take.
class Clients {
public:
    explicit Clients(Config config) : config_(std::move(config)) { add(); } // with it comes what the process has once

    /// Makes another one, which locks on a thread and asynchronously: in a cluster it has the connection for the latter
    /// anyway.
    void add()
    {
        const auto heap = heapInUse();
        const auto resident = residentBytes();
        const auto lock = all_.emplace_back(config_).getLock("bench:memory");
        lock.lock();
        expect(lock.unlock() == Unlocked::released, "the library's unlock()");
        auto held = lock.asyncLock(boost::asio::use_future).get();
        expect(held.asyncRelease(boost::asio::use_future).get() == Unlocked::released, "an asynchronous release");
        std::this_thread::sleep_for(std::chrono::milliseconds(10)); // until its own thread has nothing to do
        if (all_.size() > 1) {
            heap_ += static_cast<double>(heapInUse()) - static_cast<double>(heap);
            resident_ += static_cast<double>(residentBytes()) - static_cast<double>(resident);
        }
    }

    /// KiB from malloc, of one client.
    [[nodiscard]] double heap() const { return ofOne(heap_); }
    /// KiB of resident memory.
    [[nodiscard]] double resident() const { return ofOne(resident_); }

private:
    [[nodiscard]] double ofOne(double bytes) const { return bytes / 1024 / static_cast<double>(all_.size() - 1); }

    Config config_;
    std::deque<Client> all_;
    double heap_ = 0;
    double resident_ = 0;
};

/// A client that holds names over all nodes, and waits for others.
class InUse {
public:
    explicit InUse(Config config) : other_(config), client_(named(std::move(config)))
    {
        constexpr std::size_t names = 12;
        for (std::size_t i = 0; i < names; ++i) {
            const auto name = fmt::format("bench:waited:{:02}", i);
            held_.emplace_back(client_.getLock(fmt::format("bench:held:{:02}", i)));
            held_.emplace_back(other_.getLock(name));
            waiters_.emplace_back([lock = client_.getLock(name)] { const LockGuard waited(lock); });
        }
    }

    /// Its connections to that node.
    static std::size_t connections(RawConnection& node)
    {
        const auto reply = node.command({"CLIENT", "LIST"});
        const std::string_view text(reply->str, reply->len);
        const auto sought = fmt::format(" name={}:", label);
        std::size_t count = 0;
        for (auto at = text.find(sought); at != text.npos; at = text.find(sought, at + 1)) {
            ++count;
        }
        return count;
    }

private:
    static constexpr char label[] = "counted";

    static Config named(Config config)
    {
        config.clientName = label;
        config.watchdogTimeout = std::chrono::seconds(1); // soon renewed
        return config;
    }

    Client other_;
    Client client_;
    std::vector<std::jthread> waiters_;
    std::vector<LockGuard> held_; // ends before the waiters
};

} // namespace

Measure lockInCluster(const Target& target, std::size_t nodes, unsigned threads)
{
    const auto cluster = clusterOf(nodes);
    return on(cluster, lockSide(inCluster(cluster), threads), lockSide(Config::fromUrl(target.url), threads));
}

Measure asynchronousInCluster(const Target& target, unsigned underWay)
{
    const auto cluster = clusterOf(1);
    return on(cluster, asynchronousSide(inCluster(cluster), underWay),
              asynchronousSide(Config::fromUrl(target.url), underWay));
}

Measure handOverInCluster(const Target& target)
{
    const auto cluster = clusterOf(1);
    return on(cluster, handOverSide(cluster->url(), "plain"), handOverSide(target.url, "plain"));
}

Measure renewalsInCluster(const Target& target, std::size_t locks, std::chrono::milliseconds lease)
{
    const auto cluster = clusterOf(3);
    const auto notes = std::make_shared<std::array<std::string, 2>>();
    const auto side = [=](Config config, std::shared_ptr<std::vector<RawConnection>> servers, std::size_t which) {
        config.watchdogTimeout = lease;
        return [=](Seconds) {
            const auto cost = costOfRenewals(config, *servers, locks);
            (*notes)[which] = fmt::format("client {:.3f} cores, all servers {:.3f}, {:.0f} requests a second",
                                          cost.client, cost.servers, cost.requests);
            return (cost.client + cost.servers) * 1000;
        };
    };
    auto plain = std::make_shared<std::vector<RawConnection>>();
    plain->emplace_back(target.host, target.port);
    const auto all = std::make_shared<std::vector<RawConnection>>(connectionsTo(cluster));
    return
        [notes, measure = on(cluster, side(inCluster(cluster), all, 0),
                             side(Config::fromUrl(target.url), std::move(plain), 1))](Seconds duration, First first) {
            auto pair = measure(duration, first);
            pair.note = fmt::format("cluster: {}; one server: {}", (*notes)[0], (*notes)[1]);
            return pair;
        };
}

Measure memoryInCluster(const Target& target)
{
    constexpr int clients = 32;
    constexpr double allowed = 64;
    const auto cluster = clusterOf(1);
    Clients ours(inCluster(cluster));
    Clients reference(Config::fromUrl(target.url));
    for (int i = 0; i < clients; ++i) { // in turn: some memory comes in pieces for several
        ours.add();
        reference.add();
    }
    const Pair pair{ours.resident() - reference.resident(), allowed,
                    fmt::format("resident {:.1f} KiB a client, {:.1f} without a cluster; from malloc {:.1f} and {:.1f}",
                                ours.resident(), reference.resident(), ours.heap(), reference.heap())};
    return [pair](Seconds, First) { return pair; }; // the memory of clients that have ended would be used again
}

Measure connectionsInCluster(const Target&)
{
    return [cluster = clusterOf(3)](Seconds, First) {
        constexpr std::size_t allowed = 3;
        auto servers = connectionsTo(cluster);
        const InUse use(inCluster(cluster));
        const auto hasAll = [](RawConnection& each) { return InUse::connections(each) >= allowed; };
        const bool isInUse =
            test::eventually([&] { return std::ranges::all_of(servers, hasAll); }, std::chrono::seconds(10));
        expect(isInUse, "the connections to all nodes");
        std::this_thread::sleep_for(std::chrono::milliseconds(200)); // more would come meanwhile
        std::size_t most = 0;
        for (auto& each : servers) {
            most = std::max(most, InUse::connections(each));
        }
        expect(most == allowed, "three connections to each node");
        return Pair{static_cast<double>(most), static_cast<double>(allowed)};
    };
}

} // namespace redislock::bench
