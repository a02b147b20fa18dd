#include "simulation/route_world.hpp"

#include "simulation/safety_checker.hpp"

#include <algorithm>

namespace redislock::simulation {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t serverCount = 3;
constexpr std::size_t watcherCount = 4;
constexpr VirtualTime faultsFor = 40s;
constexpr VirtualTime calmFor = 16s;
constexpr VirtualTime longestAnswer = 40ms; ///< of a Sentinel or a server that answers at all

} // namespace

RouteWorld::RouteWorld(std::uint64_t seed, bool traced)
    : chance_(seed),
      trace_(scheduler_, traced),
      tellEpochs_(chance_.unit() < 0.7),
      servers_(serverCount),
      watchers_(watcherCount)
{
    servers_[0].isMaster = true;
    servers_[0].epoch = 1;
    for (auto& each : watchers_) {
        each.tellsEpoch = tellEpochs_;
    }
    if (isLikely(0.5)) {
        watchers_[static_cast<std::size_t>(chance_.unit() * 3)].lies = true;
    }
    for (std::size_t i = 0; i + 1 < watcherCount; ++i) {
        route_.add(watcherAt(i), true);
    }
}

redislock::Endpoint RouteWorld::at(std::size_t server)
{
    return {"server", static_cast<std::uint16_t>(server + 1), {}};
}

redislock::Endpoint RouteWorld::watcherAt(std::size_t watcher)
{
    return {"watcher", static_cast<std::uint16_t>(watcher + 1), {}};
}

VirtualTime RouteWorld::within(VirtualTime least, VirtualTime most)
{
    return least + VirtualTime(static_cast<std::int64_t>(chance_.unit() * static_cast<double>((most - least).count())));
}

bool RouteWorld::answersAsMaster(std::size_t server) const
{
    const Server& asked = servers_[server];
    return asked.isAlive && asked.isMaster && scheduler_.now() >= asked.pausedUntil;
}

void RouteWorld::run()
{
    work();
    after(within(1s, 4s), [this] { failOver(); });
    after(within(0s, 5s), [this] { killWatcher(); });
    while (scheduler_.step(faultsFor)) {
        ++statistics_.events;
    }
    endFaults();
    while (scheduler_.step(faultsFor + calmFor / 2)) {
        ++statistics_.events;
    }
    const auto asked = questions_;
    while (scheduler_.step(faultsFor + calmFor)) {
        ++statistics_.events;
    }
    if (used_ != leader_ || route_.state() != detail::SentinelRoute::State::settled) {
        throw Violation("R4 at the master",
                        fmt::format("the client is at {}, not at {}", used_ ? *used_ : 99, leader_));
    }
    if (questions_ - asked > static_cast<std::uint64_t>(calmFor / 2 / 1s) + 2) {
        throw Violation("R4 one question a second", fmt::format("{} in {} s", questions_ - asked, calmFor / 2 / 1s));
    }
}

// --- Servers and Sentinels -------------------------------------------------------------------------------------------

void RouteWorld::failOver()
{
    if (!faults_) {
        return;
    }
    std::vector<std::size_t> deputies;
    for (std::size_t i = 0; i < serverCount; ++i) {
        if (i != leader_ && servers_[i].isAlive && scheduler_.now() >= servers_[i].pausedUntil) {
            deputies.push_back(i);
        }
    }
    after(within(1s, 9s), [this] { failOver(); });
    if (deputies.empty()) {
        return;
    }
    ++statistics_.faults;
    const auto next = deputies[static_cast<std::size_t>(chance_.unit() * static_cast<double>(deputies.size()))];
    const auto old = leader_;
    const double fate = chance_.unit();
    if (fate < 0.4) { // by command
        leave(old, within(0s, 10s));
        return promote(next);
    }
    if (fate < 0.7) { // it dies, and comes back empty
        trace_("server", "{} dies", old);
        servers_[old].isAlive = false;
        servers_[old].diedAt = scheduler_.now();
        after(within(500ms, 8s), [this, old] { servers_[old].isAlive = true; });
    } else {
        trace_("server", "{} stands still", old);
        servers_[old].pausedUntil = scheduler_.now() + within(600ms, 6s);
    }
    leave(old, within(2s, 12s));
    after(within(500ms, 2s), [this, next] { promote(next); });
}

/// From now on the server is an old master, which takes itself for one for a while.
void RouteWorld::leave(std::size_t server, VirtualTime zombieFor)
{
    const auto epoch = servers_[server].epoch;
    after(zombieFor, [this, server, epoch] {
        if (servers_[server].epoch == epoch && server != leader_) {
            trace_("server", "{} becomes a replica", server);
            servers_[server].wasMasterAt = scheduler_.now();
            servers_[server].isMaster = false;
        }
    });
}

void RouteWorld::promote(std::size_t server)
{
    if (!faults_ || !servers_[server].isAlive || server == leader_) {
        return;
    }
    leader_ = server;
    servers_[server].isMaster = true;
    servers_[server].epoch = ++epoch_;
    trace_("server", "{} becomes the master, epoch {}", server, epoch_);
    for (std::size_t i = 0; i < watcherCount; ++i) {
        if (!watchers_[i].lies) {
            after(within(0s, 2s), [this, i, server, epoch = epoch_] { learn(i, server, epoch); });
        }
    }
}

/// @param epoch perhaps of an earlier fail-over than the last one
void RouteWorld::learn(std::size_t watcher, std::size_t server, std::uint64_t epoch)
{
    Watcher& knows = watchers_[watcher];
    if (!knows.isAlive || epoch < knows.epoch) {
        return;
    }
    knows.view = server;
    knows.epoch = epoch;
    knows.livesUntil = scheduler_.now() + 500ms;
    after(400ms, [this, server, epoch, wasReachable = answersAsMaster(server)] {
        const bool isGone = used_ && !servers_[*used_].isAlive && scheduler_.now() - servers_[*used_].diedAt > 1s;
        if (tellEpochs_ && isGone && epoch == epoch_ && wasReachable && answersAsMaster(server)) {
            throw Violation("R5 no event needed", fmt::format("the client is at {}, which is dead", *used_));
        }
    });
    const bool isLate = epoch < epoch_;               // without epochs nobody can tell
    if ((tellEpochs_ || !isLate) && isLikely(0.85)) { // else the event is lost
        after(within(0ms, 20ms), [this, watcher, server, epoch] { heard(watcher, server, epoch); });
    }
}

void RouteWorld::killWatcher()
{
    if (!faults_) {
        return;
    }
    const auto which = static_cast<std::size_t>(chance_.unit() * watcherCount);
    if (watchers_[which].isAlive && scheduler_.now() >= watchers_[which].livesUntil) {
        trace_("watcher", "{} dies", which);
        const auto pause = within(200ms, 6s);
        watchers_[which].isAlive = false;
        watchers_[which].backAt = scheduler_.now() + pause;
        ++statistics_.faults;
        after(pause, [this, which] {
            watchers_[which].isAlive = true;
            if (!watchers_[which].lies) {
                watchers_[which].view = leader_;
                watchers_[which].epoch = epoch_;
            }
            if (which < route_.count() && isLikely(0.7)) {
                route_.missed(which);
                work();
            }
        });
    }
    after(within(500ms, 6s), [this] { killWatcher(); });
}

void RouteWorld::endFaults()
{
    faults_ = false;
    for (std::size_t i = 0; i < serverCount; ++i) {
        servers_[i].isAlive = true;
        servers_[i].pausedUntil = VirtualTime{0};
        servers_[i].isMaster = i == leader_;
    }
    for (auto& each : watchers_) {
        each.isAlive = true;
        if (!each.lies) {
            each.view = leader_;
            each.epoch = epoch_;
        }
    }
}

// --- The client ------------------------------------------------------------------------------------------------------

void RouteWorld::work()
{
    while (const auto which = route_.takeQuestion(clientTime())) {
        ask(*which);
    }
    while (const auto server = route_.takeProbe(clientTime())) {
        probe(*server);
    }
    const auto* master = route_.master();
    if (master != nullptr && (!used_ || *master != at(*used_))) {
        moved();
    }
    if (const auto due = std::max(route_.dueAt(), clientTime()); due != timerAt_) {
        timerAt_ = due;
        scheduler_.at(due.time_since_epoch() - std::chrono::hours(1), [this, due] {
            if (due == timerAt_) {
                timerAt_ = TimePoint::max();
                route_.timeIsOver(clientTime());
                work();
            }
        });
    }
}

void RouteWorld::ask(std::size_t which)
{
    ++questions_;
    const auto number = static_cast<std::size_t>(route_.at(which).port - 1);
    trace_("client", "asks {}", number);
    const bool isSilent = isLikely(0.3); // if it is dead
    after(within(1ms, longestAnswer / 2), [this, which, number, isSilent] {
        const Watcher asked = watchers_[number];
        if (!asked.isAlive) {
            // a connection to one that comes back is noticed to be dead
            const auto back = asked.backAt - scheduler_.now();
            return after(isSilent ? std::clamp(back, VirtualTime(1ms), VirtualTime(3s)) : VirtualTime(1ms),
                         [this, which] {
                             route_.silent(which, clientTime());
                             work();
                         });
        }
        detail::SentinelRoute::Word word{at(asked.view), asked.tellsEpoch ? asked.epoch : 0, {}, watcherAt(number)};
        for (std::size_t i = 0; i < watcherCount; ++i) {
            if (i != number) {
                word.others.push_back(watcherAt(i));
            }
        }
        after(within(1ms, longestAnswer / 2), [this, which, number, word] {
            trace_("client", "is told by {} of {}, epoch {}", number, word.master->port - 1, word.epoch);
            route_.told(which, word, clientTime());
            work();
        });
    });
}

void RouteWorld::probe(const redislock::Endpoint& server)
{
    const auto number = static_cast<std::size_t>(server.port - 1);
    awaitProbe(server, number, scheduler_.now() + 3s);
}

/// A server that stands still answers when it goes on.
void RouteWorld::awaitProbe(const redislock::Endpoint& server, std::size_t number, VirtualTime until)
{
    after(within(1ms, longestAnswer), [this, server, number, until] {
        if (scheduler_.now() < servers_[number].pausedUntil && scheduler_.now() < until) {
            return awaitProbe(server, number, until);
        }
        const bool isMaster = answersAsMaster(number);
        trace_("client", "finds that {} is {}", number, isMaster ? "a master" : "none");
        route_.probed(server, isMaster, clientTime());
        work();
    });
}

void RouteWorld::moved()
{
    const auto server = static_cast<std::size_t>(route_.master()->port - 1);
    const Server& next = servers_[server];
    trace_("client", "goes to {}", server);
    ++statistics_.operations;
    if (!next.isMaster && scheduler_.now() - next.wasMasterAt > 2 * detail::SentinelRoute::patience) {
        throw Violation("R1 to masters only", fmt::format("{} is a replica", server));
    }
    if (tellEpochs_ && next.epoch < usedEpoch_) {
        throw Violation("R2 not back", fmt::format("to epoch {} after {}", next.epoch, usedEpoch_));
    }
    used_ = server;
    usedEpoch_ = next.epoch;
    connect(++generation_, 0);
}

void RouteWorld::connect(std::uint64_t generation, int failures)
{
    after(within(100us, 2ms), [this, generation, failures] {
        if (generation != generation_) {
            return;
        }
        const bool isUsable = answersAsMaster(*used_);
        route_.tried(at(*used_), isUsable, clientTime());
        work();
        if (generation == generation_ && isUsable) {
            watchConnection(generation);
        } else if (generation == generation_) {
            after(50ms * (1 << std::min(failures, 4)),
                  [this, generation, failures] { connect(generation, failures + 1); });
        }
    });
}

/// Looks again and again whether the connection is still of use.
void RouteWorld::watchConnection(std::uint64_t generation)
{
    after(20ms, [this, generation] {
        if (generation != generation_) {
            return;
        }
        const Server& server = servers_[*used_];
        const bool isPaused = scheduler_.now() < server.pausedUntil; // then it is noticed late, or not at all
        server.isAlive && (server.isMaster || isPaused) ? watchConnection(generation) : connect(generation, 0);
    });
}

void RouteWorld::heard(std::size_t watcher, std::size_t server, std::uint64_t epoch)
{
    for (std::size_t which = 0; which < route_.count(); ++which) {
        if (route_.at(which) != watcherAt(watcher)) {
            continue;
        }
        trace_("client", "hears of {}, epoch {}, from {}", server, epoch, watcher);
        const bool wasReachable = answersAsMaster(server);
        route_.switched(which, at(server), clientTime());
        work();
        after(250ms, [this, server, epoch, wasReachable] {
            if (wasReachable && epoch == epoch_ && answersAsMaster(server) && used_ != server) {
                throw Violation("R3 in time", fmt::format("the client is not at {}", server));
            }
        });
    }
}

} // namespace redislock::simulation
