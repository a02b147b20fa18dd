/// @file
/// A thread of a simulated program that uses semaphores and latches.
#pragma once

#include "core/counter/counter_requests.hpp"
#include "core/counter/permit_requests.hpp"
#include "redislock/lease_time.hpp"
#include "simulation/counter_call.hpp"
#include "simulation/latch_checker.hpp"
#include "simulation/permit_checker.hpp"
#include "simulation/sim_thread.hpp"
#include "simulation/trace.hpp"

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <vector>

namespace redislock::simulation {

/// How threads use semaphores and latches in one run: drawn anew for each seed.
struct CounterWorkload {
    /// The name of a counter. When the counter is taken away from outside, the next generation has another name.
    struct Subject {
        CounterKind kind{};
        std::int64_t size = 1; ///< permits, or what a latch counts
        std::string stem{};
        std::uint32_t generation = 1;

        [[nodiscard]] std::string name() const;
    };

    explicit CounterWorkload(Random& chance);

    std::vector<Subject> subjects;
    std::chrono::milliseconds meanThink;
    std::chrono::milliseconds meanHold;
    double question;
    double nonExpiring; ///< how many leases do not expire
    double longHold;    ///< how many permits are held for about as long as the longest lease
    double calledOff;   ///< how many waits are called off
};

/// Acquires permits, several at a time, gives them back, changes leases, counts down, waits, asks; checks all results.
class CounterActor {
public:
    struct World { ///< the surroundings of the actor
        Scheduler& scheduler;
        PermitChecker& permits;
        LatchChecker& latches;
        Trace& trace;
        Statistics& statistics;
    };

    CounterActor(const World& world, SimClient& client, const CounterWorkload& workload, std::uint64_t number,
                 std::uint64_t seed);
    CounterActor(const CounterActor&) = delete;
    CounterActor& operator=(const CounterActor&) = delete;
    ~CounterActor();

    /// Ends its wait, gives back its permits and begins nothing new.
    void stop();
    [[nodiscard]] bool isIdle() const noexcept { return stopping_ && thread_.call() == nullptr && held_.empty(); }
    [[nodiscard]] const ThreadCall* operation() const noexcept { return thread_.call(); }
    /// The present wait, if it can be ended; null: none.
    [[nodiscard]] const CounterWait* waiting() const noexcept { return waiting_; }
    /// A name for that wait, different from all others.
    [[nodiscard]] std::string waitName() const;

private:
    struct Held {
        std::shared_ptr<NamedCounter> counter;
        std::string who; ///< the permit's id, of one with a lease
        std::int64_t permits;
        std::shared_ptr<detail::PermitHold> hold{}; ///< of one with a lease
    };

    // calls
    void pause(std::chrono::nanoseconds span);
    void begin(std::unique_ptr<ThreadCall> operation, std::function<void()> then);
    template <class Result>
    void ask(detail::CounterRequest<Result> request, std::function<void(const Result&)> then);
    void await(detail::CounterOrder order, std::function<void(const CounterWait&)> granted);
    void callOffSoon();

    // actions
    void decide();
    void use();
    void useSemaphore(std::int64_t size);
    void usePermits();
    void useLatch(std::int64_t size);
    void make(std::int64_t size);
    void giveBack();
    void changeLease(const Held& held);

    void hold(Held held);
    void believe(const Held& held);
    void forget(const Held& held);
    [[nodiscard]] std::string nextGrant();
    [[nodiscard]] Wait drawWait();
    [[nodiscard]] Lease drawLease();
    [[nodiscard]] std::chrono::nanoseconds around(std::chrono::milliseconds mean);

    World world_;
    SimClient& client_;
    const CounterWorkload& workload_;
    const std::uint64_t number_;
    Random chance_;

    std::shared_ptr<NamedCounter> counter_; ///< of the call under way
    std::vector<Held> held_;
    std::set<const NamedCounter*> made_;
    SimThread thread_;
    CounterWait* waiting_ = nullptr; ///< the call under way, if it can be ended
    bool stopping_ = false;
    std::uint64_t grants_ = 0;
    std::uint64_t waits_ = 0;
};

} // namespace redislock::simulation
