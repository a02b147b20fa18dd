/// @file
/// A thread of a simulated program that uses groups of locks.
#pragma once

#include "core/group/group_flow.hpp"
#include "core/group/group_machine.hpp"
#include "core/group/group_standing.hpp"
#include "redislock/random.hpp"
#include "redislock/retry_policy.hpp"
#include "simulation/group_checker.hpp"
#include "simulation/sim_run.hpp"
#include "simulation/trace.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <vector>

namespace redislock::simulation {

/// A MultiLock or RedLock of a run.
struct Group {
    struct Member {
        std::size_t server;
        std::size_t view; ///< of the client of that server
    };

    std::string name;
    std::vector<Member> members;
    bool isMajority = false; ///< RedLock

    [[nodiscard]] std::size_t needed() const noexcept { return isMajority ? members.size() / 2 + 1 : members.size(); }
};

/// One try to get all members, and the hold that may result, as `detail::GroupHold`. Members that are granted when the
/// try is over are given back.
class GroupTry : public std::enable_shared_from_this<GroupTry> {
public:
    using Answer = std::function<void(std::size_t member, const detail::MemberAnswer&)>;

    /// @param clients of one process, one for each server.
    GroupTry(const Group& group, const std::vector<SimClient*>& clients);
    GroupTry(const GroupTry&) = delete;
    GroupTry& operator=(const GroupTry&) = delete;

    void ask(std::size_t member, Wait wait, Lease lease, const Answer& answer);
    void keep();
    void end();
    /// Ends the hold. @param released is called once, when the result is known.
    void release(const std::function<void(Unlocked)>& released);

    /// The process is gone.
    void drop();

    [[nodiscard]] TimePoint validUntil() const;
    /// The members that count now: granted, and neither lost nor given back.
    [[nodiscard]] std::vector<HeldMember> members() const;
    [[nodiscard]] bool isUnderWay() const;
    [[nodiscard]] const Group& group() const noexcept { return group_; }
    void tellSituations(std::size_t server, const std::function<void(Situation)>& tell) const;

    /// Called when the group is lost.
    std::function<void()> lost;

private:
    using OnStop = std::stop_callback<std::function<void()>>;
    struct Member {
        SimClient* client = nullptr;
        std::shared_ptr<SimAcquire> attempt; ///< while the attempt is under way
        detail::Acquired acquired{};         ///< without a hold: not granted, or given back
        std::unique_ptr<OnStop> onLoss;
        std::shared_ptr<SimRelease> release; ///< while it is under way
    };

    std::optional<detail::MemberAnswer> arrived(std::size_t index, std::error_code error,
                                                const detail::Acquired& acquired);
    void released(std::size_t index, Unlocked how, const std::string& holder);
    void follow(detail::GroupStanding::Verdict verdict);
    [[nodiscard]] std::vector<TimePoint> deadlines() const;
    void giveBack(Member& member);
    void withdraw();
    void giveAllBack();
    void beginRelease(std::size_t index);
    void count(Unlocked how);

    const Group& group_;
    std::vector<Member> members_;
    detail::GroupStanding standing_;
    std::optional<detail::GroupRelease> release_;
    std::function<void(Unlocked)> whenReleased_;
};

/// Acquires groups, works, releases; checks all results.
class GroupActor final : public detail::GroupRounds {
public:
    struct Workload {
        std::vector<Group> groups;
        std::chrono::milliseconds meanThink;
        std::chrono::milliseconds meanHold;
        double longHold;
        double fixedLease;
        double calledOff; ///< how many acquires are called off
    };
    struct World { ///< the surroundings of the actor
        Scheduler& scheduler;
        GroupChecker& checker;
        Trace& trace;
        Statistics& statistics;
    };

    GroupActor(const World& world, std::shared_ptr<Host> host, std::vector<SimClient*> clients,
               const Workload& workload, std::uint64_t number, std::uint64_t seed);
    GroupActor(const GroupActor&) = delete;
    GroupActor& operator=(const GroupActor&) = delete;
    ~GroupActor();

    void stop() noexcept { stopping_ = true; }
    [[nodiscard]] bool isIdle() const;
    /// Acquires and releases once; only while idle. The actor isIdle() again afterwards, unless this failed.
    void probe(std::size_t group);
    void tellSituations(std::size_t server, const std::function<void(Situation)>& tell) const;

private:
    void pause(std::chrono::nanoseconds span);
    void decide();
    void acquire(const Group& group, Wait wait, Lease lease);
    void callOffSoon();
    void step(const detail::GroupMachine::Event& event);
    void wakeAt(TimePoint when);
    void finish(const detail::GroupResult& result);
    void giveBack();
    void released(Unlocked how);
    std::optional<detail::Reason> begin() override;
    void ask(std::uint32_t round, std::size_t member, Wait wait) override;
    void giveUp() override;
    std::optional<detail::Reason> keep() override;
    void stopBelieving();
    [[nodiscard]] std::chrono::nanoseconds around(std::chrono::milliseconds mean);

    World world_;
    std::shared_ptr<Host> host_;
    std::vector<SimClient*> clients_;
    const Workload& workload_;
    const std::uint64_t number_;
    Random chance_;
    const RetryPolicy retry_;

    const Group* group_ = nullptr; ///< of the acquire under way
    Lease lease_ = keepRenewing;
    std::unique_ptr<detail::GroupFlow> flow_;
    std::shared_ptr<GroupTry> try_;               ///< the try of the present round, or the held group
    std::vector<std::shared_ptr<GroupTry>> past_; ///< with attempts under way
    std::uint64_t alarms_ = 0;
    std::uint64_t acquires_ = 0; ///< that were begun
    std::uint64_t believer_ = 0; ///< not zero: the actor holds a group
    bool busy_ = false;          ///< acquires, or waits for a release
    bool stopping_ = false;
    bool probing_ = false;
};

} // namespace redislock::simulation
