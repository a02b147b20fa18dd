/// @file
/// A run with semaphores and latches.
#pragma once

#include "simulation/counter_actor.hpp"
#include "simulation/poll_checker.hpp"
#include "simulation/stage.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace redislock::simulation {

/// An error that a test puts in, to see whether it is noticed.
struct CounterSabotage {
    struct Hands {
        Scheduler& scheduler;
        ModelServer& server;
        SimClient& client;
        const CounterWorkload& workload;
    };
    using Deed = std::function<void(const Hands&)>;

    Deed whenCalm{};      ///< there are no faults any more, and work goes on
    Deed beforeResidue{}; ///< before nothing may be left
};

/// One server, and some processes with some threads each. First with faults, then without: then a waiter that could
/// have its permit must get it in time, and in the end all permits are free, except permits without a lease of crashed
/// processes.
///
/// The network makes no copies of requests here. When the answer to a request has arrived, its record is deleted soon,
/// since with TCP no copy can be under way. Late requests on closed connections are copies enough.
class CounterWorld final : public Stage {
public:
    CounterWorld(LuaRuntime& lua, std::uint64_t seed, bool traced, CounterSabotage sabotage = {});
    ~CounterWorld() override;

    void run() override;

private:
    class Watch;
    struct Process {
        SimClient::Owner client;
        std::vector<std::unique_ptr<CounterActor>> actors;
    };

    void populate(std::size_t process) override;
    void depopulate(std::size_t process) override;
    void tellSituations(std::size_t process, std::size_t server, const TellSituation& tell) const override;
    void dataLost(std::size_t server) override;
    void touchKey(std::size_t server, Fault fault) override;

    void runCalm();
    void stopAll();
    void askAll();
    void endInOrder(std::size_t process);
    void checkResidue();
    void commit(const CounterSabotage::Deed& deed);
    void takenAway(CounterWorkload::Subject& subject);
    void executed(const Request& request, const Reply& reply, VirtualTime now);
    [[nodiscard]] std::vector<PollChecker::Waiter> waiters(const std::string& name) const;

    CounterWorkload workload_;
    const std::size_t threads_;
    std::vector<Config> configs_;
    ModelServer server_;
    PermitChecker permits_;
    LatchChecker latches_;
    SafetyChecker locks_; ///< there are no locks in these runs
    PollChecker polls_;
    std::unique_ptr<Watch> watch_;
    std::set<std::string> withdrawn_; ///< records of abandoned acquires: kept, since their requests may still arrive
    const CounterSabotage sabotage_;
    std::vector<Process> processes_; ///< last member: destroyed first, and uses the others until then
};

} // namespace redislock::simulation
