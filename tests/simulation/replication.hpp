/// @file
/// A master and the replicas that follow it.
#pragma once

#include "redislock/random.hpp"
#include "simulation/keyspace.hpp"
#include "simulation/model_server.hpp"
#include "simulation/scheduler.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace redislock::simulation {

/// Each replica has an earlier state of the master's data, and follows with a lag; it may stop for a time, or be gone.
/// `WAIT` counts the replicas that have the last write of its own connection, as Redis does from 7.2 on: where that
/// connection has written nothing, all of them have it.
class Replication {
public:
    using State = std::map<std::string, Keyspace::Key>;
    struct Links { ///< to the rest of the world
        /// A node has that state now, as a replica.
        std::function<void(std::size_t node, const State&)> applied;
        std::function<void(LinkId, std::int64_t)> answerWait;
    };

    Replication(Scheduler& scheduler, Random& chance, ModelServer& master, std::size_t replicas, Links links);

    void wait(LinkId link, std::int64_t replicas, VirtualTime time, bool atFormer);

    /// A replica applies nothing until then.
    void stop(std::size_t replica, VirtualTime until);
    /// A replica has nothing, until it copies the master's data.
    void lose(std::size_t replica, VirtualTime until);
    [[nodiscard]] bool mayBePromoted(std::size_t replica) const { return replicas_[replica].isSynced; }
    [[nodiscard]] bool lags(std::size_t replica) const { return replicas_[replica].applied < offset_; }
    [[nodiscard]] std::size_t count() const noexcept { return replicas_.size(); }
    /// The replica becomes the master with what it has. The former master is gone: it is the replica with that number,
    /// and comes back by lose(). The others copy the new master's data.
    void promote(std::size_t replica);

private:
    struct Replica {
        std::size_t node = 0;
        std::shared_ptr<const State> state = std::make_shared<const State>();
        std::uint64_t applied = 0;
        std::uint64_t life = 0; ///< grows whenever what is on its way to the replica is dropped
        bool isSynced = true;
        VirtualTime lag{0}; ///< on average
        VirtualTime lastArrival{0};
        VirtualTime stoppedUntil{0};
    };
    struct Waiting {
        std::uint64_t number;
        LinkId link;
        std::int64_t replicas;
        std::uint64_t offset; ///< of the last write of the connection
        bool atFormer;        ///< that has no replicas any more
    };

    void wrote(LinkId by);
    void apply(std::size_t replica, std::uint64_t life, std::uint64_t offset, std::shared_ptr<const State> state);
    void copy(std::size_t replica);
    void judgeWaits();
    [[nodiscard]] std::int64_t howManyHave(const Waiting& waiting) const;
    [[nodiscard]] VirtualTime within(VirtualTime least, VirtualTime most);

    Scheduler& scheduler_;
    Random& chance_;
    ModelServer& master_;
    const Links links_;
    std::vector<Replica> replicas_;
    std::size_t masterNode_;
    std::uint64_t offset_ = 0;
    std::map<LinkId, std::uint64_t> written_; ///< by connection: the offset of its last write
    std::vector<Waiting> waiting_;
    std::uint64_t lastWait_ = 0;
};

} // namespace redislock::simulation
