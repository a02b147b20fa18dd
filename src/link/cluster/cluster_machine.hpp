/// @file
/// Which node of a cluster is asked.
#pragma once

#include "link/cluster/cluster_table.hpp"
#include "redislock/clock.hpp"
#include "redislock/endpoint.hpp"
#include "wire/slot.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::detail {

/// Which node of a cluster has which slot, and whom to ask for that. Pure: no I/O, no clock, no thread.
///
/// A slot that a node names in a redirection is learnt at once; who has all slots is asked of one node at a time, so
/// that the next of them is asked when one fails or is silent. A redirection to an address that neither a table nor the
/// configuration has is not followed: it causes a question.
///
/// Nodes have numbers. The number `entry` stands for none: for what waits until it is known where it belongs.
class ClusterMachine {
public:
    using Server = std::uint16_t;
    static constexpr Server entry = 0;
    static constexpr std::size_t mostServers = 1024;

    enum class State : std::uint8_t {
        searching, ///< no table is known
        settled,   ///< nothing speaks against the table
        doubting,  ///< it is to be asked for anew
    };

    /// The least time between two questions, and how long a node may owe an answer before another is asked.
    static constexpr std::chrono::milliseconds askAgainAfter{100};
    static constexpr std::chrono::milliseconds silentAfter{250};
    /// How often the table is asked for though nothing speaks against it, or though asking has not helped for so long.
    static constexpr std::chrono::milliseconds quietly{30'000};
    static constexpr std::chrono::milliseconds inVain{1000};
    /// How long a node that cannot be reached is a reason to ask, and how long a slot counts as being moved at most.
    static constexpr std::chrono::milliseconds troubleLasts{5000};
    static constexpr std::chrono::milliseconds moveLasts{600'000};

    ClusterMachine() : owner_(slotCount, entry) { servers_.emplace_back(); }

    /// A node of the configuration, which is never forgotten.
    void addSeed(const Endpoint& at);

    // where to send what
    /// Who has the slot; `entry` if that is not known.
    [[nodiscard]] Server serverOf(Slot slot) const noexcept { return owner_[slot]; }
    /// Who is most likely to answer; `entry` as long as no table is known.
    [[nodiscard]] Server any() const noexcept;
    /// To whom a slot is being moved, as the node that has it said last; `entry`: nobody.
    [[nodiscard]] Server targetOf(Slot slot) const noexcept;
    /// The slots that are being moved, and to whom.
    [[nodiscard]] std::map<Slot, Server> openSlots() const;
    [[nodiscard]] const Endpoint& at(Server server) const { return servers_[server].node.at; }
    /// Whether it is known where to connect to.
    [[nodiscard]] bool isMapped(Server server) const { return servers_[server].node.isMapped; }
    /// Whose certificate to expect there.
    [[nodiscard]] const std::string& tlsName(Server server) const { return servers_[server].tlsName; }
    [[nodiscard]] bool ownsSlots(Server server) const { return servers_[server].slots > 0; }
    [[nodiscard]] SlotSet slotsOf(Server server) const;
    [[nodiscard]] std::size_t count() const noexcept { return servers_.size(); }
    /// Whether anybody may still be sent to it: it is in the table, or of the configuration.
    [[nodiscard]] bool isListed(Server server) const { return servers_[server].isListed || servers_[server].isSeed; }
    /// The ids of all nodes that were ever listed together with one another.
    [[nodiscard]] const std::vector<std::string>& ids() const noexcept { return ids_; }

    // what happens
    /// A node has told its table. @param askedAt when it was asked. @return false: it belongs to another cluster
    bool told(Server by, const ClusterTable& table, TimePoint askedAt, TimePoint now);
    /// A node has answered with a redirection.
    void redirected(Server by, const Redirection& where, TimePoint now);
    /// A node has ended a connection, or a subscription unasked.
    void doubt() noexcept { isDue_ = true; }
    /// A connection to a node was made, or could not be made.
    void tried(Server server, bool isUsable, TimePoint now);
    /// A node has owed an answer for `silentAfter`, or answered that the cluster is down: perhaps it is cut off from
    /// the others, and knows no news.
    void troubled(Server server, TimePoint now) noexcept;
    /// The question to a node was not answered.
    void failed(Server server, TimePoint now);
    /// Somebody needs a node, and none is known: asks all of the configuration once more.
    void search() noexcept;
    /// Nobody uses a node any more that is not listed: its number may be given to another.
    void release(Server server);

    // what is to be done
    [[nodiscard]] State state() const noexcept;
    /// Takes the node that is to be asked for its table now. @param isUsed whether the client has connections at all:
    /// otherwise the table is asked for when it is needed
    std::optional<Server> takeQuestion(TimePoint now, bool isUsed);
    /// Takes the slots of which another node is known to have them than when this was asked before.
    [[nodiscard]] SlotSet takeMoved() noexcept;
    /// Whether a node has lost slots since this was asked before.
    [[nodiscard]] bool takeLoss(Server server);
    [[nodiscard]] TimePoint dueAt(bool isUsed) const noexcept;
    /// Whether each node of the configuration was asked, and none told a table.
    [[nodiscard]] bool isHopeless() const noexcept;

private:
    struct Member {
        ClusterTable::Node node; ///< no host to connect to: the number is free. Of a seed: as the configuration has it
        std::string tlsName;
        bool isSeed = false;
        bool isListed = false; ///< in the last table
        bool isConnected = false;
        bool isAsked = false; ///< of a seed: since the search began
        bool hasLost = false; ///< slots
        TimePoint troubledAt = TimePoint::min();
        std::size_t slots = 0;
    };
    /// A slot that a redirection has taught.
    struct Learnt {
        Slot slot;
        Server server;
        TimePoint at;
    };
    struct Open {
        Server target;
        TimePoint at;
    };

    [[nodiscard]] bool isForeign(Server by, const ClusterTable& table) const;
    Server add(const ClusterTable::Node& node);
    [[nodiscard]] Server known(Server by, std::string_view host, std::uint16_t port) const;
    void give(Slot slot, Server server);
    [[nodiscard]] int worthOf(const Member& member, TimePoint now) const noexcept;
    [[nodiscard]] bool isInTrouble(TimePoint now) const noexcept;
    [[nodiscard]] static bool isWell(const Member& member, TimePoint now) noexcept;
    [[nodiscard]] std::chrono::milliseconds pause(TimePoint now) const noexcept;

    std::vector<Member> servers_; ///< by number
    std::vector<Server> owner_;   ///< by slot
    std::map<Slot, Open> open_;
    std::vector<Learnt> learnt_;
    std::vector<std::string> ids_;
    SlotSet moved_;
    bool hasTable_ = false;
    bool isSought_ = false;                  ///< without a table: somebody needs one
    bool isDue_ = false;                     ///< to be asked for, not too soon after the last time
    bool isUrgent_ = false;                  ///< the same, at once
    Server asked_ = entry;                   ///< who is being asked; `entry`: nobody
    std::size_t next_ = 0;                   ///< whom to ask next
    TimePoint askedAt_{};                    ///< the last time
    TimePoint toldAt_{};                     ///< the last time
    TimePoint tableFrom_ = TimePoint::min(); ///< when the last table was asked for
    TimePoint troubleSince_ = TimePoint::max();
};

} // namespace redislock::detail
