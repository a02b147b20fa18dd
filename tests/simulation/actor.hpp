/// @file
/// A thread of a simulated program.
#pragma once

#include "simulation/sim_thread.hpp"
#include "simulation/thread_call.hpp"

#include <memory>
#include <string>
#include <vector>

namespace redislock::simulation {

/// How threads use locks in one run: drawn anew for each seed.
struct Workload {
    explicit Workload(Random& chance);

    std::vector<View> views; ///< the locks
    std::chrono::milliseconds meanThink;
    std::chrono::milliseconds meanHold;
    double longHold;            ///< how many holds last about as long as their lease
    double nested;              ///< how often a thread that holds the lock locks it again
    double guard;               ///< how many levels are ended by guards
    double fixedLease;          ///< how many leases are not renewed
    double question;            ///< how many calls are questions
    double forceUnlock;         ///< how many calls are releases by force
    double started;             ///< how many outermost acquires are asynchronous
    double policy;              ///< how many acquires of a lock whose release publishes use a policy
    double calledOff;           ///< how many acquires that a thread waits for are called off
    double pace = 1;            ///< how many times as long the threads pause
    double durable = 0;         ///< how many acquires ask for replicas
    std::uint32_t replicas = 0; ///< that there are

    /// The names of the locks, each once.
    [[nodiscard]] std::vector<std::string> names() const;
    /// Whether there are kinds in which a dead waiter (of a fair lock, or a writer) keeps its place, and so keeps
    /// others waiting.
    [[nodiscard]] bool keepsPlaces() const noexcept;
};

/// Locks, works, nests, unlocks, asks; checks all results.
class Actor {
public:
    Actor(SimClient& client, const Workload& workload, std::uint64_t number, std::uint64_t seed,
          Statistics& statistics);
    Actor(const Actor&) = delete;
    Actor& operator=(const Actor&) = delete;

    /// The actor ends its holds and begins nothing new.
    void stop() noexcept { stopping_ = true; }
    [[nodiscard]] bool isIdle() const noexcept { return stopping_ && thread_.call() == nullptr && levels_.empty(); }
    /// Locks and unlocks once; only while idle. The actor isIdle() again afterwards, unless this failed.
    void probe(std::size_t view);

    [[nodiscard]] const ThreadCall* operation() const noexcept { return thread_.call(); }
    [[nodiscard]] const std::string& name() { return named().name; }

private:
    struct Level {
        HoldRef hold;
        std::uint32_t id;
        detail::EndedBy endedBy;
        bool isStarted; ///< of an asynchronous acquire: no thread's
    };
    using Next = void (Actor::*)();

    void pause(std::chrono::nanoseconds span);
    void decide();
    void begin(std::unique_ptr<ThreadCall> operation, Next next);
    void acquire(std::size_t view);
    template <class Call, class... Arguments>
    void beginAcquire(Next next, Arguments&&... arguments);
    void callOffSoon();
    void ask();
    void endLevel();
    void unlock(NamedLock& named);
    void endGuard(std::size_t level);
    void check();

    void acquired();
    void released();
    void asked();
    void forced();
    void probed();
    bool note();

    [[nodiscard]] NamedLock& named() { return client_.named(view_); }
    [[nodiscard]] std::size_t oneOfName();
    [[nodiscard]] std::shared_ptr<const RetryPolicy> drawPolicy();
    [[nodiscard]] Durability drawDurability(Lease lease);
    [[nodiscard]] std::chrono::nanoseconds around(std::chrono::milliseconds mean);
    [[nodiscard]] std::chrono::nanoseconds thinkTime();
    [[nodiscard]] std::chrono::nanoseconds holdTime();

    SimClient& client_;
    const Workload& workload_;
    const std::uint64_t number_;
    Random chance_;
    Statistics& statistics_;

    std::size_t view_ = 0;                 ///< of the call under way, or the last one
    std::vector<Level> levels_;            ///< not ended, innermost last; some of them may be lost
    detail::EndedBy endedBy_{};            ///< of the acquire under way
    const Acquiring* acquiring_ = nullptr; ///< likewise; null: there is none
    std::uint64_t acquires_ = 0;           ///< that were begun
    bool isStarted_ = false;               ///< likewise
    SimThread thread_;
    bool stopping_ = false;
    bool probing_ = false;
};

} // namespace redislock::simulation
