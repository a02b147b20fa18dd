#include "simulation/stage.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace redislock::simulation {

using namespace std::chrono_literals;

namespace {

FaultPlan drawPlan(Random& chance, std::optional<Fault> never, double calm)
{
    FaultPlan plan(chance);
    if (calm > 0 && chance.unit() < calm) {
        for (std::size_t fault = 0; fault < faultCount; ++fault) {
            plan.without(static_cast<Fault>(fault));
        }
    }
    if (never) {
        plan.without(*never);
    }
    return plan;
}

} // namespace

/// A server and the network to it.
class Stage::Site final : private Network::Observer {
public:
    Site(Stage& stage, std::size_t index, ModelServer& s, Witness& witness)
        : server(s),
          network(stage.scheduler_, stage.chance_, stage.plan_, witness, stage.trace_, *this),
          stage_(stage),
          index_(index)
    {
        network.attach(server);
    }

    ModelServer& server;
    Network network;

private:
    void hit(Fault fault, const Host& host, Purpose purpose, std::optional<Situation> situation) override
    {
        stage_.hit(index_, fault, host, purpose, situation);
    }
    void executed(const Request& /*request*/, const Reply& /*reply*/) override {} // the witness sees it
    void executedByFormer(const Request& request) override { stage_.executedByFormer(request); }
    void opened(const Host& host, Purpose purpose) override { stage_.opened(host, purpose); }
    void waits(LinkId link, const Request& request, bool atFormer) override { stage_.waits(link, request, atFormer); }

    Stage& stage_;
    const std::size_t index_;
};

Stage::Stage(std::uint64_t seed, bool traced, std::optional<Fault> never, double calm)
    : chance_(seed), trace_(scheduler_, traced), plan_(drawPlan(chance_, never, calm))
{
}

Stage::~Stage() = default;

void Stage::addServer(ModelServer& server, Witness& witness)
{
    sites_.push_back(std::make_unique<Site>(*this, sites_.size(), server, witness));
}

Network& Stage::network(std::size_t server) noexcept
{
    return sites_[server]->network;
}

std::function<void(LinkId, const Reply&)> Stage::pushTo(std::size_t server)
{
    return [this, server](LinkId link, const Reply& message) { network(server).push(link, message); };
}

// --- Time ------------------------------------------------------------------------------------------------------------

void Stage::runUntil(VirtualTime end)
{
    while (scheduler_.step(end)) {
        ++statistics_.events;
    }
}

void Stage::runWithFaults(std::uint64_t fewest)
{
    for (std::size_t fault = static_cast<std::size_t>(Fault::connectionCut); fault < faultCount; ++fault) {
        scheduleFault(static_cast<Fault>(fault));
    }
    runUntil(2s);
    while (statistics_.operations < fewest && scheduler_.now() < 60s) {
        runUntil(scheduler_.now() + 100ms);
    }
}

void Stage::endFaults()
{
    trace_("world", "no more faults");
    faults_ = false;
    for (const auto& site : sites_) {
        site->network.setFaults(false);
    }
    runUntil(scheduler_.now() + longestTrouble + longestDelay);
}

// --- Processes -------------------------------------------------------------------------------------------------------

void Stage::startProcesses(std::size_t count)
{
    places_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
        start(i);
    }
}

void Stage::start(std::size_t process)
{
    Place& place = places_[process];
    const auto drift = oneOf({-DriftingClock::mostDrift, std::int64_t{0}, DriftingClock::mostDrift,
                              static_cast<std::int64_t>(chance_.unit() * 200) - DriftingClock::mostDrift});
    const DriftingClock clock(VirtualTime(static_cast<std::int64_t>(chance_.unit() * 1e15)), drift);
    place.host =
        std::make_shared<Host>(scheduler_, fmt::format("c{}.{}", process, ++place.incarnation), clock, chance_.next());
    place.isAlive = true;
    trace_(place.host->name(), "starts");
    populate(process);
}

void Stage::crash(std::size_t process)
{
    Place& place = places_[process];
    if (!place.isAlive) {
        return;
    }
    trace_(place.host->name(), "crashes");
    place.isAlive = false;
    place.host->crash();
    for (const auto& site : sites_) {
        site->network.drop(*place.host);
    }
    depopulate(process);
    scheduler_.at(scheduler_.now() + duration(longestAbsence), [this, process] { start(process); });
}

std::size_t Stage::anyProcess()
{
    return static_cast<std::size_t>(chance_.unit() * static_cast<double>(places_.size()));
}

// --- Faults ----------------------------------------------------------------------------------------------------------

/// Mostly short, sometimes as long as @p longest.
VirtualTime Stage::duration(VirtualTime longest)
{
    const double part = chance_.unit();
    return VirtualTime(1 + static_cast<std::int64_t>(part * part * part * static_cast<double>(longest.count())));
}

void Stage::scheduleFault(Fault fault)
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

void Stage::happen(Fault fault)
{
    const auto server = static_cast<std::size_t>(chance_.unit() * static_cast<double>(sites_.size()));
    trace_("world", "fault: {} (server {})", faultNames[static_cast<std::size_t>(fault)], server);
    if (fault != Fault::clientPaused && fault != Fault::clientCrashed) {
        return happenTo(server, fault);
    }
    const auto process = anyProcess();
    if (!isAlive(process)) {
        return;
    }
    const auto end = scheduler_.now() + (fault == Fault::clientPaused ? duration(longestTrouble) : VirtualTime{0});
    for (std::size_t i = 0; i < sites_.size(); ++i) {
        hitProcess(fault, process, i, end);
    }
    if (fault == Fault::clientPaused) {
        host(process)->pauseUntil(end);
    } else {
        crash(process);
    }
}

void Stage::happenTo(std::size_t server, Fault fault)
{
    Site& site = *sites_[server];
    switch (fault) {
    case Fault::connectionCut:
        return site.network.cutOne();
    case Fault::serverPaused: {
        if (site.network.isServerPaused()) {
            return; // after more time than answers are kept, requests would count twice
        }
        const auto end = scheduler_.now() + duration(longestTrouble);
        hitServer(fault, server, end);
        return site.network.pauseServerUntil(end);
    }
    case Fault::serverRestarted:
    case Fault::serverRestartedEmpty: {
        const auto end = scheduler_.now() + duration(3s);
        hitServer(fault, server, end);
        if (fault == Fault::serverRestartedEmpty) {
            dataLost(server);
        }
        site.network.cutAll();
        site.network.setDownUntil(end);
        return site.server.restart(fault == Fault::serverRestartedEmpty ? ModelServer::Data::lost
                                                                        : ModelServer::Data::kept);
    }
    case Fault::scriptsForgotten:
        hitServer(fault, server, scheduler_.now());
        return site.server.forgetScripts();
    case Fault::outOfMemory:
    case Fault::notEnoughReplicas:
    case Fault::readOnly:
        return refuse(server, fault, scheduler_.now() + duration(longestTrouble));
    default:
        return touchKey(server, fault);
    }
}

void Stage::refuse(std::size_t server, Fault fault, VirtualTime end)
{
    const auto refusal = fault == Fault::outOfMemory         ? Refusal::outOfMemory
                         : fault == Fault::notEnoughReplicas ? Refusal::notEnoughReplicas
                                                             : Refusal::readOnly;
    hitServer(fault, server, end);
    Keyspace& keyspace = sites_[server]->server.keyspace();
    keyspace.refusal = refusal;
    scheduler_.at(end, [&keyspace, refusal] {
        if (keyspace.refusal == refusal) {
            keyspace.refusal = Refusal::none;
        }
    });
}

void Stage::hitServer(Fault fault, std::size_t server, VirtualTime end)
{
    for (std::size_t i = 0; i < places_.size(); ++i) {
        if (isAlive(i)) {
            hitProcess(fault, i, server, end);
        }
    }
}

void Stage::hitProcess(Fault fault, std::size_t process, std::size_t server, VirtualTime end)
{
    ++statistics_.faults;
    troubled(process, server, Purpose::renewals, end);
    tellSituations(process, server, [&](Situation situation) {
        if (impossible(fault, situation).empty()) {
            ++statistics_.hits[static_cast<std::size_t>(fault)][static_cast<std::size_t>(situation)];
        }
    });
}

void Stage::hit(std::size_t server, Fault fault, const Host& host, Purpose purpose, std::optional<Situation> situation)
{
    const auto place = std::find_if(places_.begin(), places_.end(),
                                    [&](const Place& p) { return p.isAlive && p.host.get() == &host; });
    if (place == places_.end()) {
        return;
    }
    const auto process = static_cast<std::size_t>(place - places_.begin());
    ++statistics_.faults;
    troubled(process, server, purpose, scheduler_.now());
    if (situation) {
        ++statistics_.hits[static_cast<std::size_t>(fault)][static_cast<std::size_t>(*situation)];
    }
}

} // namespace redislock::simulation
