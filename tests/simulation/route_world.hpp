/// @file
/// A run with Sentinels.
#pragma once

#include "link/sentinel/sentinel_route.hpp"
#include "simulation/simulated.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace redislock::simulation {

/// Servers that take each other's place, old masters that still answer, Sentinels that are late, die or lie, and one
/// client's route to the master. First with faults, then without.
///
/// The rules: R1 the client goes to a server only while that is a master; R2 it does not go back to an earlier one,
/// where epochs are told; R3 a quarter of a second after it heard of the new master it is there; R4 without faults it
/// is at the master, and asks one question a second; R5 it leaves a dead master soon after a Sentinel knows the new one,
/// though no event came.
class RouteWorld final : public Simulated {
public:
    RouteWorld(std::uint64_t seed, bool traced);

    void run() override;
    [[nodiscard]] const Statistics& statistics() const noexcept override { return statistics_; }
    [[nodiscard]] const Trace& trace() const noexcept override { return trace_; }

private:
    struct Server {
        bool isAlive = true;
        bool isMaster = false;
        std::uint64_t epoch = 0; ///< of its promotion
        VirtualTime pausedUntil{0};
        VirtualTime diedAt{0};
        VirtualTime wasMasterAt = VirtualTime::min(); ///< the last time
    };
    struct Watcher {
        bool isAlive = true;
        bool lies = false;
        bool tellsEpoch = true;
        std::size_t view = 0;
        std::uint64_t epoch = 1;
        VirtualTime livesUntil{0}; ///< at least
        VirtualTime backAt{0};     ///< when it is alive again
    };

    [[nodiscard]] TimePoint clientTime() const noexcept { return TimePoint(scheduler_.now() + std::chrono::hours(1)); }
    [[nodiscard]] VirtualTime within(VirtualTime least, VirtualTime most);
    [[nodiscard]] bool isLikely(double chance) { return chance_.unit() < chance; }
    [[nodiscard]] bool answersAsMaster(std::size_t server) const;
    void after(VirtualTime pause, Task task) { scheduler_.at(scheduler_.now() + pause, std::move(task)); }
    static redislock::Endpoint at(std::size_t server);
    static redislock::Endpoint watcherAt(std::size_t watcher);

    // what happens to servers and Sentinels
    void failOver();
    void promote(std::size_t server);
    void leave(std::size_t server, VirtualTime zombieFor);
    void learn(std::size_t watcher, std::size_t server, std::uint64_t epoch);
    void killWatcher();
    void endFaults();

    // the client
    void work();
    void ask(std::size_t which);
    void probe(const redislock::Endpoint& server);
    void awaitProbe(const redislock::Endpoint& server, std::size_t number, VirtualTime until);
    void moved();
    void connect(std::uint64_t generation, int failures);
    void watchConnection(std::uint64_t generation);
    void heard(std::size_t watcher, std::size_t server, std::uint64_t epoch);

    Random chance_;
    Scheduler scheduler_;
    Trace trace_;
    Statistics statistics_;
    const bool tellEpochs_;
    bool faults_ = true;
    std::vector<Server> servers_;
    std::vector<Watcher> watchers_; ///< the last one is not configured
    std::size_t leader_ = 0;
    std::uint64_t epoch_ = 1;
    detail::SentinelRoute route_;
    std::optional<std::size_t> used_;
    std::uint64_t usedEpoch_ = 0;
    std::uint64_t generation_ = 0; ///< of the connection
    std::uint64_t questions_ = 0;
    TimePoint timerAt_ = TimePoint::max();
};

} // namespace redislock::simulation
