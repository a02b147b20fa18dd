/// @file
/// A run with one fair lock that threads of two languages use.
#pragma once

#include "redislock/random.hpp"
#include "simulation/keyspace.hpp"
#include "simulation/lua_runtime.hpp"
#include "simulation/request.hpp"
#include "simulation/simulated.hpp"
#include "support/redisson_fair_lock.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace redislock::simulation {

/// Threads of ours and of Redisson's wait for one fair lock, have it, give up, stand still and die. Our threads run the
/// library's scripts; Redisson's threads take the steps of Redisson's scripts, by the clocks of their machines, which
/// are off by up to 30 s. Messages get lost. In some runs the server's clock is set back.
///
/// The run judges: exclusion (S1); that nobody is let in before a waiter of ours that came earlier and asked in time
/// (T6); that no time of ours is further ahead than the waiters before it justify (T6); that a live thread takes a free
/// lock (T4); that times of Redisson's are left alone (S5); times to live (R4) and the remaining keys in the end (R1).
class MixedQueueWorld final : public Simulated {
public:
    MixedQueueWorld(LuaRuntime& lua, std::uint64_t seed, bool traced);

    void run() override;
    [[nodiscard]] const Statistics& statistics() const noexcept override { return statistics_; }
    [[nodiscard]] const Trace& trace() const noexcept override { return trace_; }

private:
    enum class State : std::uint8_t { idle, waiting, holding, dead };
    struct Thread {
        bool isOurs = true;
        std::string holder;
        std::int64_t clockIsAheadMs = 0; ///< of Redisson's: ahead of the server's clock, when a run begins
        State state = State::idle;
        std::int64_t allowanceMs = 0; ///< of Redisson's that waits: what its place adds to the times behind it
        bool wasSlow = false;         ///< of ours that waits: it once asked too late
        /// Of ours that waits: since it asked, Redisson took off its time what our scripts could not know exactly, and
        /// may take it out of the queue before its turn. The next script of ours puts it back.
        bool mayBeOut = false;
        std::int64_t lastAskedMs = 0; ///< of ours that waits,
        std::uint64_t step = 0;       ///< a change makes earlier plans void
        std::uint64_t asking = 0;     ///< the same, for its requests
        std::uint32_t requests = 0;   ///< of ours: the number of requests
    };
    using Plan = void (MixedQueueWorld::*)(Thread&);

    // time
    [[nodiscard]] std::int64_t trueMs() const noexcept;
    [[nodiscard]] std::int64_t serverMs() const noexcept { return trueMs() + serverIsAheadMs_; }
    /// Ms since 1970 by the clock of a machine of Redisson's.
    [[nodiscard]] std::int64_t clockOf(const Thread& thread) const noexcept;
    void plan(Thread& thread, std::int64_t inMs, Plan what);
    [[nodiscard]] std::int64_t drawn(std::int64_t meanMs);

    // threads
    void born(Thread& thread);
    void begin(Thread& thread);
    void ask(Thread& thread);
    void askOurs(Thread& thread);
    void askRedissons(Thread& thread);
    void giveUp(Thread& thread);
    void granted(Thread& thread);
    void renew(Thread& thread);
    void release(Thread& thread);
    void die(Thread& thread);
    void rest(Thread& thread);
    std::int64_t told(const std::string& channel, const std::string& message);
    std::int64_t tell(Thread& thread, Plan what);
    void take(Thread& thread);
    /// Redisson takes the allowance of a waiter off the times of others.
    void leaves(const Thread& redissons);
    Reply runScript(detail::ScriptUse detail::KindTraits::*use, std::vector<std::string> arguments);

    // judgements
    void checkTimesToLive(bool isDue) const;
    void checkTimeOf(const Thread& thread) const;
    void checkFree();
    void checkResidue();
    [[nodiscard]] const std::string* recordOf(const std::string& waiter) const;
    [[nodiscard]] std::int64_t aheadMs(const std::string& waiter) const;
    [[nodiscard]] std::int64_t longestTurnMs(const std::string& redissons) const;
    [[nodiscard]] bool lacksTime(std::size_t which) const;
    [[nodiscard]] const Thread* threadOf(const std::string& holder) const;
    [[nodiscard]] std::map<std::string, std::int64_t> timesOfRedissons() const;

    LuaRuntime& lua_;
    Random chance_;
    Scheduler scheduler_;
    Trace trace_;
    Statistics statistics_;
    Keyspace keyspace_;
    test::RedissonFairLock redissons_;
    std::vector<std::unique_ptr<Thread>> threads_; ///< the dead as well
    std::vector<Thread*> arrived_; ///< live waiters, in order of arrival; of Redisson's: those with a place
    std::string lastHolder_;
    std::uint64_t born_ = 0;
    std::int64_t serverIsAheadMs_ = 0;
    std::optional<std::int64_t> freeSinceMs_; ///< with a waiter of ours, no new fault
    std::int64_t mostFreeMs_ = 0;             ///< for so long it may be free then
    std::int64_t meanThinkMs_, meanHoldMs_;
    double longHold_, dies_, givesUp_;
    /// Whether a thread's waits differ in length. If a thread of Redisson's comes again at once, our scripts may then
    /// take it for its earlier wait, which may cost one of ours its place (doc/keys.md).
    bool waitsDiffer_;
    bool listens_; ///< whether our client listens to grants
    double messageLost_, standsStill_;
    bool wasMixed_ = false; ///< at the last script of ours: Redisson's keys then had no times to live
    bool isOver_ = false;
};

} // namespace redislock::simulation
