#include "simulation/cluster_nodes.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace redislock::simulation {

namespace {

using namespace std::chrono_literals;
using detail::slotCount;

} // namespace

ClusterNodes::ClusterNodes(std::uint64_t seed, bool traced)
    : chance_(seed),
      trace_(scheduler_, traced),
      isMapped_(chance_.unit() < 0.4),
      longestLag_(chance_.unit() < 0.5 ? 400ms : 2s)
{
    for (std::size_t i = 0; i < 2 * shardCount; ++i) {
        nodes_.push_back({i % shardCount});
        truth_.members.insert(i);
    }
    for (std::size_t i = 0; i < pieceCount; ++i) {
        truth_.owner[i] = i * shardCount / pieceCount;
    }
    for (std::size_t i = 0; i < shardCount; ++i) {
        masters_[i] = i;
    }
    for (auto& each : nodes_) {
        each.view = truth_;
    }
}

detail::Slot ClusterNodes::slotIn(std::size_t piece)
{
    return static_cast<detail::Slot>(piece * (slotCount / pieceCount) + 77 * piece);
}

redislock::Endpoint ClusterNodes::announced(std::size_t node)
{
    return {"127.0.0.1", static_cast<std::uint16_t>(node + firstPort), {}};
}

redislock::Endpoint ClusterNodes::at(std::size_t node) const
{
    auto place = announced(node);
    place.host = isMapped_ ? "gateway" : place.host;
    return place;
}

VirtualTime ClusterNodes::within(VirtualTime least, VirtualTime most)
{
    return least + VirtualTime(static_cast<std::int64_t>(chance_.unit() * static_cast<double>((most - least).count())));
}

std::size_t ClusterNodes::below(std::size_t end)
{
    return static_cast<std::size_t>(chance_.unit() * static_cast<double>(end));
}

bool ClusterNodes::answers(std::size_t node) const
{
    return nodes_[node].isAlive && scheduler_.now() >= nodes_[node].pausedUntil;
}

/// Whether all members that other nodes hear of name the same owner, which is one of them.
bool ClusterNodes::isAgreed(std::size_t piece) const
{
    const auto owner = truth_.owner[piece];
    return isReached(owner) && std::ranges::all_of(truth_.members, [&](std::size_t each) {
               return !isReached(each) || nodes_[each].view.owner[piece] == owner;
           });
}

/// Whether other nodes hear of it.
bool ClusterNodes::isReached(std::size_t node) const
{
    return answers(node) && scheduler_.now() >= nodes_[node].cutOffUntil;
}

void ClusterNodes::fault()
{
    if (!faults_) {
        return;
    }
    ++statistics_.faults;
    after(within(100ms, 3500ms), [this] { fault(); });
    const auto shard = below(shardCount);
    const auto master = masters_[shard];
    const auto any = below(nodes_.size());
    switch (below(10)) {
    case 0:
        kill(master);
        return after(within(600ms, 2s), [this, shard] { promote(shard, false); });
    case 1:
        freeze(master, within(800ms, 6s));
        return after(within(600ms, 2s), [this, shard] { promote(shard, false); });
    case 2:
        return promote(shard, true);
    case 3:
    case 4:
        return migrate();
    case 5:
        return replace();
    case 6:
        nodes_[any].downUntil = scheduler_.now() + within(200ms, 1500ms);
        return;
    case 7:
        cutOff(master, within(1500ms, 6s));
        return after(within(600ms, 2s), [this, shard] { promote(shard, false); });
    case 8:
        return isLikely(0.5) ? kill(any) : freeze(any, within(100ms, 7s));
    default:
        for (std::size_t i = 0; i < nodes_.size() && isLikely(0.98); ++i) {
            freeze(i, within(500ms, 1500ms));
        }
    }
}

/// The node dies, and comes back knowing what it knew.
void ClusterNodes::kill(std::size_t node)
{
    if (!answers(node) || nodes_[node].isGone) {
        return;
    }
    trace_("node", "{} dies", node);
    nodes_[node].isAlive = false;
    disturbedAt_ = scheduler_.now();
    after(within(500ms, 4s), [this, node] {
        if (!nodes_[node].isGone && !nodes_[node].isAlive) {
            trace_("node", "{} is back", node);
            nodes_[node].isAlive = true;
            disturbedAt_ = scheduler_.now();
            after(lag(), [this, node] { learn(node); });
        }
    });
}

void ClusterNodes::freeze(std::size_t node, VirtualTime span)
{
    if (!answers(node) || nodes_[node].isGone) {
        return;
    }
    trace_("node", "{} stands still for {} ms", node, span / 1ms);
    nodes_[node].pausedUntil = scheduler_.now() + span;
    disturbedAt_ = scheduler_.now();
    after(span, [this] { disturbedAt_ = scheduler_.now(); });
}

/// The node goes on until it misses the others, and does not hear that it was replaced.
void ClusterNodes::cutOff(std::size_t node, VirtualTime span)
{
    constexpr auto missesThemAfter = 500ms;
    if (!isReached(node) || nodes_[node].isGone) {
        return;
    }
    trace_("node", "{} is cut off for {} ms", node, span / 1ms);
    nodes_[node].cutOffUntil = scheduler_.now() + span;
    disturbedAt_ = scheduler_.now();
    after(missesThemAfter, [this, node] { nodes_[node].downUntil = nodes_[node].cutOffUntil; });
    after(span, [this, node] {
        disturbedAt_ = scheduler_.now();
        after(lag(), [this, node] { learn(node); });
    });
}

/// The replica takes the place of a master that does not answer, or hands over.
void ClusterNodes::promote(std::size_t shard, bool isByCommand)
{
    const auto old = masters_[shard];
    const auto next = std::ranges::find_if(truth_.members, [&](std::size_t each) {
        return each != old && nodes_[each].shard == shard && isReached(each);
    });
    if (!faults_ || isReached(old) != isByCommand || next == truth_.members.end()) {
        return;
    }
    trace_("node", "{} takes the place of {}", *next, old);
    masters_[shard] = *next;
    nodes_[old].downUntil =
        std::max(nodes_[old].downUntil, nodes_[old].cutOffUntil); // it missed the others before that
    std::ranges::replace(truth_.owner, old, *next);
    learn(*next);
    if (isByCommand) {
        learn(old);
    }
    spread();
}

void ClusterNodes::migrate()
{
    const auto piece = below(pieceCount);
    const auto from = truth_.owner[piece];
    const auto to = masters_[below(shardCount)];
    if (migration_ || from == to || !isReached(from) || !isReached(to)) {
        return;
    }
    trace_("node", "piece {} begins to move from {} to {}", piece, from, to);
    migration_ = Migration{piece, from, to};
    after(within(100ms, 3s), [this] {
        const auto it = std::exchange(migration_, std::nullopt);
        const bool isDone = faults_ && it && isReached(it->from) && isReached(it->to) &&
                            truth_.owner[it->piece] == it->from && std::ranges::count(masters_, it->to) > 0;
        if (isDone) {
            trace_("node", "piece {} is at {}", it->piece, it->to);
            truth_.owner[it->piece] = it->to;
            learn(it->from);
            learn(it->to);
            spread();
        }
    });
}

/// A replica goes for ever; another one, elsewhere, is known to its master first, and perhaps becomes the master soon.
void ClusterNodes::replace()
{
    const auto shard = below(shardCount);
    const auto old = std::ranges::find_if(
        truth_.members, [&](std::size_t each) { return nodes_[each].shard == shard && each != masters_[shard]; });
    if (old == truth_.members.end()) {
        return;
    }
    const auto gone = *old;
    const auto next = nodes_.size();
    trace_("node", "{} goes for ever, {} comes", gone, next);
    nodes_[gone].isGone = true;
    nodes_[gone].isAlive = false;
    truth_.members.erase(gone);
    truth_.members.insert(next);
    nodes_.push_back({shard});
    nodes_.back().view = truth_;
    learn(masters_[shard]);
    spread();
    if (isLikely(0.6)) {
        after(within(5ms, 300ms), [this, shard] { promote(shard, true); });
    }
    if (isLikely(0.6)) {
        after(4s, [this, gone] { invade(gone); });
    }
}

/// When everybody has forgotten the node, another cluster takes its address.
void ClusterNodes::invade(std::size_t node)
{
    const bool isForgotten = !isListed(node) && std::ranges::none_of(nodes_, [node](const Node& each) {
        return !each.isGone && each.view.members.contains(node);
    });
    if (isForgotten) {
        trace_("node", "{} is of another cluster now", node);
        nodes_[node].isAlive = nodes_[node].isStranger = true;
    } else if (faults_) {
        after(1s, [this, node] { invade(node); });
    }
}

void ClusterNodes::spread()
{
    disturbedAt_ = scheduler_.now();
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        after(lag(), [this, i] { learn(i); });
    }
}

void ClusterNodes::learn(std::size_t node)
{
    Node& knows = nodes_[node];
    if (const auto from = std::max(knows.pausedUntil, knows.cutOffUntil); scheduler_.now() < from) {
        after(from - scheduler_.now() + lag(), [this, node] { learn(node); });
    } else if (knows.isAlive && !knows.isStranger && knows.view != truth_) {
        knows.view = truth_;
        disturbedAt_ = scheduler_.now();
    }
}

void ClusterNodes::endFaults()
{
    faults_ = false;
    migration_.reset();
    for (auto& each : nodes_) {
        each.isAlive = !each.isGone || each.isStranger;
        each.pausedUntil = each.downUntil = each.cutOffUntil = VirtualTime{0};
        each.view = truth_;
    }
    disturbedAt_ = scheduler_.now();
}

detail::ClusterTable ClusterNodes::tableOf(std::size_t node) const
{
    const bool isStranger = nodes_[node].isStranger;
    const View& view = nodes_[node].view;
    detail::ClusterTable table;
    std::map<std::size_t, std::size_t> places;
    for (const auto each : view.members) {
        places[each] = table.nodes.size();
        table.nodes.push_back(
            {(isStranger ? "stranger" : "node") + std::to_string(each), announced(each), {}, at(each)});
        if (isStranger) {
            table.nodes.back().announced.host = table.nodes.back().at.host = "elsewhere";
        }
    }
    constexpr auto size = slotCount / pieceCount;
    for (std::size_t i = 0; i < pieceCount; ++i) {
        const auto last = static_cast<detail::Slot>((i + 1) * size - 1);
        if (i > 0 && view.owner[i] == view.owner[i - 1]) {
            table.ranges.back().last = last;
        } else {
            table.ranges.push_back({static_cast<detail::Slot>(i * size), last, places[view.owner[i]]});
        }
    }
    return table;
}

/// What a node answers to a request.
ClusterNodes::Answer ClusterNodes::answerOf(std::size_t node, std::size_t piece, bool isAsking)
{
    const auto owner = nodes_[node].view.owner[piece];
    const bool isMoving = migration_ && migration_->piece == piece;
    if (scheduler_.now() < nodes_[node].downUntil) {
        return {Kind::down};
    }
    if (isMoving && isAsking && migration_->to == node) {
        return {Kind::done};
    }
    if (isMoving && migration_->from == node && owner == node && isLikely(0.5)) {
        return {Kind::ask, migration_->to};
    }
    return owner == node ? Answer{Kind::done} : Answer{Kind::moved, owner};
}

} // namespace redislock::simulation
