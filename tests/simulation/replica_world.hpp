/// @file
/// A run with replicas and fail-overs.
#pragma once

#include "simulation/actor.hpp"
#include "simulation/replication.hpp"
#include "simulation/safety_checker.hpp"
#include "simulation/stage.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace redislock::simulation {

/// A master with two or three replicas that lag, fail-overs to any of them, and locks with and without a durability.
/// After a fail-over the former master may live on for a while, with the connections that it has. First with faults,
/// then without, when every process must get every lock with all replicas.
///
/// The rules, besides those of the checkers: D1 a caller is told of a durable level only when so many replicas have had
/// the hold; D2 a hold of which all replicas were to know survives each fail-over; D3 a client soon gives up a hold
/// that the new master does not have, once that has answered, or the connection for renewals is made again. A hold that
/// the new master lacks is excused from being true and exclusive; one that it has for a shorter time, since renewals
/// wait for nobody, from when that time is over.
class ReplicaWorld final : public Stage, private Witness {
public:
    ReplicaWorld(LuaRuntime& lua, std::uint64_t seed, bool traced);

    void run() override;

private:
    struct Process {
        SimClient::Owner client;
        std::vector<std::unique_ptr<Actor>> actors;
    };
    struct Told {
        std::uint32_t replicas;
        std::uint64_t owner;
    };

    void populate(std::size_t process) override;
    void depopulate(std::size_t process) override;
    void tellSituations(std::size_t process, std::size_t server, const TellSituation& tell) const override;
    void dataLost(std::size_t /*server*/) override {}
    void touchKey(std::size_t /*server*/, Fault /*fault*/) override {}
    void troubled(std::size_t process, std::size_t server, Purpose purpose, VirtualTime until) override;
    void executedByFormer(const Request& request) override;
    void opened(const Host& host, Purpose purpose) override;
    void waits(LinkId link, const Request& request, bool atFormer) override;
    void copied(const Request& request) override { checker_.copied(request); }
    void before(const Request& request, VirtualTime now) override;
    void after(const Request& request, const Reply& reply, VirtualTime now) override;

    // fail-overs
    void failOver();
    void hinderReplica();
    void compare(const Replication::State& former);
    void expectSurvival(const std::string& name);
    void demoteFormer(std::size_t replica);
    void troubleAll(VirtualTime until);

    // holds
    void applied(std::size_t node, const Replication::State& state);
    void told(const Hold& hold, const std::string& holder, const Durability& asked);
    void diverged(const std::string& name, const std::string& holder);
    void awaitEndOf(const std::string& name, const std::string& holder);
    [[nodiscard]] bool lastsLongerAtFormer(const std::string& name, const std::string& holder) const;
    void executed(const Request& request, const Reply& reply);
    void expectGivenUp(const std::string& holder, VirtualTime since);
    [[nodiscard]] bool hasIt(const std::string& name, const std::string& holder) const;

    // the end
    void checkResidue();

    void later(VirtualTime pause, Task task) { scheduler_.at(scheduler_.now() + pause, std::move(task)); }
    [[nodiscard]] VirtualTime within(VirtualTime least, VirtualTime most);
    void count(ReplicaEvent event) noexcept { ++statistics_.replicas[static_cast<std::size_t>(event)]; }

    Workload workload_;
    const std::size_t threads_;
    std::vector<Config> configs_;
    VirtualTime longestLease_{0};
    VirtualTime deadKeep_{0}; ///< how long all dead waiters with places together keep others waiting
    ModelServer server_;      ///< the master
    ModelServer former_;      ///< the last one before
    SafetyChecker checker_;
    Replication replication_;
    bool failsOver_ = true;
    bool formerLives_ = false;
    bool isNew_ = false; ///< whether the request that is executed asks for a hold that the master does not have
    std::map<std::string, std::set<std::size_t>> has_; ///< by holder: which replicas have had its hold
    std::map<std::string, Told> told_;                 ///< by holder: the most durable level
    std::set<std::string> lockedElsewhere_;            ///< holders of which the former master granted a level
    std::map<std::string, std::string> lost_;          ///< by holder: the lock that a master does not have
    std::vector<Process> processes_;                   ///< last member: destroyed first, and uses the others until then
};

} // namespace redislock::simulation
