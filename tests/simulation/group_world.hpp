/// @file
/// A run with groups of locks.
#pragma once

#include "simulation/group_actor.hpp"
#include "simulation/stage.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace redislock::simulation {

/// An error that a test puts in, to see whether it is noticed.
struct GroupSabotage {
    struct Hands {
        Scheduler& scheduler;
        std::vector<ModelServer*> servers;
        std::vector<SafetyChecker*> checkers;
    };
    using Deed = std::function<void(const Hands&)>;

    Deed beforeProbes{};  ///< before everybody must get every group
    Deed beforeResidue{}; ///< before nothing may be left
};

/// A RedLock on three or five servers, or MultiLocks of some locks on one or two, and processes with some threads each.
/// Each fault hits one server, or the way to it; several servers may have faults at once. Then there are no more
/// faults, except that a minority of the RedLock's servers may be gone for good: everybody must get every group, and in
/// the end no member is left.
class GroupWorld final : public Stage {
public:
    GroupWorld(LuaRuntime& lua, std::uint64_t seed, bool traced, GroupSabotage sabotage = {});
    ~GroupWorld() override;

    void run() override;

private:
    struct Server {
        Server(LuaRuntime& lua, const std::function<void(LinkId, const Reply&)>& push)
            : model(lua, push), checker(model.keyspace())
        {
        }

        ModelServer model;
        SafetyChecker checker;
        std::vector<View> views;
    };
    struct Process {
        std::vector<SimClient::Owner> clients; ///< by server
        std::vector<std::unique_ptr<GroupActor>> actors;
    };
    class Watch;

    void drawGroups();
    void populate(std::size_t process) override;
    void depopulate(std::size_t process) override;
    void tellSituations(std::size_t process, std::size_t server, const TellSituation& tell) const override;
    void dataLost(std::size_t server) override;
    void touchKey(std::size_t server, Fault fault) override;
    void troubled(std::size_t process, std::size_t server, Purpose purpose, VirtualTime until) override;

    void settle();
    void stopAll();
    void loseMinority();
    void probeAll();
    void checkResidue();
    void commit(const GroupSabotage::Deed& deed);

    GroupActor::Workload workload_;
    const std::size_t threads_;
    std::vector<Config> configs_;
    VirtualTime longestLease_{0};
    std::vector<std::unique_ptr<Server>> servers_;
    GroupChecker checker_;
    std::vector<std::unique_ptr<Watch>> watches_;
    const GroupSabotage sabotage_;
    std::vector<Process> processes_; ///< last member: destroyed first, and uses the others until then
};

} // namespace redislock::simulation
