/// @file
/// A client: the library's machines and structures, driven as `src/runtime` drives them.
#pragma once

#include "redislock/config.hpp"
#include "redislock/detail/logic/acquire_machine.hpp"
#include "redislock/lease_time.hpp"
#include "redislock/unlocked.hpp"
#include "simulation/sim_connection.hpp"
#include "simulation/sim_hold.hpp"
#include "simulation/sim_subscriber.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace redislock::simulation {

/// The state that the threads of one simulated process share. One function for each of the engine's, the watchdog's and
/// of waking, under the same name; what is one critical section there is one event here.
class SimClient {
public:
    struct World { ///< what it lives in
        Scheduler& scheduler;
        Network& network;
        SafetyChecker& checker;
        Trace& trace;
    };

    SimClient(const World& world, std::shared_ptr<Host> host, const Config& config, const std::vector<View>& views,
              std::uint64_t seed);
    SimClient(const SimClient&) = delete;
    SimClient& operator=(const SimClient&) = delete;
    ~SimClient();

    [[nodiscard]] Host& host() noexcept { return *host_; }
    [[nodiscard]] const Config& config() const noexcept { return config_; }
    [[nodiscard]] Random& random() noexcept { return random_; }
    [[nodiscard]] SimConnection& commands() noexcept { return commands_; }
    [[nodiscard]] NamedLock& named(std::size_t index) noexcept { return *names_[index]; }
    [[nodiscard]] std::size_t names() const noexcept { return names_.size(); }
    [[nodiscard]] SafetyChecker& checker() noexcept { return world_.checker; }
    [[nodiscard]] Trace& trace() noexcept { return world_.trace; }
    [[nodiscard]] VirtualTime trueTime() const noexcept { return world_.scheduler.now(); }

    // acquiring
    std::shared_ptr<Hold> takeHold(NamedLock& named, std::uint64_t owner);
    void grant(Hold& hold, std::uint32_t level, const detail::AcquireResult& result);
    Hold* otherHalf(const NamedLock& named, std::uint64_t owner);
    Hold* validHold(NamedLock& named, std::uint64_t owner);
    [[nodiscard]] detail::AcquireMachine::Settings settingsFor(Wait wait, Lease lease) const noexcept;
    [[nodiscard]] std::chrono::milliseconds leaseTime(Lease lease) const noexcept;
    void prepareLock(Call& call, std::chrono::milliseconds lease, std::uint32_t count, Situation situation);
    void prepareUnlock(Call& call, std::chrono::milliseconds lease, std::uint32_t count);

    // releasing
    bool endUnawaited(Hold& hold, std::uint32_t level);
    void correctCount(Hold& hold, bool unknown);
    void giveUp(Hold& hold);
    template <class Act>
    void forEachKind(const NamedLock& of, Act act)
    {
        for (const auto& named : names_) {
            if (named->name == of.name) {
                act(*named);
            }
        }
    }
    void giveBack(Hold& hold, TimePoint until);
    static detail::ReleaseMachine unawaitedRelease(TimePoint validUntil) noexcept;
    void startRelease(Hold& hold, const detail::ReleaseMachine& machine, std::shared_ptr<Call> behind);
    void releaseAnswered(Hold& hold);
    std::shared_ptr<Call> takeCommand(Hold& hold);
    void putBackCommand(const Call& call) noexcept;
    void lose(Hold& hold, const char* by);
    void loseRest(Hold& hold);

    // waking
    void subscribe(NamedLock& named);
    void subscribe(NamedLock& named, Waiter& waiter);
    void unsubscribe(NamedLock& named);
    void unsubscribe(NamedLock& named, Waiter& waiter);
    static void wakeWaiters(NamedLock& named, std::uint64_t of);
    std::shared_ptr<Call> handOn(Waiter* next);
    std::shared_ptr<Call> submitFor(Waiter& waiter);
    std::shared_ptr<Call> handOnFairly(NamedLock& named);
    void noteAudience(const Call& call);
    static Waiter* nextOf(const NamedLock& named);
    static void wakeNext(NamedLock& named);

    // watchdog
    void watch(Hold& hold, TimePoint sentAt);

    /// What the checker must know when a hold's deadline changed.
    void tellBelief(Hold& hold);
    std::uint64_t nextRequest() noexcept { return ++lastRequest_; }

    /// The states of the machines that no thread drives.
    void forEachSituation(const std::function<void(Situation, const std::string& name)>& tell) const;
    /// The moment of the last trouble with the server, as far as it can be known: what is noted by the world.
    VirtualTime lastTrouble{0};
    /// Whether anything is left that belongs to no hold and no thread.
    [[nodiscard]] std::string residue() const;

private:
    void onChannel(Listener listener, SimSubscriber::Table::Incoming::Kind kind);
    void step(Hold& hold, const detail::ReleaseMachine::Event& event, std::shared_ptr<Call> behind);
    void tellCount(const std::shared_ptr<Call>& call, const detail::ReleaseMachine::Event& event);
    void nestedAnswered(const std::shared_ptr<Call>& call);

    void forget(Hold& hold);
    [[nodiscard]] bool mustRenew(const Hold& hold, TimePoint now) const;
    void setDeadline(Hold& hold);
    void apply(Hold& hold, const detail::RenewMachine::Action& action);
    void renewed(Call& call);
    void armRenewals();
    void armDeadlines();
    void renewDue();
    void judge();
    void checkResilience(const Hold& hold) const;

    World world_;
    std::shared_ptr<Host> host_;
    const Config config_;
    Random random_;
    std::uint64_t lastHolder_ = 0;
    std::uint64_t lastRequest_ = 0;
    std::vector<std::unique_ptr<NamedLock>> names_;
    SimConnection commands_;
    SimConnection renewalConnection_;
    SimSubscriber subscriber_;
    detail::DueHeap<Hold, &Hold::renewalSlot> renewals_;
    detail::DueHeap<Hold, &Hold::deadlineSlot> deadlines_;
    TimePoint renewalsArmed_ = TimePoint::max();
    TimePoint deadlinesArmed_ = TimePoint::max();
    std::vector<std::weak_ptr<Hold>> releasing_; ///< holds with an unawaited release under way
};

/// What a finished release means to its machine.
detail::ReleaseMachine::Event unlockEvent(const Call& call, TimePoint now);

} // namespace redislock::simulation
