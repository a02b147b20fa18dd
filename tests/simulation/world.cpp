// The phases of a run, and waking.
#include "simulation/world.hpp"

#include "simulation/one_of.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace redislock::simulation {

using namespace std::chrono_literals;

namespace {

constexpr double calm = 100; ///< the pace while only time has to pass

Config drawConfig(Random& chance)
{
    Config config;
    config.watchdogTimeout = oneOf(chance, {300ms, 1000ms, 3000ms, 10'000ms, 30'000ms});
    config.commandTimeout = oneOf(chance, {100ms, 500ms, 3000ms});
    config.connectTimeout = oneOf(chance, {100ms, 500ms, 3000ms});
    config.unreachableAfter = oneOf(chance, {1000ms, 3000ms, 10'000ms});
    config.maxHold = oneOf(chance, {0ms, std::chrono::milliseconds::max()});
    // Seldom the shortest and the longest: many requests, and minutes behind a dead waiter's place.
    config.pollInterval = oneOf(chance, {100ms, 1000ms, 1000ms, 1000ms, 10'000ms, 10'000ms, 10'000ms,
                                         std::chrono::duration_cast<std::chrono::milliseconds>(longestPoll)});
    config.turn = oneOf(chance, {0us, 700us, 5000us, 20'000us});
    return config;
}

} // namespace

World::World(LuaRuntime& lua, std::uint64_t seed, bool traced, Sabotage sabotage)
    : chance_(seed),
      trace_(scheduler_, traced),
      plan_(chance_),
      workload_(chance_),
      threads_(1 + static_cast<std::size_t>(chance_.unit() * 3)),
      server_(lua, [this](LinkId link, const Reply& message) { network_.push(link, message); }),
      checker_(server_.keyspace()),
      network_(scheduler_, chance_, plan_, checker_, trace_, *this),
      wakeUps_(
          scheduler_, server_.keyspace(),
          [this](const std::string& name, VirtualTime since, WakeUpChecker::Who who) {
              return waiterSince(name, since, who);
          },
          [this](const std::string& name, const std::string& holder) { return waitsAs(name, holder); }),
      sabotage_(std::move(sabotage))
{
    network_.attach(server_);
    processes_.resize(2 + static_cast<std::size_t>(chance_.unit() * 3));
    for (std::size_t i = 0; i < processes_.size(); ++i) {
        configs_.push_back(drawConfig(chance_));
        if (workload_.keepsPlaces()) { // a place behind a long-lived place lives longer too
            configs_[i].pollInterval = configs_[0].pollInterval;
            deadKeep_ = (detail::AcquireFlow::placesKept + 1) * configs_[0].pollInterval;
        }
        longestLease_ = std::max<VirtualTime>({longestLease_, configs_[i].watchdogTimeout, 10s});
        longestTimeout_ =
            std::max<VirtualTime>({longestTimeout_, configs_[i].commandTimeout, configs_[i].connectTimeout});
        start(i);
    }
}

/// A process begins, the first of its place or after a crash.
void World::start(std::size_t index)
{
    Process& process = processes_[index];
    const auto drift = oneOf(chance_, {-DriftingClock::mostDrift, std::int64_t{0}, DriftingClock::mostDrift,
                                       static_cast<std::int64_t>(chance_.unit() * 200) - DriftingClock::mostDrift});
    const DriftingClock clock(VirtualTime(static_cast<std::int64_t>(chance_.unit() * 1e15)), drift);
    process.host = std::make_shared<Host>(scheduler_, fmt::format("client{}.{}", index, ++process.incarnation), clock,
                                          chance_.next());
    process.client = SimClient::make(SimClient::World{scheduler_, network_, checker_, trace_}, process.host,
                                     configs_[index], workload_.views, chance_.next());
    trace_(process.host->name(), "starts: watchdog {} ms, command {} ms, poll {} ms, drift {}",
           configs_[index].watchdogTimeout.count(), configs_[index].commandTimeout.count(),
           configs_[index].pollInterval.count(), drift);
    for (std::size_t i = 0; i < threads_; ++i) {
        process.actors.push_back(
            std::make_unique<Actor>(*process.client, workload_, i + 1, chance_.next(), statistics_));
    }
}

void World::crash(std::size_t index)
{
    Process& process = processes_[index];
    if (!process.isAlive()) {
        return;
    }
    process.host->crash();
    network_.drop(*process.host);
    process.actors.clear();
    process.client.reset();
    scheduler_.at(scheduler_.now() + duration(longestAbsence), [this, index] { start(index); });
}

void World::endInOrder(std::size_t index, VirtualTime patience, bool isCalm)
{
    Process& process = processes_[index];
    if (!process.isAlive()) {
        return;
    }
    trace_(process.host->name(), "ends");
    for (auto& actor : process.actors) {
        actor->stop();
    }
    awaitEnd(index, process.client->close(), scheduler_.now() + patience, isCalm);
}

/// Waits until nothing of the process is under way any more, or its time is over.
void World::awaitEnd(std::size_t index, const std::vector<std::string>& held, VirtualTime until, bool isCalm)
{
    Process& process = processes_[index];
    const auto incarnation = process.incarnation;
    const bool isOver = !process.client->core().isAnythingUnderWay();
    if (!isOver && scheduler_.now() < until) {
        return scheduler_.at(scheduler_.now() + 1ms, [this, index, held, until, isCalm, incarnation] {
            if (processes_[index].isAlive() && processes_[index].incarnation == incarnation) {
                awaitEnd(index, held, until, isCalm);
            }
        });
    }
    if (isCalm) {
        if (!isOver) {
            throw Violation("T7 calls end in time", process.host->name() + " does not come to its end");
        }
        expectNothingLeft(process, held);
    }
    crash(index);
}

/// Except the holds at its end. In a read lock a hold that is over remains visible as long as others read.
void World::expectNothingLeft(const Process& process, const std::vector<std::string>& held)
{
    const auto own = process.client->core().id + ":";
    for (const auto& name : workload_.names()) {
        const auto* key = server_.keyspace().find(name, millisecondOf(scheduler_.now()));
        if (key == nullptr || key->find("mode") != nullptr) {
            continue;
        }
        for (std::size_t i = 0; i < key->fields.size(); ++i) {
            const auto& holder = key->fields[i].first;
            if (holder.starts_with(own) && std::ranges::find(held, holder) == held.end()) {
                throw Violation("S7 no residue", fmt::format("{} still has {} behind its end", holder, name));
            }
        }
    }
}

void World::run()
{
    runWithFaults();
    settle();
    runWithout();
    commit(sabotage_.beforeStop);
    stopAll();
    commit(sabotage_.beforeProbes);
    probeAll();
    commit(sabotage_.beforeResidue);
    checkResidue();
}

void World::commit(const Sabotage::Deed& deed)
{
    if (deed) {
        deed({scheduler_, server_, network_, checker_, *processes_.front().client});
    }
}

void World::runUntil(VirtualTime end)
{
    while (scheduler_.step(end)) {
        ++statistics_.events;
    }
}

void World::runWithFaults()
{
    for (std::size_t fault = static_cast<std::size_t>(Fault::connectionCut); fault < faultCount; ++fault) {
        scheduleFault(static_cast<Fault>(fault));
    }
    const auto operations = 200 + static_cast<std::uint64_t>(chance_.unit() * 100);
    runUntil(2s);
    while (statistics_.operations < operations && scheduler_.now() < 60s) {
        runUntil(scheduler_.now() + 100ms);
    }
}

/// Runs without new faults until lasting faults, everything under way, and all leases without a user are over.
void World::settle()
{
    trace_("world", "no more faults");
    faults_ = false;
    workload_.pace = calm;
    network_.setFaults(false);
    runUntil(scheduler_.now() + longestTrouble + longestDelay);
    for (const auto& name : workload_.names()) { // an operator frees locks that nobody else would free
        if (const auto* key = server_.keyspace().find(name, millisecondOf(scheduler_.now()));
            key != nullptr && !key->expiresAtMs) {
            checker_.excuse(name);
            server_.keyspace().erase(name);
        }
    }
    runUntil(scheduler_.now() + longestLease_ + longestLease_ / 50 + 4 * longestTimeout_ + 5s);
}

/// Work goes on, and everything that must work without faults has to work. One more process may crash.
void World::runWithout()
{
    trace_("world", "everything must work");
    wakeUps_.begin(deadKeep_);
    workload_.pace = 1;
    for (const auto& process : processes_) {
        if (!process.isAlive()) {
            throw Violation("world", "a process did not come back");
        }
    }
    const double end = chance_.unit();
    if (end < 0.4) {
        crash(anyProcess());
    } else if (end < 0.8) {
        endInOrder(anyProcess(), 5s, true);
    }
    runUntil(scheduler_.now() + longestAbsence + 5s);
    if (chance_.unit() < 0.3) { // leases run out, and holds are renewed
        workload_.pace = calm;
        runUntil(scheduler_.now() + longestLease_ + 3s);
    }
}

void World::stopAll()
{
    trace_("world", "all threads stop");
    const auto isIdle = [](const Process& process) {
        return std::all_of(process.actors.begin(), process.actors.end(),
                           [](const auto& actor) { return actor->isIdle(); });
    };
    for (auto& process : processes_) {
        for (auto& actor : process.actors) {
            actor->stop();
        }
    }
    const auto end = scheduler_.now() + 2 * longestLease_ + 60s + 2 * deadKeep_;
    while (!std::all_of(processes_.begin(), processes_.end(), isIdle)) {
        if (scheduler_.now() >= end) {
            throw Violation("T9 recovery", "a thread did not come to its end");
        }
        runUntil(scheduler_.now() + 10ms);
    }
}

/// Lets every process lock and unlock every name once.
void World::probeAll()
{
    runUntil(scheduler_.now() + longestLease_ + longestLease_ / 50 + deadKeep_); // the leases of a crashed process
    for (auto& process : processes_) {
        for (std::size_t view = 0; view < workload_.views.size(); ++view) {
            Actor& actor = *process.actors.front();
            const auto end = scheduler_.now() + 500ms;
            actor.probe(view);
            while (!actor.isIdle() && scheduler_.now() < end) {
                runUntil(scheduler_.now() + 5ms);
            }
            if (!actor.isIdle()) {
                throw Violation("T9 recovery", fmt::format("{} could not lock and unlock {} in half a second",
                                                           process.host->name(), workload_.views[view].name));
            }
        }
    }
}

void World::checkResidue()
{
    runUntil(scheduler_.now() + longestLease_ + 5s);
    if (workload_.keepsPlaces()) {
        runUntil(scheduler_.now() + deadKeep_ + 10min); // the keys of an idle queue, which last longer than a writer's
    }
    for (const auto& [name, key] : server_.keyspace().keys()) {
        const bool isCounter = !key.expiresAtMs && name.starts_with(detail::tokenPrefix); // it outlasts every holder
        if (!isCounter && server_.keyspace().find(name, millisecondOf(scheduler_.now())) != nullptr) {
            throw Violation("S7 no residue", fmt::format("{} is still there: {}", name, key.fields.at(0).first));
        }
    }
    for (auto& process : processes_) {
        if (const auto left = process.client->residue(); !left.empty()) {
            throw Violation("R1 no residue", fmt::format("{} has{}", process.host->name(), left));
        }
    }
    if (server_.subscriptions() != 0) {
        throw Violation("R1 no residue", fmt::format("the server has {} subscriptions", server_.subscriptions()));
    }
}

// --- Waking ----------------------------------------------------------------------------------------------------------

void World::executed(const Request& request, const Reply& reply)
{
    const bool granted = reply.kind == Reply::Kind::nil || reply.kind == Reply::Kind::array;
    if (request.does(&detail::KindTraits::lock) && granted &&
        std::exchange(lastHolder_[request.name], request.arguments[0]) != request.arguments[0]) {
        ++statistics_.handOvers;
    }
    const std::string& passedTo = checker_.passedTo();
    if (!passedTo.empty() && std::exchange(lastHolder_[request.name], passedTo) != passedTo) {
        ++statistics_.handOvers;
    }
    wakeUps_.executed(request, reply, passedTo);
    queues_.executed(request, reply, checker_.hadIt(request), passedTo, millisecondOf(scheduler_.now()));
}

/// Whether a thread waits for the name as that holder.
bool World::waitsAs(const std::string& name, const std::string& holder)
{
    bool found = false;
    for (auto& process : processes_) {
        for (std::size_t i = 0; process.isAlive() && i < workload_.views.size(); ++i) {
            const NamedLock& named = process.client->named(i);
            if (named.name == name) {
                named.waiters.forEach(
                    [&](const Waiter& waiter) { found = found || process.client->holderOf(*waiter.hold) == holder; });
            }
        }
    }
    return found;
}

/// A process with a thread that has waited for the name since then or longer.
std::string World::waiterSince(const std::string& name, VirtualTime since, WakeUpChecker::Who who)
{
    for (auto& process : processes_) {
        for (std::size_t i = 0; process.isAlive() && i < workload_.views.size(); ++i) {
            const NamedLock& named = process.client->named(i);
            const bool reads = named.traits().asking == detail::Asking::each;
            if (named.name != name || (who == WakeUpChecker::Who::readers && !reads) ||
                process.host->now() < named.local.validUntil()) {
                continue; // its own hold was ended by force: the thread will learn of it
            }
            const Waiter* head = named.waiters.head();
            if (head != nullptr && process.host->trueTime(head->joined) <= since) {
                return process.host->name();
            }
        }
    }
    return {};
}

} // namespace redislock::simulation
