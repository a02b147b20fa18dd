#include "simulation/cluster_world.hpp"

#include "simulation/safety_checker.hpp"

#include <algorithm>
#include <utility>

namespace redislock::simulation {

namespace {

using namespace std::chrono_literals;
using detail::slotCount;

constexpr VirtualTime faultsFor = 24s; ///< less than asking in vain takes to become rare
constexpr VirtualTime untilCalm = 12s;
constexpr VirtualTime calmFor = 30s;
constexpr VirtualTime longestWay = 5ms;
constexpr VirtualTime inTime = 350ms;
constexpr VirtualTime patience = 3s; ///< with an answer

} // namespace

ClusterWorld::ClusterWorld(std::uint64_t seed, bool traced) : ClusterNodes(seed, traced)
{
    for (const std::size_t each : {0U, 1U, 4U}) {
        seeds_.push_back(each);
        heardOf_.insert(each);
        machine_.addSeed(at(each));
    }
    connections_.resize(machine_.count());
}

void ClusterWorld::run()
{
    const auto runUntil = [this](VirtualTime end) {
        while (scheduler_.step(end)) {
            ++statistics_.events;
        }
    };
    request();
    watch();
    letGo();
    after(within(500ms, 3s), [this] { fault(); });
    runUntil(faultsFor);
    endFaults();
    runUntil(faultsFor + untilCalm);
    const auto asked = tables_;
    runUntil(faultsFor + untilCalm + calmFor);
    if (tables_ - asked > 1) {
        throw Violation("C6 one question in half a minute", fmt::format("{}", tables_ - asked));
    }
    runUntil(faultsFor + untilCalm + calmFor + 1s);
    if (tables_ == asked) {
        throw Violation("C6 one question in half a minute", "there was none");
    }
    for (std::size_t slot = 0; slot < slotCount; ++slot) {
        if (nodeOf(machine_.serverOf(static_cast<detail::Slot>(slot))) != truth_.owner[slot * pieceCount / slotCount]) {
            throw Violation("C6 all owners are right", fmt::format("slot {}", slot));
        }
    }
    checkNumbers(true);
}

// --- The client: the table ------------------------------------------------------------------------------------------

void ClusterWorld::work()
{
    const auto moved = machine_.takeMoved();
    connections_.resize(machine_.count());
    for (Server server = 1; server < machine_.count(); ++server) {
        const bool hasLost = machine_.takeLoss(server);
        for (std::size_t piece = 0; piece < pieceCount; ++piece) {
            const auto owner = machine_.serverOf(slotIn(piece));
            if (owner != owners_[piece] && owners_[piece] == server && (!hasLost || !moved[slotIn(piece)])) {
                throw Violation("C3 what moves is told", fmt::format("piece {} of number {}", piece, server));
            }
        }
        auto& connection = connections_[server];
        if (hasLost && connection.owesSince < scheduler_.now() - Machine::silentAfter) {
            connection = {.generation = connection.generation + 1};
        }
    }
    for (std::size_t piece = 0; piece < pieceCount; ++piece) {
        owners_[piece] = machine_.serverOf(slotIn(piece));
    }
    const bool isUsed = std::ranges::any_of(connections_, &Connection::isUp);
    while (const auto server = machine_.takeQuestion(clientTime(), isUsed)) {
        ask(*server);
    }
    if (const auto due = std::max(machine_.dueAt(isUsed), clientTime()); due != timerAt_) {
        timerAt_ = due;
        if (due != TimePoint::max()) {
            scheduler_.at(due.time_since_epoch() - std::chrono::hours(1), [this, due] {
                if (due == timerAt_) {
                    timerAt_ = TimePoint::max();
                    work();
                }
            });
        }
    }
}

void ClusterWorld::ask(Server server)
{
    const TimePoint now = clientTime();
    const bool isAfterAnother = askedAt_ != TimePoint::min() && machine_.state() != Machine::State::searching;
    trace_("client", "asks {}", nodeOf(server));
    if ((owing_ != Machine::entry && now < askedAt_ + Machine::silentAfter) ||
        (isAfterAnother && !mayHurry_ && now < askedAt_ + Machine::askAgainAfter)) {
        throw Violation("C2 one question at a time", fmt::format("another after {} us", (now - askedAt_) / 1us));
    }
    owing_ = server;
    mayHurry_ = false;
    askedAt_ = now;
    after(within(100us, longestWay), [this, server, now] { awaitTable(server, now); });
}

/// A node that stands still answers when it goes on.
void ClusterWorld::awaitTable(Server server, TimePoint askedAt)
{
    if (machine_.at(server).host.empty()) { // its connections have ended meanwhile
        return failed(server);
    }
    const auto node = nodeOf(server);
    if (!nodes_[node].isAlive) {
        return after(1ms, [this, server] {
            lost(server, connections_[server].generation);
            failed(server);
        });
    }
    if (!answers(node)) {
        return clientTime() > askedAt + patience
                   ? failed(server)
                   : after(longestWay, [this, server, askedAt] { awaitTable(server, askedAt); });
    }
    after(within(100us, longestWay), [this, server, node, askedAt, table = tableOf(node)] {
        connected(server);
        told(server, node, table, askedAt);
    });
}

void ClusterWorld::told(Server server, std::size_t node, const detail::ClusterTable& table, TimePoint askedAt)
{
    owing_ = owing_ == server ? Machine::entry : owing_;
    const auto before = machine_.count();
    const bool isOwn = machine_.told(server, table, askedAt, clientTime());
    trace_("client", "is told by {}{}", node, isOwn ? "" : ", a stranger");
    if (isOwn == nodes_[node].isStranger) {
        throw Violation("C1 of its own cluster",
                        fmt::format("the table of {} was {}", node, isOwn ? "used" : "refused"));
    }
    if (!isOwn) {
        return failed(server);
    }
    ++tables_;
    // once where no other seemed better, and as long as the node itself does not know that it is cut off
    const bool isMisled = !isReached(node);
    const bool mayBe = !wasMisled_ || scheduler_.now() >= nodes_[node].downUntil;
    disturbedAt_ = isMisled && mayBe ? scheduler_.now() : disturbedAt_;
    wasMisled_ = isMisled;
    if (askedAt < tableFrom_) {
        for (std::size_t piece = 0; piece < pieceCount; ++piece) {
            if (machine_.serverOf(slotIn(piece)) != owners_[piece]) {
                throw Violation("C4 no table from before another", fmt::format("piece {}", piece));
            }
        }
        return work();
    }
    tableFrom_ = askedAt;
    listed_.clear();
    for (const auto& each : table.nodes) {
        listed_.insert(each.announced.port - firstPort);
    }
    heardOf_.insert(listed_.begin(), listed_.end());
    std::erase_if(named_, [askedAt](const auto& each) { return each.second.at <= askedAt; });
    checkNamed();
    if (machine_.count() > before) {
        checkNumbers(false);
    }
    work();
}

void ClusterWorld::failed(Server server)
{
    owing_ = owing_ == server ? Machine::entry : owing_;
    machine_.failed(server, clientTime());
    work();
}

// --- The client: requests -------------------------------------------------------------------------------------------

void ClusterWorld::request()
{
    after(faults_ ? within(1ms, 7ms) : within(20ms, 80ms), [this] { request(); });
    send(below(pieceCount), false);
}

/// @param asks whether it was to go to another node this once
void ClusterWorld::send(std::size_t piece, bool asks)
{
    const auto slot = slotIn(piece);
    const Server target = asks ? machine_.targetOf(slot) : Machine::entry;
    const bool isAsking = target != Machine::entry;
    const Server owner = machine_.serverOf(slot);
    const Server server = isAsking ? target : owner == Machine::entry ? machine_.any() : owner;
    if (server == Machine::entry) {
        machine_.search();
        return work();
    }
    const auto node = nodeOf(server);
    if (!isAsking) {
        checkPlace(piece, node);
    }
    auto& connection = connections_[server];
    if (scheduler_.now() >= connection.notBefore) {
        connection.owesSince = std::min(connection.owesSince, scheduler_.now());
        after(within(100us, longestWay), [this, server, generation = connection.generation, piece, isAsking] {
            arrive(server, generation, piece, isAsking);
        });
    }
}

/// The rules of a request.
void ClusterWorld::checkPlace(std::size_t piece, std::size_t node)
{
    if (const auto named = named_.find(piece); named != named_.end() && named->second.node != node) {
        throw Violation("C4 as redirected", fmt::format("piece {} at {}, not {}", piece, node, named->second.node));
    }
    std::set<std::size_t> all = truth_.members;
    all.insert(seeds_.begin(), seeds_.end());
    const auto silent = std::ranges::count_if(all, [this](std::size_t each) { return !answers(each); });
    VirtualTime& since = triedAt_[piece];
    since = since < disturbedAt_ ? scheduler_.now() : since;
    const bool isLate = scheduler_.now() > since + inTime + silent * Machine::silentAfter;
    if (isLate && node != truth_.owner[piece] && isAgreed(piece)) {
        throw Violation("C3 in time", fmt::format("piece {} at {}, not {}", piece, node, truth_.owner[piece]));
    }
}

void ClusterWorld::arrive(Server server, std::uint64_t generation, std::size_t piece, bool isAsking)
{
    if (generation != connections_[server].generation) {
        return;
    }
    const auto node = nodeOf(server);
    const Node& asked = nodes_[node];
    if (!asked.isAlive) {
        return lost(server, generation);
    }
    if (!answers(node)) {
        return after(asked.pausedUntil - scheduler_.now() + 1ms,
                     [this, server, generation, piece, isAsking] { arrive(server, generation, piece, isAsking); });
    }
    const Answer answer = answerOf(node, piece, isAsking);
    after(within(100us, longestWay),
          [this, server, generation, piece, answer] { answered(server, generation, piece, answer); });
}

void ClusterWorld::answered(Server server, std::uint64_t generation, std::size_t piece, Answer answer)
{
    if (generation != connections_[server].generation) {
        return;
    }
    connections_[server].owesSince = VirtualTime::max();
    connected(server);
    if (answer.kind == Kind::done) {
        ++statistics_.operations;
    } else if (answer.kind == Kind::down) {
        machine_.troubled(server, clientTime());
    } else {
        redirected(server, piece, answer.kind == Kind::ask, answer.other);
    }
    work();
    if (answer.kind == Kind::ask) {
        send(piece, true);
    }
}

void ClusterWorld::redirected(Server server, std::size_t piece, bool isOnce, std::size_t other)
{
    const auto slot = slotIn(piece);
    const auto where = announced(other);
    const auto owner = machine_.serverOf(slot);
    trace_("client", "is sent from {} to {} for piece {}{}", nodeOf(server), other, piece, isOnce ? " once" : "");
    machine_.redirected(server, {isOnce, slot, where.host, where.port}, clientTime());
    const bool isKnown = listed_.contains(other);
    mayHurry_ = mayHurry_ || !isKnown;
    if (isOnce) {
        if (machine_.serverOf(slot) != owner || (isKnown && machine_.at(machine_.targetOf(slot)) != at(other))) {
            throw Violation("C5 for one request", fmt::format("piece {}", piece));
        }
        return;
    }
    if (isKnown) {
        named_[piece] = {other, clientTime()};
    } else if (machine_.serverOf(slot) != owner) {
        named_.erase(piece);
    }
    checkNamed();
    if (machine_.state() == Machine::State::settled) {
        throw Violation("C4 as redirected", "nobody is asked why");
    }
}

void ClusterWorld::checkNamed() const
{
    for (const auto& [piece, named] : named_) {
        if (nodeOf(machine_.serverOf(slotIn(piece))) != named.node) {
            throw Violation("C4 as redirected", fmt::format("piece {} is not at {}", piece, named.node));
        }
    }
}

void ClusterWorld::connected(Server server)
{
    auto& connection = connections_[server];
    if (!connection.isUp) {
        connection.isUp = true;
        connection.failures = 0;
        connection.notBefore = VirtualTime{0};
        machine_.tried(server, true, clientTime());
    }
}

void ClusterWorld::lost(Server server, std::uint64_t generation)
{
    auto& connection = connections_[server];
    if (generation == connection.generation) {
        const int failures = connection.failures;
        connection = {.failures = failures + 1,
                      .notBefore = scheduler_.now() + 50ms * (1 << std::min(failures, 5)),
                      .generation = generation + 1};
        machine_.tried(server, false, clientTime());
        work();
    }
}

void ClusterWorld::watch()
{
    after(Machine::silentAfter, [this] { watch(); });
    for (Server server = 1; server < connections_.size(); ++server) {
        const auto since = connections_[server].owesSince;
        if (since != VirtualTime::max() && scheduler_.now() >= since + Machine::silentAfter) {
            machine_.troubled(server, clientTime());
        }
    }
    work();
}

void ClusterWorld::letGo()
{
    after(2s, [this] { letGo(); });
    for (Server server = 1; server < machine_.count(); ++server) {
        if (!machine_.ownsSlots(server)) {
            machine_.release(server);
        }
        if (machine_.at(server).host.empty()) {
            connections_[server] = {.generation = connections_[server].generation + 1};
        }
    }
}

/// Which node has that number.
std::size_t ClusterWorld::nodeOf(Server server) const
{
    const auto& place = machine_.at(server);
    const std::size_t node = place.port - firstPort;
    if (!heardOf_.contains(node) || place != at(node)) {
        throw Violation("C1 where it was told", fmt::format("{}:{}", place.host, place.port));
    }
    return node;
}

void ClusterWorld::checkNumbers(bool isAtEnd) const
{
    for (Server server = 1; server < machine_.count(); ++server) {
        const bool isSeed = server <= seeds_.size();
        if (isSeed                             ? machine_.at(server) != at(seeds_[server - 1U])
            : machine_.at(server).host.empty() ? !isAtEnd
                                               : isAtEnd && !listed_.contains(nodeOf(server))) {
            throw Violation("C7 numbers are used again", fmt::format("{} of {}", server, machine_.count()));
        }
    }
}

} // namespace redislock::simulation
