/// @file
/// A run with a cluster.
#pragma once

#include "link/cluster/cluster_machine.hpp"
#include "simulation/cluster_nodes.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace redislock::simulation {

/// Nodes of a cluster, and one client's choice of whom to send a request to. First with faults, then without.
///
/// The rules: C1 a request goes only where a table of the own cluster or the configuration says a node is; C2 one
/// question is under way, and there is a pause between two, unless an address is unknown; C3 a third of a second after
/// all nodes that answer agree who has a slot, requests about it go there; what moves is told; C4 a redirection is
/// learnt at once, and a table from before does not undo it; C5 an ASK is for one request and changes no owner; C6
/// without faults all owners are right, and one question is asked in half a minute; C7 numbers of nodes that are gone
/// are used again, those of the configuration never.
class ClusterWorld final : public ClusterNodes {
public:
    ClusterWorld(std::uint64_t seed, bool traced);

    void run() override;

private:
    using Machine = detail::ClusterMachine;
    using Server = Machine::Server;

    /// The client's connection to a node.
    struct Connection {
        bool isUp = false;
        int failures = 0;
        VirtualTime notBefore{0};
        VirtualTime owesSince = VirtualTime::max();
        std::uint64_t generation = 0;
    };
    struct Named {
        std::size_t node;
        TimePoint at;
    };

    [[nodiscard]] TimePoint clientTime() const noexcept { return TimePoint(scheduler_.now() + std::chrono::hours(1)); }
    [[nodiscard]] bool isListed(std::size_t node) const override { return listed_.contains(node); }

    void work();
    void ask(Server server);
    void awaitTable(Server server, TimePoint askedAt);
    void told(Server server, std::size_t node, const detail::ClusterTable& table, TimePoint askedAt);
    void failed(Server server);
    void request();
    void send(std::size_t piece, bool asks);
    void arrive(Server server, std::uint64_t generation, std::size_t piece, bool isAsking);
    void answered(Server server, std::uint64_t generation, std::size_t piece, Answer answer);
    void redirected(Server server, std::size_t piece, bool isOnce, std::size_t other);
    void connected(Server server);
    void lost(Server server, std::uint64_t generation);
    void watch();
    void letGo();
    [[nodiscard]] std::size_t nodeOf(Server server) const;
    void checkPlace(std::size_t piece, std::size_t node);
    void checkNamed() const;
    void checkNumbers(bool isAtEnd) const;

    Machine machine_;
    std::vector<std::size_t> seeds_;
    std::vector<Connection> connections_; ///< by number
    std::set<std::size_t> listed_;        ///< in the last table
    std::set<std::size_t> heardOf_;       ///< in any table, or of the configuration
    std::map<std::size_t, Named> named_;  ///< by piece: in a redirection after the last table was asked for
    std::array<Server, pieceCount> owners_{};
    std::array<VirtualTime, pieceCount> triedAt_{}; ///< the first request about each since the last fault
    Server owing_ = Machine::entry;                 ///< the answer to the last question
    bool mayHurry_ = false;
    TimePoint askedAt_ = TimePoint::min();
    TimePoint tableFrom_ = TimePoint::min(); ///< when the last table was asked for
    std::uint64_t tables_ = 0;
    bool wasMisled_ = false; ///< the last table was that of a node that is cut off
    TimePoint timerAt_ = TimePoint::max();
};

} // namespace redislock::simulation
