// The faults of a run that are not faults of the network.
#include "simulation/world.hpp"

#include <algorithm>

namespace redislock::simulation {

using namespace std::chrono_literals;

namespace {

Purpose purposeOf(Situation situation)
{
    return situation == Situation::renewalAsking || situation == Situation::renewalSleeping ? Purpose::renewals
                                                                                            : Purpose::commands;
}

/// Whether a renewal may fail because of the fault. A renewal begins with PEXPIRE, which needs no memory.
bool hindersRenewal(Fault fault)
{
    return fault != Fault::requestDoubled && fault != Fault::scriptsForgotten && fault != Fault::outOfMemory &&
           fault != Fault::keyDeleted && fault != Fault::keyPersisted;
}

bool isWaiting(Situation situation)
{
    return situation <= Situation::acquireBackingOff;
}

} // namespace

void World::scheduleFault(Fault fault)
{
    const VirtualTime pause = plan_.pause(fault, chance_);
    if (pause == VirtualTime{0}) {
        return;
    }
    scheduler_.at(scheduler_.now() + pause, [this, fault] {
        if (faults_) {
            happen(fault);
            scheduleFault(fault);
        }
    });
}

void World::happen(Fault fault)
{
    if (trace_.isOn()) {
        trace_("world", "fault: {}", faultNames[static_cast<std::size_t>(fault)]);
    }
    switch (fault) {
    case Fault::connectionCut:
        return network_.cutOne();
    case Fault::clientPaused:
        return pauseClient();
    case Fault::clientCrashed: {
        const auto index = anyProcess();
        hitProcess(fault, processes_[index], scheduler_.now());
        return chance_.unit() < 0.3 ? endInOrder(index, duration(longestTrouble), false) : crash(index);
    }
    case Fault::serverPaused: {
        const auto end = scheduler_.now() + duration(longestTrouble);
        hitAll(fault, end);
        return network_.pauseServerUntil(end);
    }
    case Fault::serverRestarted:
    case Fault::serverRestartedEmpty:
        return restart(fault);
    case Fault::scriptsForgotten:
        hitAll(fault, scheduler_.now());
        return server_.forgetScripts();
    case Fault::outOfMemory:
    case Fault::notEnoughReplicas:
    case Fault::readOnly:
        return refuse(fault);
    default:
        return touchKey(fault);
    }
}

/// Mostly short, sometimes as long as @p longest.
VirtualTime World::duration(VirtualTime longest)
{
    const double part = chance_.unit();
    return VirtualTime(1 + static_cast<std::int64_t>(part * part * part * static_cast<double>(longest.count())));
}

std::size_t World::anyProcess()
{
    return static_cast<std::size_t>(chance_.unit() * static_cast<double>(processes_.size()));
}

void World::pauseClient()
{
    Process& process = processes_[anyProcess()];
    const auto end = scheduler_.now() + duration(longestTrouble);
    hitProcess(Fault::clientPaused, process, end);
    if (process.isAlive()) {
        process.host->pauseUntil(end);
    }
}

void World::restart(Fault fault)
{
    const auto end = scheduler_.now() + duration(3s);
    hitAll(fault, end);
    const bool loses = fault == Fault::serverRestartedEmpty;
    if (loses) {
        checker_.excuseAll();
        queues_.forgetAll();
    }
    network_.cutAll();
    network_.setDownUntil(end);
    server_.restart(loses ? ModelServer::Data::lost : ModelServer::Data::kept);
}

void World::refuse(Fault fault)
{
    const auto refusal = fault == Fault::outOfMemory         ? Refusal::outOfMemory
                         : fault == Fault::notEnoughReplicas ? Refusal::notEnoughReplicas
                                                             : Refusal::readOnly;
    const auto end = scheduler_.now() + duration(longestTrouble);
    hitAll(fault, end);
    server_.keyspace().refusal = refusal;
    scheduler_.at(end, [this, refusal] {
        if (server_.keyspace().refusal == refusal) {
            server_.keyspace().refusal = Refusal::none;
        }
    });
}

/// Other programs delete a lock, or take its time to live away.
void World::touchKey(Fault fault)
{
    const auto names = workload_.names();
    const auto& name = names[static_cast<std::size_t>(chance_.unit() * static_cast<double>(names.size()))];
    if (server_.keyspace().find(name, millisecondOf(scheduler_.now())) == nullptr) {
        return;
    }
    for (auto& process : processes_) {
        hitProcess(fault, process, scheduler_.now(), &name);
    }
    checker_.excuse(name);
    if (fault == Fault::keyDeleted) {
        server_.keyspace().erase(name);
    } else {
        checker_.persisted(name);
        server_.keyspace().persist(name);
    }
}

// --- What the faults hit
// ---------------------------------------------------------------------------------------------------

void World::count(Fault fault, Situation situation) noexcept
{
    ++statistics_.hits[static_cast<std::size_t>(fault)][static_cast<std::size_t>(situation)];
}

void World::hitAll(Fault fault, VirtualTime end)
{
    for (auto& process : processes_) {
        hitProcess(fault, process, end);
    }
}

/// @param end until when the fault may have an effect. @param name counts only machines for that name.
void World::hitProcess(Fault fault, Process& process, VirtualTime end, const std::string* name)
{
    if (!process.isAlive()) {
        return;
    }
    ++statistics_.faults;
    if (hindersRenewal(fault)) {
        process.client->lastTrouble = std::max(process.client->lastTrouble, end);
    }
    const auto tell = [&](Situation situation, const std::string& about) {
        if ((name == nullptr || about == *name) && impossible(fault, situation).empty()) {
            count(fault, situation);
        }
    };
    forEachSituation(process, tell);
}

void World::forEachSituation(const Process& process, const std::function<void(Situation, const std::string&)>& tell)
{
    process.client->forEachSituation(tell);
    for (const auto& actor : process.actors) {
        if (actor->operation() != nullptr && actor->operation()->situation()) {
            tell(*actor->operation()->situation(), actor->name());
        }
    }
}

void World::hit(Fault fault, const Host& host, Purpose purpose, std::optional<Situation> situation)
{
    const auto process = std::find_if(processes_.begin(), processes_.end(),
                                      [&](const Process& p) { return p.isAlive() && p.host.get() == &host; });
    if (process == processes_.end()) {
        return;
    }
    ++statistics_.faults;
    if (purpose == Purpose::renewals && hindersRenewal(fault)) {
        process->client->lastTrouble = std::max(process->client->lastTrouble, scheduler_.now());
    }
    if (situation) {
        return count(fault, *situation);
    }
    if (fault <= Fault::replyDoubled) {
        return; // for a SUBSCRIBE
    }
    const auto tell = [&](Situation s, const std::string&) {
        const bool concerns = purpose == Purpose::notifications ? isWaiting(s) : purposeOf(s) == purpose;
        if (concerns && impossible(fault, s).empty()) {
            count(fault, s);
        }
    };
    forEachSituation(*process, tell);
}

} // namespace redislock::simulation
