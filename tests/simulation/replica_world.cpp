#include "simulation/replica_world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace redislock::simulation {

using namespace std::chrono_literals;
using detail::KindTraits;

namespace {

/// How long a client may take to give up what the master that answered does not have.
constexpr VirtualTime givenUpWithin = 300ms;
/// The same from when its connection was made: all holds are asked for once a second.
constexpr VirtualTime askedWithin = 1700ms;

std::int64_t numberOf(const std::string& text)
{
    std::int64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

} // namespace

ReplicaWorld::ReplicaWorld(LuaRuntime& lua, std::uint64_t seed, bool traced)
    : Stage(seed, traced, Fault::serverRestartedEmpty, 0.4),
      workload_(chance_),
      threads_(1 + static_cast<std::size_t>(chance_.unit() * 3)),
      server_(lua, pushTo(0)),
      former_(lua, pushTo(0)),
      checker_(server_.keyspace()),
      replication_(scheduler_, chance_, server_, oneOf({2U, 2U, 3U}),
                   {.applied = [this](std::size_t node, const Replication::State& state) { applied(node, state); },
                    .answerWait =
                        [this](LinkId link, std::int64_t replicas) {
                            network(0).answerWait(link, {Reply::Kind::integer, replicas, {}, {}});
                        }})
{
    using detail::LockKind;
    addServer(server_, *this);
    workload_.views = {{"stock:0", oneOf({LockKind::redisLock, LockKind::redisLock, LockKind::nonReentrantLock,
                                          LockKind::fencedLock, LockKind::fairLock})}};
    if (chance_.unit() < 0.3) {
        workload_.views.push_back({"stock:1", LockKind::redisLock});
    }
    workload_.forceUnlock = workload_.policy = 0;
    workload_.durable = oneOf({0.3, 0.6, 0.9});
    workload_.replicas = static_cast<std::uint32_t>(replication_.count());
    processes_.resize(2 + static_cast<std::size_t>(chance_.unit() * 2));
    const auto poll = oneOf({100ms, 1000ms, 5000ms});
    for (std::size_t i = 0; i < processes_.size(); ++i) {
        Config config;
        config.watchdogTimeout = oneOf({1000ms, 3000ms, 10'000ms});
        config.commandTimeout = oneOf({100ms, 500ms, 3000ms});
        config.connectTimeout = oneOf({100ms, 500ms, 3000ms});
        config.unreachableAfter = oneOf({1000ms, 3000ms, 10'000ms});
        config.pollInterval = poll;
        config.turn = oneOf({0us, 700us, 5000us, 20'000us});
        configs_.push_back(config);
        longestLease_ = std::max<VirtualTime>({longestLease_, config.watchdogTimeout, 10s});
    }
    deadKeep_ = workload_.keepsPlaces() ? (detail::AcquireFlow::placesKept + 1) * poll : 0ms;
    startProcesses(processes_.size());
}

VirtualTime ReplicaWorld::within(VirtualTime least, VirtualTime most)
{
    return least + VirtualTime(static_cast<std::int64_t>(chance_.unit() * static_cast<double>((most - least).count())));
}

// --- Processes -------------------------------------------------------------------------------------------------------

void ReplicaWorld::populate(std::size_t index)
{
    Process& process = processes_[index];
    const auto tellMe = [this](const Hold& hold, const std::string& holder, const Durability& asked) {
        told(hold, holder, asked);
    };
    process.client = SimClient::make(SimClient::World{scheduler_, network(0), checker_, trace_, tellMe}, host(index),
                                     configs_[index], workload_.views, chance_.next());
    for (std::size_t i = 0; i < threads_; ++i) {
        process.actors.push_back(
            std::make_unique<Actor>(*process.client, workload_, i + 1, chance_.next(), statistics_));
    }
}

void ReplicaWorld::depopulate(std::size_t index)
{
    processes_[index].actors.clear();
    processes_[index].client.reset();
}

void ReplicaWorld::tellSituations(std::size_t index, std::size_t /*server*/, const TellSituation& tell) const
{
    const Process& process = processes_[index];
    process.client->forEachSituation([&](Situation situation, const std::string&) { tell(situation); });
    for (const auto& actor : process.actors) {
        if (actor->operation() != nullptr && actor->operation()->situation()) {
            tell(*actor->operation()->situation());
        }
    }
}

void ReplicaWorld::troubled(std::size_t index, std::size_t /*server*/, Purpose /*purpose*/, VirtualTime until)
{
    if (processes_[index].client != nullptr) {
        auto& trouble = processes_[index].client->lastTrouble;
        trouble = std::max(trouble, until);
    }
}

void ReplicaWorld::troubleAll(VirtualTime until)
{
    for (std::size_t i = 0; i < processes_.size(); ++i) {
        troubled(i, 0, Purpose::renewals, until);
    }
}

// --- Fail-overs ------------------------------------------------------------------------------------------------------

void ReplicaWorld::failOver()
{
    if (!failsOver_) {
        return;
    }
    later(within(500ms, 5s), [this] { failOver(); });
    auto next = static_cast<std::size_t>(chance_.unit() * static_cast<double>(replication_.count()));
    for (std::size_t i = 0; i < replication_.count() && !replication_.lags(next) && chance_.unit() < 0.6; ++i) {
        next = (next + 1) % replication_.count(); // rather one that lags
    }
    if (formerLives_ || !replication_.mayBePromoted(next)) {
        return;
    }
    formerLives_ = chance_.unit() < 0.4;
    trace_("world", "fails over to {}{}{}", next, replication_.lags(next) ? ", which lags" : "",
           formerLives_ ? "; the former master lives on" : "");
    ++statistics_.faults;
    count(ReplicaEvent::failOver);
    if (replication_.lags(next)) {
        count(ReplicaEvent::laggingChosen);
    }
    for (const auto& process : processes_) {
        if (process.client != nullptr && process.client->isConfirming()) {
            count(ReplicaEvent::duringConfirming);
        }
        if (process.client != nullptr && process.client->pausesNotDurable()) {
            count(ReplicaEvent::duringPause);
        }
    }
    const auto state = server_.keyspace().keys();
    former_.takeOver(server_);
    server_.restart(ModelServer::Data::kept);
    replication_.promote(next);
    network(0).failOver(former_);
    compare(state);
    if (formerLives_) {
        count(ReplicaEvent::formerLives);
        troubleAll(scheduler_.now());
        return later(within(20ms, 3s), [this, next] { demoteFormer(next); });
    }
    const auto down = within(1ms, chance_.unit() < 0.5 ? 20ms : 1500ms);
    network(0).cutAll();
    network(0).setDownUntil(scheduler_.now() + down);
    troubleAll(scheduler_.now() + down);
    replication_.lose(next, scheduler_.now() + down + within(0s, 4s));
}

/// The former master learns that it is a replica now, and closes its connections.
void ReplicaWorld::demoteFormer(std::size_t replica)
{
    trace_("world", "the former master is demoted");
    former_.keyspace().refusal = Refusal::readOnly;
    const auto closes = within(0ms, 300ms);
    troubleAll(scheduler_.now() + closes);
    later(closes, [this, replica] {
        network(0).cutFormer();
        troubleAll(scheduler_.now());
        formerLives_ = false;
        replication_.lose(replica, scheduler_.now() + within(5ms, 2s));
    });
}

void ReplicaWorld::hinderReplica()
{
    if (!failsOver_) {
        return;
    }
    const auto which = static_cast<std::size_t>(chance_.unit() * static_cast<double>(replication_.count()));
    if (chance_.unit() < 0.8) {
        replication_.stop(which, scheduler_.now() + within(1ms, chance_.unit() < 0.5 ? 100ms : 3s));
    } else if (replication_.mayBePromoted(which)) {
        replication_.lose(which, scheduler_.now() + within(50ms, 3s));
    }
    later(within(100ms, 2s), [this] { hinderReplica(); });
}

/// The new master has what it has. @param former what the one before had
void ReplicaWorld::compare(const Replication::State& former)
{
    for (const auto& name : workload_.names()) {
        expectSurvival(name);
        const auto had = former.find(name);
        const auto* has = server_.keyspace().find(name, millisecondOf(scheduler_.now()));
        const auto fieldsBefore = had == former.end() ? Keyspace::Key().fields : had->second.fields;
        if (had == former.end() || has == nullptr || *has != had->second) {
            for (const auto& [holder, value] : fieldsBefore) {
                diverged(name, holder);
            }
        }
        for (const auto& [holder, value] : has == nullptr ? Keyspace::Key().fields : has->fields) {
            if (std::ranges::find(fieldsBefore, holder, &std::pair<std::string, std::string>::first) ==
                fieldsBefore.end()) {
                count(ReplicaEvent::lostRelease);
                diverged(name, holder);
            }
        }
    }
}

/// D2. The key is there even if its time is over: a master would have said that it is gone, and this one was a replica.
void ReplicaWorld::expectSurvival(const std::string& name)
{
    const auto& keys = server_.keyspace().keys();
    const auto key = keys.find(name);
    for (const auto& [holder, durable] : told_) {
        const bool isAsked = durable.replicas == replication_.count() && !checker_.isExcused(holder);
        if (!isAsked || checker_.believedUntil(name, holder) <= scheduler_.now()) {
            continue;
        }
        count(ReplicaEvent::durableHold);
        if (key == keys.end() || key->second.find(holder) == nullptr) {
            throw Violation("D2 durable grants survive",
                            fmt::format("the new master does not have {} of {}", holder, name));
        }
    }
}

// --- Holds -----------------------------------------------------------------------------------------------------------

void ReplicaWorld::applied(std::size_t node, const Replication::State& state)
{
    for (const auto& name : workload_.names()) {
        if (const auto key = state.find(name); key != state.end()) {
            for (const auto& [holder, value] : key->second.fields) {
                has_[holder].insert(node);
            }
        }
    }
}

/// D1.
void ReplicaWorld::told(const Hold& hold, const std::string& holder, const Durability& asked)
{
    if (asked.level == Durability::Level::none) {
        return;
    }
    const auto has = has_.find(holder);
    if (has == has_.end() || has->second.size() < asked.count) {
        throw Violation("D1 replicas first",
                        fmt::format("{} of {} was granted when {} of {} replicas had it", holder, hold.lock->name,
                                    has == has_.end() ? 0 : has->second.size(), asked.count));
    }
    count(ReplicaEvent::told);
    const auto [known, isNew] = told_.try_emplace(holder, Told{asked.count, hold.owner});
    if (!isNew && std::exchange(known->second.owner, hold.owner) != hold.owner) {
        count(ReplicaEvent::passedOn);
    }
    known->second.replicas = std::max(known->second.replicas, asked.count);
}

bool ReplicaWorld::hasIt(const std::string& name, const std::string& holder) const
{
    const auto* key = server_.keyspace().find(name, millisecondOf(scheduler_.now()));
    return key != nullptr && key->find(holder) != nullptr;
}

/// The master's answers about that holder are not those that its client has got.
void ReplicaWorld::diverged(const std::string& name, const std::string& holder)
{
    if (checker_.isExcused(holder)) {
        return checker_.lags(holder);
    }
    const bool isBelieved = scheduler_.now() < checker_.believedUntil(name, holder);
    if (!hasIt(name, holder)) {
        trace_("world", "the master does not have {}", holder);
        checker_.excuseHolder(holder);
        lost_[holder] = name;
        if (isBelieved) {
            count(ReplicaEvent::lostGrant);
        }
    } else {
        if (isBelieved && !checker_.isLagging(holder)) {
            count(ReplicaEvent::lostRenewal);
        }
        checker_.lags(holder);
        awaitEndOf(name, holder); // each time: it may come earlier than was known before
    }
}

/// Excuses the holder from when its time is over on the master, unless it has caught up by then.
void ReplicaWorld::awaitEndOf(const std::string& name, const std::string& holder)
{
    const auto* key = server_.keyspace().find(name, millisecondOf(scheduler_.now()));
    if (!checker_.isLagging(holder) || (key != nullptr && key->find(holder) != nullptr && !key->expiresAtMs)) {
        return;
    }
    if (!hasIt(name, holder) || *key->expiresAtMs <= millisecondOf(scheduler_.now())) {
        return checker_.excuseHolder(holder);
    }
    scheduler_.at(VirtualTime(*key->expiresAtMs * 1'000'000), [this, name, holder] { awaitEndOf(name, holder); });
}

bool ReplicaWorld::lastsLongerAtFormer(const std::string& name, const std::string& holder) const
{
    const auto now = millisecondOf(scheduler_.now());
    const auto* here = server_.keyspace().find(name, now);
    const auto* there = former_.keyspace().find(name, now);
    return hasIt(name, holder) && here->expiresAtMs &&
           (!there->expiresAtMs || *there->expiresAtMs > *here->expiresAtMs);
}

void ReplicaWorld::executedByFormer(const Request& request)
{
    for (const auto& part : partsOf(request)) {
        if (part.kind == nullptr || part.arguments.empty()) {
            continue;
        }
        const auto* key = former_.keyspace().find(part.name, millisecondOf(scheduler_.now()));
        const auto fields = key == nullptr ? Keyspace::Key().fields : key->fields;
        if (part.does(&KindTraits::lock)) {
            lockedElsewhere_.insert(part.arguments[0]);
        }
        if (hasIt(part.name, part.arguments[0])) {
            diverged(part.name, part.arguments[0]);
            if (key == nullptr || key->find(part.arguments[0]) == nullptr) {
                checker_.deniedElsewhere(part.arguments[0]);
            }
        }
        for (const auto& [holder, value] : fields) {
            if (!hasIt(part.name, holder) && !checker_.isExcused(holder)) {
                count(ReplicaEvent::formerGrants);
                diverged(part.name, holder);
            } else if (lastsLongerAtFormer(part.name, holder)) { // granted there once more, to the same waiter
                diverged(part.name, holder);
            }
        }
    }
}

void ReplicaWorld::before(const Request& request, VirtualTime now)
{
    checker_.before(request, now);
    isNew_ = request.does(&KindTraits::lock) && !hasIt(request.name, request.arguments[0]);
}

void ReplicaWorld::after(const Request& request, const Reply& reply, VirtualTime now)
{
    executed(request, reply);
    checker_.after(request, reply, now);
}

/// The master has executed a request.
void ReplicaWorld::executed(const Request& request, const Reply& reply)
{
    const auto parts = reply.isError() ? std::vector<Request>() : partsOf(request);
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const auto* key = server_.keyspace().find(parts[i].name, millisecondOf(scheduler_.now()));
        if (parts[i].kind == nullptr || parts[i].arguments.empty()) {
            continue;
        }
        const std::string& holder = parts[i].arguments[0];
        if (isNew_ && hasIt(parts[i].name, holder)) { // perhaps not for the first time
            has_.erase(holder);
            lost_.erase(holder);
            checker_.accept(holder);
        }
        const auto until = checker_.believedUntil(parts[i].name, holder);
        // longer than by whatever answer of the former master is on its way
        const bool prolongs = (request.does(&KindTraits::renew) || request.does(&KindTraits::lock)) &&
                              std::chrono::milliseconds(numberOf(parts[i].arguments.at(1))) >= longestLease_;
        const bool isOfAll = request.confirms || !lockedElsewhere_.contains(holder); // also of levels not told of yet
        if (prolongs && isOfAll && checker_.isLagging(holder) && hasIt(parts[i].name, holder) && key->expiresAtMs &&
            until > VirtualTime{0} && until <= VirtualTime((*key->expiresAtMs - 1) * 1'000'000)) {
            checker_.catchesUp(holder);
        }
        const bool isDenied = !request.confirms && request.does(&KindTraits::renew) &&
                              reply.kind == Reply::Kind::text && reply.text.size() == parts.size() &&
                              reply.text[i] == '0';
        if (isDenied && lost_.contains(holder)) {
            later(givenUpWithin, [this, holder, since = scheduler_.now()] { expectGivenUp(holder, since); });
        }
    }
}

void ReplicaWorld::opened(const Host& host, Purpose purpose)
{
    if (purpose != Purpose::renewals || formerLives_) {
        return;
    }
    for (const auto& process : processes_) {
        for (const auto& [holder, name] : lost_) {
            if (process.client != nullptr && &process.client->host() == &host &&
                holder.starts_with(process.client->core().id + ":")) {
                later(askedWithin, [this, holder = holder, since = scheduler_.now()] { expectGivenUp(holder, since); });
            }
        }
    }
}

/// D3. @param since if there was trouble from then on, there need not have been time
void ReplicaWorld::expectGivenUp(const std::string& holder, VirtualTime since)
{
    const auto lost = lost_.find(holder);
    if (lost == lost_.end() || hasIt(lost->second, holder) || // a release has granted it the lock
        checker_.believedUntil(lost->second, holder) <= scheduler_.now()) {
        return;
    }
    for (const auto& process : processes_) {
        const auto isOwn = process.client != nullptr && holder.starts_with(process.client->core().id + ":");
        if (isOwn && process.client->lastTrouble < since && process.client->host().runsSince() < since) {
            throw Violation(
                "D3 lost grants are given up",
                fmt::format("{} believes to hold {}, which the new master does not have", holder, lost->second));
        }
    }
}

void ReplicaWorld::waits(LinkId link, const Request& request, bool atFormer)
{
    replication_.wait(link, numberOf(request.arguments.at(0)),
                      std::chrono::milliseconds(numberOf(request.arguments.at(1))), atFormer);
}

// --- The phases ------------------------------------------------------------------------------------------------------

void ReplicaWorld::run()
{
    later(within(200ms, 3s), [this] { failOver(); });
    later(within(0ms, 1s), [this] { hinderReplica(); });
    runWithFaults(250 + static_cast<std::uint64_t>(chance_.unit() * 250));
    failsOver_ = false;
    constexpr double calm = 100;
    workload_.pace = calm;
    endFaults();
    workload_.pace = 1;
    runUntil(scheduler_.now() + 1s);
    trace_("world", "all threads stop");
    for (auto& process : processes_) {
        for (auto& actor : process.actors) {
            actor->stop();
        }
    }
    awaitIdle(processes_, 2 * longestLease_ + 60s + 2 * deadKeep_, "a thread did not come to its end");
    runUntil(scheduler_.now() + longestLease_ + longestLease_ / 50 + deadKeep_); // the leases of a crashed process
    for (auto& process : processes_) {
        for (std::size_t view = 0; view < workload_.views.size(); ++view) {
            process.actors.front()->probe(view);
            awaitIdle(processes_, 500ms, "a lock could not be taken with all replicas, and released, in half a second");
        }
    }
    checkResidue();
}

void ReplicaWorld::checkResidue()
{
    runUntil(scheduler_.now() + longestLease_ + 5s + deadKeep_);
    for (const auto& name : workload_.names()) {
        if (server_.keyspace().find(name, millisecondOf(scheduler_.now())) != nullptr) {
            throw Violation("S7 no residue", name + " is left");
        }
    }
    for (const auto& process : processes_) {
        if (const auto left = process.client->residue(); !left.empty()) {
            throw Violation("R1 no residue", left);
        }
    }
}

} // namespace redislock::simulation
