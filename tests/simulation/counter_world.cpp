#include "simulation/counter_world.hpp"

#include "core/counter/permit_requests.hpp"
#include "redislock/lease_time.hpp"
#include "wire/key_schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace redislock::simulation {

using namespace std::chrono_literals;

namespace {

constexpr VirtualTime longestLease = 10s; ///< that expires

bool isLatch(const std::string& name)
{
    return name.starts_with("gate");
}

} // namespace

/// Shows each request to the checkers.
class CounterWorld::Watch final : public Witness {
public:
    explicit Watch(CounterWorld& world) noexcept : world_(world) {}

    void copied(const Request& /*request*/) override {}
    void before(const Request& /*request*/, VirtualTime /*now*/) override {}
    void after(const Request& request, const Reply& reply, VirtualTime now) override
    {
        if (request.verb == Request::Verb::script && !(reply.isError() && reply.text.starts_with("NOSCRIPT"))) {
            world_.executed(request, reply, now);
        }
    }

private:
    CounterWorld& world_;
};

CounterWorld::CounterWorld(LuaRuntime& lua, std::uint64_t seed, bool traced, CounterSabotage sabotage)
    : Stage(seed, traced, Fault::requestDoubled),
      workload_(chance_),
      threads_(1 + static_cast<std::size_t>(chance_.unit() * 3)),
      server_(lua, pushTo(0)),
      permits_(server_.keyspace()),
      latches_(server_.keyspace()),
      locks_(server_.keyspace()),
      polls_(scheduler_, [this](const std::string& name) { return waiters(name); }),
      watch_(std::make_unique<Watch>(*this)),
      sabotage_(std::move(sabotage))
{
    addServer(server_, *watch_);
    processes_.resize(2 + static_cast<std::size_t>(chance_.unit() * 3));
    for (std::size_t i = 0; i < processes_.size(); ++i) {
        Config config;
        config.commandTimeout = oneOf({100ms, 500ms, 3000ms});
        config.connectTimeout = oneOf({100ms, 500ms, 3000ms});
        config.unreachableAfter = oneOf({1000ms, 3000ms, 10'000ms});
        config.pollInterval = oneOf({100ms, 1000ms, 10'000ms});
        configs_.push_back(config);
    }
    startProcesses(processes_.size());
}

CounterWorld::~CounterWorld() = default;

void CounterWorld::populate(std::size_t index)
{
    Process& process = processes_[index];
    process.client = SimClient::make(SimClient::World{scheduler_, network(0), locks_, trace_}, host(index),
                                     configs_[index], {}, chance_.next());
    const CounterActor::World world{scheduler_, permits_, latches_, trace_, statistics_};
    for (std::size_t i = 0; i < threads_; ++i) {
        process.actors.push_back(
            std::make_unique<CounterActor>(world, *process.client, workload_, i + 1, chance_.next()));
    }
}

/// Nobody gives back the permits without a lease of a crashed process: some semaphores are replaced, so that permits
/// remain.
void CounterWorld::depopulate(std::size_t index)
{
    permits_.mayKeep(host(index)->name());
    processes_[index].actors.clear();
    processes_[index].client.reset();
    for (auto& subject : workload_.subjects) {
        subject.generation += subject.kind != CounterKind::countDownLatch && chance_.unit() < 0.5 ? 1 : 0;
    }
}

void CounterWorld::tellSituations(std::size_t index, std::size_t /*server*/, const TellSituation& tell) const
{
    const Process& process = processes_[index];
    process.client->forEachSituation([&tell](Situation situation, const std::string&) { tell(situation); });
    for (const auto& actor : process.actors) {
        if (actor->operation() != nullptr && actor->operation()->situation()) {
            tell(*actor->operation()->situation());
        }
    }
}

// --- Changes by other programs
// --------------------------------------------------------------------------------------------------

void CounterWorld::takenAway(CounterWorkload::Subject& subject)
{
    for (std::uint32_t i = 1; i <= subject.generation; ++i) {
        auto old = subject;
        old.generation = i;
        isLatch(old.name()) ? latches_.excuse(old.name()) : permits_.excuse(old.name());
    }
    ++subject.generation;
}

void CounterWorld::dataLost(std::size_t /*server*/)
{
    for (auto& subject : workload_.subjects) {
        takenAway(subject);
    }
}

/// Other programs delete a counter. They cannot take away its time to live, since it has none.
void CounterWorld::touchKey(std::size_t /*server*/, Fault fault)
{
    if (fault == Fault::keyDeleted) {
        auto& subject =
            workload_
                .subjects[static_cast<std::size_t>(chance_.unit() * static_cast<double>(workload_.subjects.size()))];
        server_.keyspace().erase(subject.name());
        takenAway(subject);
    }
}

// --- The server ------------------------------------------------------------------------------------------------------

void CounterWorld::executed(const Request& request, const Reply& reply, VirtualTime now)
{
    if (isLatch(request.name)) {
        latches_.executed(request, reply, now);
    } else {
        permits_.executed(request, reply, now);
    }
    if (request.script == &detail::scripts::semaphoreWithdraw) {
        withdrawn_.insert(recordOf(request));
    }
    const auto value = numberAt(server_.keyspace(), request.name, now);
    constexpr auto enough = std::numeric_limits<std::int64_t>::max();
    polls_.executed(request.name, !isLatch(request.name) ? value : value == 0 ? enough : -1);
    for (const auto& record : request.otherKeys) {
        const auto* kept = server_.keyspace().find(record, millisecondOf(now));
        if (kept != nullptr && record.starts_with("redislock_request") && !kept->expiresAtMs) {
            throw Violation("R4 no key without time to live", record);
        }
    }
}

std::vector<PollChecker::Waiter> CounterWorld::waiters(const std::string& name) const
{
    std::vector<PollChecker::Waiter> found;
    for (std::size_t i = 0; i < processes_.size(); ++i) {
        if (!isAlive(i)) {
            continue;
        }
        for (const auto& actor : processes_[i].actors) {
            const auto* wait = actor->waiting();
            if (wait != nullptr && wait->waitsFor(name)) {
                const VirtualTime poll = configs_[i].pollInterval;
                found.push_back({actor->waitName(), wait->permits(), poll + poll / 50 + 500ms});
            }
        }
    }
    return found;
}

// --- The phases ------------------------------------------------------------------------------------------------------

void CounterWorld::run()
{
    runWithFaults(200 + static_cast<std::uint64_t>(chance_.unit() * 100));
    endFaults();
    runCalm();
    stopAll();
    askAll();
    commit(sabotage_.beforeResidue);
    checkResidue();
}

void CounterWorld::commit(const CounterSabotage::Deed& deed)
{
    if (deed) {
        deed({scheduler_, server_, *processes_.front().client, workload_});
    }
}

/// Work goes on. One more process may crash; all messages may be lost: then polling must be enough.
void CounterWorld::runCalm()
{
    trace_("world", "everything must work");
    runUntil(scheduler_.now() + longestTrouble);
    polls_.begin();
    network(0).setSilent(chance_.unit() < 0.5);
    const auto index = anyProcess();
    const bool ends = chance_.unit() < 0.5;
    if (ends) {
        crash(index);
    }
    runUntil(scheduler_.now() + longestAbsence + 100ms);
    commit(sabotage_.whenCalm);
    runUntil(scheduler_.now() + 3s);
    if (ends) {
        endInOrder(index);
        runUntil(scheduler_.now() + longestAbsence + 100ms);
    }
}

/// A process that always had a connection removes the records of its requests at its end.
void CounterWorld::endInOrder(std::size_t index)
{
    Process& process = processes_[index];
    const auto name = host(index)->name();
    const bool isAtRest =
        std::ranges::all_of(process.actors, [](const auto& actor) { return actor->operation() == nullptr; });
    trace_(name, "ends");
    process.client->close();
    for (const auto& actor : process.actors) {
        actor->stop();
    }
    for (const auto end = scheduler_.now() + 5s; process.client->core().isAnythingUnderWay();) {
        if (scheduler_.now() >= end) {
            throw Violation("T7 calls end in time", name + " does not come to its end");
        }
        runUntil(scheduler_.now() + 1ms);
    }
    const auto isRecord = [&](const auto& key) {
        return key.first.starts_with("redislock_request") && processOfRecord(key.first) == name &&
               !withdrawn_.contains(key.first) &&
               server_.keyspace().find(key.first, millisecondOf(scheduler_.now())) != nullptr;
    };
    if (isAtRest && std::ranges::any_of(server_.keyspace().keys(), isRecord)) {
        throw Violation("R1 nothing is left", "a record of " + name);
    }
    crash(index);
}

void CounterWorld::stopAll()
{
    trace_("world", "all threads stop");
    for (auto& process : processes_) {
        for (auto& actor : process.actors) {
            actor->stop();
        }
    }
    const auto isIdle = [](const Process& process) {
        return std::ranges::all_of(process.actors, [](const auto& actor) { return actor->isIdle(); }) &&
               process.client->residue().empty();
    };
    const auto end = scheduler_.now() + 60s + 3 * longestLease;
    while (!std::ranges::all_of(processes_, isIdle)) {
        if (scheduler_.now() >= end) {
            throw Violation("T9 recovery", "a thread did not come to its end");
        }
        runUntil(scheduler_.now() + 10ms);
    }
    runUntil(scheduler_.now() + longestLease + 1s); // until the leases of a crashed process are over
}

/// Asking for the number of permits frees permits whose leases are over.
void CounterWorld::askAll()
{
    SimClient& client = *processes_.front().client;
    for (auto subject : workload_.subjects) {
        for (; subject.kind == CounterKind::permitExpirableSemaphore && subject.generation > 0; --subject.generation) {
            const auto counter = client.counter(subject.kind, subject.name());
            counter->askUnawaited(detail::countRequest(*counter, 1, 0).call);
        }
    }
    runUntil(scheduler_.now() + 1s);
}

void CounterWorld::checkResidue()
{
    trace_("world", "nothing may be left");
    for (std::size_t i = 0; i < processes_.size(); ++i) {
        if (processes_[i].client->gaveUp()) {
            permits_.mayKeep(host(i)->name());
        }
    }
    permits_.expectAllFree(scheduler_.now());
    latches_.expectAllCounted();
    for (const auto& process : processes_) {
        if (const auto left = process.client->residue(); !left.empty()) {
            throw Violation("R1 nothing is left", left);
        }
    }
    if (server_.subscriptions() != 0) {
        throw Violation("R1 nothing is left", "a subscription");
    }
    const auto end = millisecondOf(scheduler_.now() + maxLease); // no answer is kept for longer
    for (const auto& [name, key] : server_.keyspace().keys()) {
        if (server_.keyspace().find(name, end) != nullptr && name.starts_with("redislock_request")) {
            throw Violation("R1 nothing is left", name);
        }
    }
}

} // namespace redislock::simulation
