#include "link/cluster/cluster_machine.hpp"

#include "wire/assert.hpp"

#include <algorithm>
#include <utility>

namespace redislock::detail {

namespace {

constexpr std::size_t mostIds = 4096;
constexpr std::chrono::milliseconds unknownAgain{10};

bool isNumeric(std::string_view host) noexcept
{
    return host.find(':') != std::string_view::npos ||
           (!host.empty() && host.find_first_not_of("0123456789.") == std::string_view::npos);
}

/// Whose certificate to expect: that of a host name, if one is known.
std::string tlsNameOf(const ClusterTable::Node& node)
{
    const bool isMapped = node.at != node.announced;
    if (isMapped || !isNumeric(node.at.host)) {
        return node.at.host;
    }
    const auto name = std::ranges::find_if_not(node.aliases, isNumeric);
    return name != node.aliases.end() ? *name : node.at.host;
}

} // namespace

void ClusterMachine::addSeed(const Endpoint& at)
{
    Member seed;
    seed.node.at = seed.node.announced = at;
    seed.tlsName = at.host;
    seed.isSeed = true;
    servers_.push_back(std::move(seed));
}

ClusterMachine::State ClusterMachine::state() const noexcept
{
    return !hasTable_ ? State::searching : isDue_ || isUrgent_ ? State::doubting : State::settled;
}

// --- Where to send what ---------------------------------------------------------------------------------------------

ClusterMachine::Server ClusterMachine::any() const noexcept
{
    if (!hasTable_) {
        return entry;
    }
    Server best = entry;
    int most = 0;
    for (std::size_t i = 1; i < servers_.size(); ++i) {
        const Member& member = servers_[i];
        const bool isWell = member.troubledAt == TimePoint::min();
        const int worth = !member.isListed || !member.node.isMapped
                              ? 0
                              : 1 + (isWell ? 4 : 0) + (member.isConnected ? 2 : 0) + (member.slots > 0 ? 1 : 0);
        if (worth > most) {
            most = worth;
            best = static_cast<Server>(i);
        }
    }
    return best;
}

ClusterMachine::Server ClusterMachine::targetOf(Slot slot) const noexcept
{
    const auto found = open_.find(slot);
    return found == open_.end() ? entry : found->second.target;
}

std::map<Slot, ClusterMachine::Server> ClusterMachine::openSlots() const
{
    std::map<Slot, Server> all;
    for (const auto& [slot, open] : open_) {
        all.emplace(slot, open.target);
    }
    return all;
}

SlotSet ClusterMachine::slotsOf(Server server) const
{
    SlotSet all;
    for (std::size_t slot = 0; slot < slotCount; ++slot) {
        all[slot] = owner_[slot] == server;
    }
    return all;
}

// --- What happens ---------------------------------------------------------------------------------------------------

/// Whether a table shares no node with those before, and comes from a node that was in none of them.
bool ClusterMachine::isForeign(Server by, const ClusterTable& table) const
{
    const bool isKnown = std::ranges::any_of(table.nodes, [this](const ClusterTable::Node& node) {
        return node.id.empty() || std::ranges::find(ids_, node.id) != ids_.end();
    });
    return hasTable_ && !isKnown && !servers_[by].isListed;
}

/// The node's number, a new one if there was none.
ClusterMachine::Server ClusterMachine::add(const ClusterTable::Node& node)
{
    const auto same = [&](const Member& member) {
        return member.node.at == node.at && member.node.isMapped == node.isMapped;
    };
    auto found = std::find_if(servers_.begin() + 1, servers_.end(), same);
    if (found == servers_.end()) {
        found = std::find_if(servers_.begin() + 1, servers_.end(),
                             [](const Member& member) { return member.node.at.host.empty(); });
    }
    if (found == servers_.end()) {
        if (servers_.size() == mostServers) {
            return entry;
        }
        found = servers_.emplace(servers_.end());
    }
    found->node = node;
    found->isListed = true;
    found->tlsName = tlsNameOf(node);
    return static_cast<Server>(found - servers_.begin());
}

void ClusterMachine::give(Slot slot, Server server)
{
    Server& owner = owner_[slot];
    if (owner == server) {
        return;
    }
    servers_[owner].slots -= owner == entry ? 0 : 1;
    servers_[owner].hasLost = true;
    servers_[server].slots += 1;
    moved_[slot] = moved_[slot] || owner != entry; // nobody was asked before
    owner = server;
}

bool ClusterMachine::told(Server by, const ClusterTable& table, TimePoint askedAt, TimePoint now)
{
    if (by == asked_) {
        asked_ = entry;
    }
    if (isForeign(by, table)) {
        servers_[by].isAsked = true;
        servers_[by].troubledAt = now;
        return false;
    }
    if (askedAt < tableFrom_) { // a later one was told already
        return true;
    }
    tableFrom_ = askedAt;
    for (Member& member : servers_) {
        member.isListed = false;
    }
    std::vector<Server> numbers;
    for (const auto& node : table.nodes) {
        numbers.push_back(add(node));
        if (!node.id.empty() && std::ranges::find(ids_, node.id) == ids_.end() && ids_.size() < mostIds) {
            ids_.push_back(node.id);
        }
    }
    for (const auto& range : table.ranges) {
        const Server server = numbers[range.node];
        const bool isDoubtful = !isWell(servers_[server], now);
        for (std::size_t slot = range.first; slot <= range.last && server != entry; ++slot) {
            // a node may go on naming the former master; who has the slot by mistake redirects to the right one
            const Server owner = owner_[slot];
            if (!isDoubtful || owner == entry || !servers_[owner].isListed || !isWell(servers_[owner], now)) {
                give(static_cast<Slot>(slot), server);
            }
        }
    }
    std::erase_if(learnt_, [askedAt](const Learnt& each) { return each.at < askedAt; });
    for (const Learnt& each : learnt_) {
        give(each.slot, each.server);
    }
    std::erase_if(open_, [&](const auto& each) {
        return each.second.target == owner_[each.first] || now >= each.second.at + moveLasts;
    });
    hasTable_ = true;
    isUrgent_ = false;
    toldAt_ = now;
    return true;
}

/// The number of a known address.
ClusterMachine::Server ClusterMachine::known(Server by, std::string_view host, std::uint16_t port) const
{
    const auto name = host.empty() ? std::string_view(servers_[by].node.announced.host) : host;
    const auto isIt = [&](const Member& member) {
        const bool isNamed = member.node.announced.host == name ||
                             std::ranges::find(member.node.aliases, name) != member.node.aliases.end();
        return (isNamed && member.node.announced.port == port) ||
               (member.node.at.host == name && member.node.at.port == port);
    };
    const auto listed = std::find_if(servers_.begin() + 1, servers_.end(),
                                     [&](const Member& member) { return member.isListed && isIt(member); });
    const auto found = listed != servers_.end() ? listed : std::find_if(servers_.begin() + 1, servers_.end(), isIt);
    return found == servers_.end() ? entry : static_cast<Server>(found - servers_.begin());
}

void ClusterMachine::redirected(Server by, const Redirection& where, TimePoint now)
{
    const Server server = known(by, where.host, where.port);
    if (server == entry) {
        const bool isNews = now >= toldAt_ + unknownAgain; // else the last table did not help
        (isNews ? isUrgent_ : isDue_) = true;
        return;
    }
    if (where.isOnce) {
        open_[where.slot] = {server, now};
        return;
    }
    give(where.slot, server);
    open_.erase(where.slot);
    std::erase_if(learnt_, [&](const Learnt& each) { return each.slot == where.slot; });
    learnt_.push_back({where.slot, server, now});
    isDue_ = true;
}

void ClusterMachine::tried(Server server, bool isUsable, TimePoint now)
{
    Member& member = servers_[server];
    member.isConnected = isUsable;
    member.troubledAt = isUsable ? TimePoint::min() : now;
    isDue_ = isDue_ || (!isUsable && member.slots > 0);
}

void ClusterMachine::troubled(Server server, TimePoint now) noexcept
{
    servers_[server].troubledAt = now;
    isDue_ = isDue_ || servers_[server].slots > 0;
}

void ClusterMachine::failed(Server server, TimePoint now)
{
    const bool isMissed = asked_ == server; // else another was asked after a while, or has answered
    asked_ = isMissed ? entry : asked_;
    servers_[server].isAsked = true;
    servers_[server].troubledAt = now;
    isDue_ = isDue_ || (hasTable_ && (isMissed || servers_[server].slots > 0));
}

void ClusterMachine::search() noexcept
{
    if (!isSought_ || isHopeless()) {
        for (Member& member : servers_) {
            member.isAsked = false;
        }
    }
    isSought_ = true;
}

void ClusterMachine::release(Server server)
{
    if (!isListed(server) && servers_[server].slots == 0 && asked_ != server) {
        std::erase_if(open_, [server](const auto& each) { return each.second.target == server; });
        std::erase_if(learnt_, [server](const Learnt& each) { return each.server == server; });
        servers_[server] = Member();
    }
}

// --- What is to be done ---------------------------------------------------------------------------------------------

bool ClusterMachine::isInTrouble(TimePoint now) const noexcept
{
    return std::ranges::any_of(servers_,
                               [now](const Member& member) { return member.slots > 0 && !isWell(member, now); });
}

/// The time between two questions while the table is in doubt.
std::chrono::milliseconds ClusterMachine::pause(TimePoint now) const noexcept
{
    return troubleSince_ != TimePoint::max() && now >= troubleSince_ + quietly ? inVain : askAgainAfter;
}

bool ClusterMachine::isWell(const Member& member, TimePoint now) noexcept
{
    return member.troubledAt == TimePoint::min() || now >= member.troubledAt + troubleLasts;
}

/// How likely a node is to tell the table.
int ClusterMachine::worthOf(const Member& member, TimePoint now) const noexcept
{
    if ((!member.isListed && !member.isSeed) || (!hasTable_ && member.isAsked)) {
        return 0;
    }
    return 1 + (isWell(member, now) ? 4 : 0) + (member.isConnected ? 2 : 0) + (member.isListed ? 1 : 0);
}

std::optional<ClusterMachine::Server> ClusterMachine::takeQuestion(TimePoint now, bool isUsed)
{
    if (hasTable_ && isInTrouble(now)) {
        isDue_ = isDue_ || asked_ == entry; // else the answer may end it
        troubleSince_ = std::min(troubleSince_, now);
    } else {
        troubleSince_ = TimePoint::max();
    }
    if (now < dueAt(isUsed)) {
        return std::nullopt;
    }
    if (asked_ != entry) { // silent
        servers_[asked_].troubledAt = now;
    }
    Server best = entry;
    int most = 0;
    for (std::size_t i = 1; i < servers_.size(); ++i) {
        const std::size_t which = 1 + (next_ + i) % (servers_.size() - 1);
        if (const int worth = worthOf(servers_[which], now); worth > most) {
            most = worth;
            best = static_cast<Server>(which);
        }
    }
    if (best != entry) {
        next_ = best - 1U;
        askedAt_ = now;
        servers_[best].isAsked = servers_[best].isAsked || !hasTable_;
        isUrgent_ = isDue_ = false; // what comes after this is another reason to ask
    }
    asked_ = best;
    return best == entry ? std::nullopt : std::optional(best);
}

TimePoint ClusterMachine::dueAt(bool isUsed) const noexcept
{
    if (!hasTable_) {
        if (!isSought_ ||
            std::ranges::all_of(servers_, [](const Member& member) { return !member.isSeed || member.isAsked; })) {
            return TimePoint::max();
        }
        return asked_ != entry ? askedAt_ + silentAfter : TimePoint{};
    }
    if (asked_ != entry) {
        return askedAt_ + silentAfter;
    }
    return isUrgent_ ? TimePoint{}
           : isDue_  ? askedAt_ + pause(askedAt_)
           : isUsed  ? toldAt_ + quietly
                     : TimePoint::max();
}

bool ClusterMachine::isHopeless() const noexcept
{
    return !hasTable_ && asked_ == entry &&
           std::ranges::all_of(servers_, [](const Member& member) { return !member.isSeed || member.isAsked; });
}

bool ClusterMachine::takeLoss(Server server)
{
    return std::exchange(servers_[server].hasLost, false);
}

SlotSet ClusterMachine::takeMoved() noexcept
{
    return std::exchange(moved_, SlotSet());
}

} // namespace redislock::detail
