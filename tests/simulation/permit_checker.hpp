/// @file
/// Checks that no permit of a semaphore exists twice, and none is lost.
#pragma once

#include "simulation/counter_ledger.hpp"
#include "simulation/keyspace.hpp"
#include "simulation/scheduler.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace redislock::simulation {

/// S11, for both kinds of semaphore: clients never believe in more permits than there are; the server counts each
/// request once; in the end all permits are free, except those of processes that are gone.
///
/// A semaphore that was taken away from outside is excused from everything.
class PermitChecker {
public:
    explicit PermitChecker(const Keyspace& keyspace) noexcept : keyspace_(keyspace) {}

    /// From now on a client believes that it has permits until @p until. Called again with another time when the lease
    /// changed.
    /// @param who the permit's id, or any name that begins with the process' name and a colon.
    void believes(const std::string& semaphore, const std::string& who, std::int64_t permits, VirtualTime now,
                  VirtualTime until);
    /// The belief ends: the permits were given back or lost, or the process is gone.
    void ends(const std::string& semaphore, const std::string& who);

    /// The semaphore is about to be taken away from outside.
    void excuse(const std::string& semaphore) { semaphores_[semaphore].isExcused = true; }
    /// That process may never give back its permits: it has crashed, or was without the server for longer than it
    /// repeats a release.
    void mayKeep(const std::string& process) { keepers_.insert(process); }

    /// Called after each request about a semaphore that the server executed.
    void executed(const Request& request, const Reply& reply, VirtualTime now);

    /// Called when no client believes in a permit, no request is under way, and all leases are over.
    void expectAllFree(VirtualTime now) const;

private:
    struct Belief {
        std::int64_t permits;
        VirtualTime until;
    };
    struct Semaphore {
        std::optional<std::int64_t> permits; ///< the number of permits; nothing before the semaphore was made
        Answers answers;
        std::map<std::string, std::int64_t> taken; ///< by process; of a semaphore without leases
        std::map<std::string, Belief> beliefs;
        bool isExcused = false;
    };

    void count(Semaphore& semaphore, const Request& request, std::int64_t answer, std::int64_t byProcess,
               const Reply& reply) const;
    void foresee(Semaphore& semaphore, const Request& request, const Reply& reply);
    void checkServer(const std::string& name, const Semaphore& semaphore, VirtualTime now) const;
    void checkBeliefs(const std::string& name, const Semaphore& semaphore, VirtualTime now) const;
    [[nodiscard]] const Keyspace::Key* leases(const std::string& name, VirtualTime now) const;

    const Keyspace& keyspace_;
    std::map<std::string, Semaphore> semaphores_;
    std::set<std::string> keepers_; ///< processes
};

} // namespace redislock::simulation
