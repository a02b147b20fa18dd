/// @file
/// What a Route is made of in a cluster.
#pragma once

#include "client/route.hpp"
#include "link/request/calls.hpp"
#include "link/subscriber.hpp"
#include "values/system/process.hpp"

#include <atomic>
#include <bitset>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace redislock::detail {

/// What a route keeps of a cluster.
struct Route::Cluster {
    Cluster(boost::asio::io_context& io, Route& route, const Config& settings, std::string name)
        : self(&route, [](Route*) {}),
          config(settings),
          connectionName(std::move(name)),
          timer(io),
          watchTimer(io),
          letGoTimer(io)
    {
    }

    void failed(const Fault& why)
    {
        if (!fault || why.failure == Failure::fatal) {
            fault = why;
        }
    }

    std::shared_ptr<Route> self; ///< for questions, which may outlast the route; owns nothing
    const Config config;
    const std::string connectionName;
    std::mutex mutex; ///< guards what follows
    ClusterMachine machine;
    std::bitset<ClusterMachine::mostServers> wanted; ///< nodes that are to be made
    std::bitset<ClusterMachine::mostServers> used;   ///< nodes that were given a request

    // on the io_context's thread
    std::vector<std::unique_ptr<Place>> places; ///< by number
    std::vector<Locator::Found> parked;
    std::map<Slot, std::shared_ptr<Echo>> echoes;
    std::optional<Fault> fault; ///< since the last table: the first one, or the last fatal one
    Alarm timer;
    Alarm watchTimer;
    Alarm letGoTimer;
    std::atomic<bool> watches{false};
    std::atomic<bool> wasUsed{false}; ///< since the last watch
    TimePoint recheckAt = TimePoint::max();
    bool isClosed = false;
};

/// Where one node is.
class Route::Place final : public Locator {
public:
    Place(Route& of, Server server) noexcept : of_(of), server_(server) {}

    void locate(Found found) override { of_.locate(server_, std::move(found)); }
    void tried(const Endpoint& /*at*/, const std::optional<Fault>& fault) override { of_.tried(server_, fault); }
    bool told(const Reply& slots) override
    {
        return of_.told(server_, slots, BootClock::now() - ClusterMachine::askAgainAfter); // at least as old
    }
    void noted(const Reply& reply) noexcept override { of_.noted(server_, reply); }
    [[nodiscard]] std::string tlsName(const Endpoint& /*at*/) const override
    {
        const std::lock_guard lock(of_.cluster_->mutex);
        return of_.cluster_->machine.tlsName(server_);
    }
    [[nodiscard]] Fault absence() const override { return of_.absence(); }

private:
    Route& of_;
    const Server server_;
};

/// Listens to the channels of a slot also at the node to which the slot is being moved: what is published there is
/// heard there alone.
struct Route::Echo {
    using Listeners = std::map<std::string, std::vector<ChannelListener>>;

    Echo(Route& of, Server node, Listeners all)
        : target(node),
          listeners(std::move(all)),
          place(of, node),
          connector(
              of.io_, of.cluster_->config, of.cluster_->connectionName, of.lastErrors_, [](const std::string&) {},
              ServerKind::node),
          subscriber(
              of.io_, connector, of.cluster_->config.commandTimeout, of.cluster_->config.commandTimeout, freshSeed(),
              [](bool, Reason) {}, true)
    {
        connector.locateBy(place);
        for (const auto& [channel, each] : listeners) {
            for (const auto& listener : each) {
                subscriber.want(channel, listener);
            }
        }
    }

    const Server target;
    const Listeners listeners;
    Place place;
    Connector connector;
    Subscriber subscriber;
};

/// A question for the table.
struct Route::Question final : Requester {
    Question(const std::shared_ptr<Route>& route, Server server) : of(route), by(server), askedAt(BootClock::now()) {}

    void answered(Call& /*call*/) noexcept override
    {
        if (const auto route = of.lock()) {
            try {
                route->answered(*this);
            } catch (...) { // out of memory: asked again later
                const std::lock_guard lock(route->cluster_->mutex);
                route->cluster_->machine.failed(by, BootClock::now());
            }
        }
    }

    const std::weak_ptr<Route> of;
    const Server by;
    const TimePoint askedAt;
    std::shared_ptr<CommandCall> call = std::make_shared<CommandCall>(std::vector<std::string>{"CLUSTER", "SLOTS"});
};

} // namespace redislock::detail
