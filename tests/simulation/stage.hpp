/// @file
/// Servers, processes, and their faults.
#pragma once

#include "simulation/host.hpp"
#include "simulation/model_server.hpp"
#include "simulation/network.hpp"
#include "simulation/safety_checker.hpp"
#include "simulation/simulated.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace redislock::simulation {

/// The common part of all runs but World's: any number of servers, each with a network of its own, processes that crash
/// and come back, and faults. A derived class decides what lives in the processes.
class Stage : public Simulated {
public:
    [[nodiscard]] const Statistics& statistics() const noexcept override { return statistics_; }
    [[nodiscard]] const Trace& trace() const noexcept override { return trace_; }

protected:
    using TellSituation = std::function<void(Situation)>;

    /// @param never a fault that never comes. @param calm how many runs have no faults but those of the derived class
    Stage(std::uint64_t seed, bool traced, std::optional<Fault> never = {}, double calm = 0);
    ~Stage() override;

    /// Adds a server. Its clients send over network(site).
    void addServer(ModelServer& server, Witness& witness);
    [[nodiscard]] Network& network(std::size_t server) noexcept;
    [[nodiscard]] std::function<void(LinkId, const Reply&)> pushTo(std::size_t server);

    // time
    void runUntil(VirtualTime end);
    /// @param fewest operations before this phase may end.
    void runWithFaults(std::uint64_t fewest);
    /// Runs without new faults until lasting faults and everything under way are over.
    void endFaults();

    /// Runs until no actor does anything any more. @param what is violated if that takes longer
    template <class Processes>
    void awaitIdle(const Processes& processes, VirtualTime within, const char* what)
    {
        const auto isIdle = [](const auto& process) {
            return std::ranges::all_of(process.actors, [](const auto& actor) { return actor->isIdle(); });
        };
        const auto end = scheduler_.now() + within;
        while (!std::ranges::all_of(processes, isIdle)) {
            if (scheduler_.now() >= end) {
                throw Violation("T9 recovery", what);
            }
            runUntil(scheduler_.now() + std::chrono::milliseconds(5));
        }
    }

    // processes
    void startProcesses(std::size_t count);
    [[nodiscard]] std::size_t processes() const noexcept { return places_.size(); }
    [[nodiscard]] bool isAlive(std::size_t process) const noexcept { return places_[process].isAlive; }
    [[nodiscard]] const std::shared_ptr<Host>& host(std::size_t process) const noexcept
    {
        return places_[process].host;
    }
    void crash(std::size_t process);
    std::size_t anyProcess();
    template <class Value, std::size_t size>
    Value oneOf(const Value (&values)[size])
    {
        return values[static_cast<std::size_t>(chance_.unit() * static_cast<double>(size))];
    }

    /// A process begins, the first of its place or after a crash: its host exists.
    virtual void populate(std::size_t process) = 0;
    /// A process has crashed.
    virtual void depopulate(std::size_t process) = 0;
    /// Reports the states of those machines of a process that use a server.
    virtual void tellSituations(std::size_t process, std::size_t server, const TellSituation& tell) const = 0;
    /// The server is about to forget everything.
    virtual void dataLost(std::size_t server) = 0;
    /// Others delete a key, or take its time to live away.
    virtual void touchKey(std::size_t server, Fault fault) = 0;
    /// A master of before has executed a request; a connection is there; a connection waits for replicas.
    virtual void executedByFormer(const Request& /*request*/) {}
    virtual void opened(const Host& /*host*/, Purpose /*purpose*/) {}
    virtual void waits(LinkId /*link*/, const Request& /*request*/, bool /*atFormer*/) {}
    /// A fault between a process and a server may last until then.
    virtual void troubled(std::size_t /*process*/, std::size_t /*server*/, Purpose /*purpose*/, VirtualTime /*until*/)
    {
    }

    // in this order: later members use earlier ones
    Random chance_;
    Scheduler scheduler_;
    Trace trace_;
    Statistics statistics_;

private:
    class Site;
    struct Place {
        std::shared_ptr<Host> host;
        std::uint32_t incarnation = 0;
        bool isAlive = false;
    };

    void start(std::size_t process);
    void scheduleFault(Fault fault);
    void happen(Fault fault);
    void happenTo(std::size_t server, Fault fault);
    void refuse(std::size_t server, Fault fault, VirtualTime end);
    VirtualTime duration(VirtualTime longest);
    void hitServer(Fault fault, std::size_t server, VirtualTime end);
    void hitProcess(Fault fault, std::size_t process, std::size_t server, VirtualTime end);
    void hit(std::size_t server, Fault fault, const Host& host, Purpose purpose, std::optional<Situation> situation);

    const FaultPlan plan_;
    bool faults_ = true;
    std::vector<Place> places_;
    std::vector<std::unique_ptr<Site>> sites_; ///< last member: destroyed first
};

} // namespace redislock::simulation
