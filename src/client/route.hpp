/// @file
/// The servers of one client.
#pragma once

#include "client/node.hpp"
#include "link/cluster/cluster_machine.hpp"
#include "link/connect/alarm.hpp"
#include "link/connect/last_errors.hpp"
#include "link/connect/locator.hpp"
#include "link/request/call.hpp"
#include "link/request/channels.hpp"
#include "redislock/config.hpp"
#include "wire/slot.hpp"

#include <boost/asio/io_context.hpp>

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace redislock::detail {

/// One server, or the nodes of a cluster: then it drives a ClusterMachine, makes a Node for each that is needed, lets
/// go of those that are not any more, and has what waits at one node begin again at another when a slot moves.
///
/// **Thread safety**: choose(), of(), ids(), shutdown() and forEach() by any thread; everything else on the
/// io_context's thread. Its mutex is the last to be taken.
class Route {
public:
    Route(boost::asio::io_context& io, const Config& config, std::string connectionName, LastErrors& lastErrors,
          const Node::Listener& listener);
    Route(const Route&) = delete;
    Route& operator=(const Route&) = delete;
    ~Route();

    /// The node to which a request is to be given now, noted in it. One that belongs to a node which is not known, or
    /// not made, waits at the first one, and ends as `moved` when that has changed.
    Node& choose(Call& call)
    {
        return cluster_ == nullptr ? *nodes_[0].load(std::memory_order_relaxed) : chooseInCluster(call);
    }
    /// The node to which a request was given.
    [[nodiscard]] Node& of(const Call& call) noexcept { return *nodes_[call.server].load(std::memory_order_acquire); }
    template <class Act>
    void forEach(Act act)
    {
        const std::size_t count = count_.load(std::memory_order_acquire);
        for (std::size_t i = 0; i < count; ++i) {
            if (Node* const node = nodes_[i].load(std::memory_order_acquire); node != nullptr) {
                act(*node);
            }
        }
    }
    /// The ids of the nodes of the cluster that are known.
    [[nodiscard]] std::vector<std::string> ids();

    /// Ends the connections of the threads, for good. Any thread.
    void shutdown(Errc why);

    void want(const std::string& channel, const ChannelListener& listener);
    void drop(const std::string& channel, const ChannelListener& listener);
    /// As Node::keep(), of all nodes that are in use.
    bool keep(bool on);

    void recover();
    void close();

private:
    using Server = ClusterMachine::Server;
    struct Cluster;
    class Place;
    struct Question;
    struct Echo;

    Node& chooseInCluster(Call& call);
    [[nodiscard]] Server ownerOf(Slot slot);
    [[nodiscard]] Node* at(Server server) noexcept { return nodes_[server].load(std::memory_order_acquire); }
    [[nodiscard]] Node::Listener listenerOf(Server server);
    [[nodiscard]] Node& nodeForChannel(const std::string& channel);
    bool make(Server server);
    void makeWanted();
    void work();
    void workSoon() noexcept;
    void ask(Server server);
    void answered(const Question& question);
    bool told(Server by, const Reply& slots, TimePoint askedAt);
    void noted(Server by, const Reply& reply) noexcept;
    void tried(Server server, const std::optional<Fault>& fault);
    void locate(Server server, Locator::Found found);
    [[nodiscard]] Fault absence();
    void apply(const SlotSet& moved);
    void handOn();
    void moveChannels();
    void echo();
    void end(std::shared_ptr<Echo> echo);
    void endParked();
    void letGo();
    void watch();

    boost::asio::io_context& io_;
    const Node::Listener listener_;
    LastErrors& lastErrors_;
    std::unique_ptr<Cluster> cluster_; ///< null: there is one server
    std::vector<std::unique_ptr<Node>> owned_;
    std::array<std::atomic<Node*>, ClusterMachine::mostServers> nodes_{}; ///< by number; null: not made
    std::atomic<std::size_t> count_{1};
    std::atomic<bool> isShutDown_{false};
};

} // namespace redislock::detail
