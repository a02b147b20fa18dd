/// @file
/// One run of the simulation.
#pragma once

#include "simulation/actor.hpp"
#include "simulation/faults.hpp"
#include "simulation/lua_runtime.hpp"
#include "simulation/model_server.hpp"
#include "simulation/network.hpp"
#include "simulation/queue_checker.hpp"
#include "simulation/safety_checker.hpp"
#include "simulation/scheduler.hpp"
#include "simulation/sim_client.hpp"
#include "simulation/simulated.hpp"
#include "simulation/trace.hpp"
#include "simulation/wakeup_checker.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace redislock::simulation {

/// An error that a test puts in, to see whether it is noticed, when there are no faults any more: when the threads are
/// to stop, before everybody must get every lock, and before nothing may be left.
struct Sabotage {
    struct Hands {
        Scheduler& scheduler;
        ModelServer& server;
        Network& network;
        SafetyChecker& checker;
        SimClient& client;
    };
    using Deed = std::function<void(const Hands&)>;

    Deed beforeStop{};
    Deed beforeProbes{};
    Deed beforeResidue{};
};

/// A server, a network, some clients with some threads each, and one number that decides everything. First with faults;
/// then without faults, when everything must work again.
class World final : public Simulated, private Network::Observer {
public:
    World(LuaRuntime& lua, std::uint64_t seed, bool traced, Sabotage sabotage = {});

    void run() override;
    [[nodiscard]] const Statistics& statistics() const noexcept override { return statistics_; }
    [[nodiscard]] const Trace& trace() const noexcept override { return trace_; }

private:
    struct Process {
        std::shared_ptr<Host> host;
        SimClient::Owner client;
        std::vector<std::unique_ptr<Actor>> actors;
        std::uint32_t incarnation = 0;
        [[nodiscard]] bool isAlive() const noexcept { return client != nullptr; }
    };

    // the phases
    void runUntil(VirtualTime end);
    void runWithFaults();
    void settle();
    void runWithout();
    void stopAll();
    void probeAll();
    void checkResidue();
    void commit(const Sabotage::Deed& deed);

    // processes
    void start(std::size_t index);
    void crash(std::size_t index);
    /// Ends a process in order; its shutdown waits for at most @p patience.
    /// @param isCalm the shutdown must finish in time, and leave nothing.
    void endInOrder(std::size_t index, VirtualTime patience, bool isCalm);
    void awaitEnd(std::size_t index, const std::vector<std::string>& held, VirtualTime until, bool isCalm);
    void expectNothingLeft(const Process& process, const std::vector<std::string>& held);
    std::size_t anyProcess();

    // faults
    void scheduleFault(Fault fault);
    void happen(Fault fault);
    void pauseClient();
    void restart(Fault fault);
    void refuse(Fault fault);
    void touchKey(Fault fault);
    VirtualTime duration(VirtualTime longest);
    void hitAll(Fault fault, VirtualTime end);
    void hitProcess(Fault fault, Process& process, VirtualTime end, const std::string* name = nullptr);
    static void forEachSituation(const Process& process,
                                 const std::function<void(Situation, const std::string&)>& tell);
    void count(Fault fault, Situation situation) noexcept;
    void hit(Fault fault, const Host& host, Purpose purpose, std::optional<Situation> situation) override;

    // waking
    void executed(const Request& request, const Reply& reply) override;
    [[nodiscard]] bool waitsAs(const std::string& name, const std::string& holder);
    [[nodiscard]] std::string waiterSince(const std::string& name, VirtualTime since, WakeUpChecker::Who who);

    Random chance_;
    Scheduler scheduler_;
    Trace trace_;
    Statistics statistics_;
    const FaultPlan plan_;
    Workload workload_;
    const std::size_t threads_;
    std::vector<Config> configs_;
    ModelServer server_;
    SafetyChecker checker_;
    Network network_;
    WakeUpChecker wakeUps_;
    QueueChecker queues_;
    const Sabotage sabotage_;
    bool faults_ = true;
    std::map<std::string, std::string> lastHolder_;
    VirtualTime longestLease_{0};
    VirtualTime deadKeep_{0}; ///< how long all dead waiters with places together keep others waiting
    VirtualTime longestTimeout_{0};
    std::vector<Process> processes_; ///< last member: destroyed first, and uses the others until then
};

} // namespace redislock::simulation
