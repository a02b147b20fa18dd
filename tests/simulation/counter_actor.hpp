/// @file
/// A thread of a simulated program that uses semaphores and latches.
#pragma once

#include "simulation/counter_scripts.hpp"
#include "simulation/latch_checker.hpp"
#include "simulation/permit_checker.hpp"
#include "simulation/sim_thread.hpp"
#include "simulation/trace.hpp"

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace redislock::simulation {

/// How threads use semaphores and latches in one run: drawn anew for each seed.
struct CounterWorkload {
    /// A name, until it is taken away from outside: then the next generation has another one.
    struct Subject {
        Counter::Kind kind{};
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
};

/// Acquires permits, several at a time, gives them back, changes leases, counts down, waits, asks; checks what it is told.
class CounterActor {
public:
    struct World { ///< what it lives in
        Scheduler& scheduler;
        PermitChecker& permits;
        LatchChecker& latches;
        Trace& trace;
        Statistics& statistics;
    };

    CounterActor(const World& world, CounterClient& client, const CounterWorkload& workload, std::uint64_t number,
                 std::uint64_t seed);
    CounterActor(const CounterActor&) = delete;
    CounterActor& operator=(const CounterActor&) = delete;
    ~CounterActor();

    /// Ends what it waits for, gives back what it has and begins nothing new.
    void stop();
    [[nodiscard]] bool isIdle() const noexcept { return stopping_ && thread_.call() == nullptr && held_.empty(); }
    [[nodiscard]] const Awaiting* operation() const noexcept { return thread_.call(); }

private:
    struct Held {
        Counter* counter;
        std::string who; ///< the permit's id, of one with a lease
        std::int64_t permits;
        TimePoint until = TimePoint::max();
        std::uint64_t changes = 0; ///< of its lease, so far
        std::uint32_t open = 0;    ///< requests for it of which a copy may still arrive
    };
    using Next = void (CounterActor::*)();

    // calls
    void pause(std::chrono::nanoseconds span);
    void begin(std::unique_ptr<Awaiting> operation, Next next);
    void ask(const CounterScript& script, Next next);
    void askRecorded(const RecordedScript& script, Next next, std::optional<CounterScript> afterwards = {},
                     Situation asking = Situation::queryAsking);
    void await(CounterOrder order, Next next);

    // what it does
    void decide();
    void use();
    void useSemaphore(std::int64_t size);
    void usePermits();
    void useLatch(std::int64_t size);
    void giveBack();
    void changeLease(Held& held);
    [[nodiscard]] std::string keepFor(std::uint32_t open) const;

    // what comes of it
    void made();
    void acquired();
    void permitAcquired();
    void drained();
    void released();
    void leaseChanged();
    void countedDown();
    void passed();
    void asked();

    void hold(Held held);
    void believe(const Held& held);
    void forget(const Held& held);
    [[nodiscard]] Wait drawWait();
    [[nodiscard]] PermitLease drawLease();
    [[nodiscard]] std::chrono::nanoseconds around(std::chrono::milliseconds mean);
    [[nodiscard]] CounterQuestion& question() { return static_cast<CounterQuestion&>(*thread_.call()); }
    [[nodiscard]] CounterWait& wait() { return static_cast<CounterWait&>(*thread_.call()); }

    World world_;
    CounterClient& client_;
    const CounterWorkload& workload_;
    const std::uint64_t number_;
    Random chance_;

    Counter* counter_ = nullptr; ///< of the call under way
    std::vector<Held> held_;
    std::set<const Counter*> made_;
    std::string id_;    ///< of the permit that is asked for
    PermitLease lease_; ///< that it shall have
    std::int64_t permits_ = 0;
    SimThread thread_;
    CounterWait* waiting_ = nullptr; ///< the call under way, if it can be ended
    bool stopping_ = false;
    std::uint64_t grants_ = 0;
};

} // namespace redislock::simulation
