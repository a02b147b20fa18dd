/// @file
/// A cluster whose nodes fail.
#pragma once

#include "link/cluster/cluster_table.hpp"
#include "redislock/random.hpp"
#include "simulation/simulated.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace redislock::simulation {

/// Nodes that take each other's slots and place, die, stand still, are cut off from each other, know late who has what,
/// or are replaced by others with other addresses.
class ClusterNodes : public Simulated {
public:
    [[nodiscard]] const Statistics& statistics() const noexcept override { return statistics_; }
    [[nodiscard]] const Trace& trace() const noexcept override { return trace_; }

protected:
    static constexpr std::size_t pieceCount = 8;   ///< parts of the slots, which move as a whole
    static constexpr std::size_t firstPort = 6372; ///< so that a later node has the default address
    static constexpr std::size_t shardCount = 3;   ///< each a master and a replica

    enum class Kind : std::uint8_t { done, moved, ask, down };
    struct Answer {
        Kind kind;
        std::size_t other = 0; ///< the node that is named
    };
    /// What a node believes.
    struct View {
        std::array<std::size_t, pieceCount> owner{};
        std::set<std::size_t> members{};
        friend bool operator==(const View&, const View&) = default;
    };
    struct Node {
        std::size_t shard = 0;
        bool isAlive = true;
        bool isGone = false;     ///< for ever
        bool isStranger = false; ///< another cluster has its address
        VirtualTime pausedUntil{0};
        VirtualTime downUntil{0};   ///< it takes the cluster for one that is down
        VirtualTime cutOffUntil{0}; ///< it hears nothing of the others, nor they of it; the client reaches it
        View view{};
    };

    ClusterNodes(std::uint64_t seed, bool traced);

    [[nodiscard]] VirtualTime within(VirtualTime least, VirtualTime most);
    [[nodiscard]] bool isLikely(double chance) { return chance_.unit() < chance; }
    [[nodiscard]] std::size_t below(std::size_t end);
    void after(VirtualTime pause, Task task) { scheduler_.at(scheduler_.now() + pause, std::move(task)); }
    [[nodiscard]] static detail::Slot slotIn(std::size_t piece);
    [[nodiscard]] static redislock::Endpoint announced(std::size_t node);
    /// Where the client reaches it.
    [[nodiscard]] redislock::Endpoint at(std::size_t node) const;

    [[nodiscard]] bool answers(std::size_t node) const;
    [[nodiscard]] bool isReached(std::size_t node) const;
    [[nodiscard]] bool isAgreed(std::size_t piece) const;
    [[nodiscard]] Answer answerOf(std::size_t node, std::size_t piece, bool isAsking);
    [[nodiscard]] detail::ClusterTable tableOf(std::size_t node) const;
    void fault();
    void endFaults();

    Random chance_;
    Scheduler scheduler_;
    Trace trace_;
    Statistics statistics_;
    bool faults_ = true;
    std::vector<Node> nodes_;
    View truth_;
    VirtualTime disturbedAt_{0}; ///< when a node last failed, came back or learnt something

private:
    struct Migration {
        std::size_t piece, from, to;
    };

    [[nodiscard]] VirtualTime lag() { return isLikely(0.8) ? within({}, longestLag_ / 8) : within({}, longestLag_); }
    /// Whether the client's last table has it.
    [[nodiscard]] virtual bool isListed(std::size_t node) const = 0;
    void kill(std::size_t node);
    void freeze(std::size_t node, VirtualTime span);
    void cutOff(std::size_t node, VirtualTime span);
    void promote(std::size_t shard, bool isByCommand);
    void migrate();
    void replace();
    void invade(std::size_t node);
    void spread();
    void learn(std::size_t node);

    const bool isMapped_; ///< the client reaches nodes at other addresses than they announce
    const VirtualTime longestLag_;
    std::array<std::size_t, shardCount> masters_{};
    std::optional<Migration> migration_;
};

} // namespace redislock::simulation
