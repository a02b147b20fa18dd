/// @file
/// What a client knows about its locks, and what it decides.
#pragma once

#include "core/confirming.hpp"
#include "core/counter/counters.hpp"
#include "core/hold.hpp"
#include "core/machine/acquire_machine.hpp"
#include "core/operation/background_run.hpp"
#include "core/order.hpp"
#include "core/port.hpp"
#include "core/releasing.hpp"
#include "core/renewing.hpp"
#include "core/share/inheritance.hpp"
#include "core/share/waking.hpp"
#include "redislock/config.hpp"
#include "redislock/hold_ref.hpp"
#include "redislock/observer.hpp"
#include "redislock/random.hpp"
#include "redislock/stop_at.hpp"

#include <boost/unordered/unordered_flat_set.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <new>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redislock::detail {

class ShutdownFlow;

/// What the name of a channel begins with where it is not only that: `>` for a sharded channel, `*` for the sharded and
/// the other of that name. The scripts, and the connections that listen, take it off.
constexpr std::string_view channelMarkOf(const Config& config) noexcept
{
    const bool isClassic = config.cluster.empty() || config.notifications == Notifications::classic;
    return isClassic ? "" : config.notifications == Notifications::both ? "*" : ">";
}

/// The locks of one client: names, holds, and what becomes of them. The core reaches connections, threads and the clock
/// only through its port. The port's rules apply: all functions are called one at a time, under one mutex.
class Core {
public:
    Core(Port& outside, const Config& settings, std::string client, std::uint64_t seed);
    Core(const Core&) = delete;
    Core& operator=(const Core&) = delete;

    Port& port;
    const Config& config;
    const std::string id;               ///< the client's id: its holders' names in Redis begin with it
    const std::string_view channelMark; ///< what channels begin with: see channelMarkOf()
    Random random;
    Waking waking{*this};
    Inheritance inheritance{*this};
    Releasing releasing{*this};
    Renewing renewing{*this};
    Confirming confirming{*this};
    Counters counters{*this};
    DueHeap<BackgroundRun, &BackgroundRun::slot> runs; ///< all that wait, by the end of their waits
    TimePoint silentSince{}; ///< the server's last answer when a waiter gave up for its silence; 0: it answered since
    Reason silence = Errc::unreachable; ///< why the last acquire that got no answer got none

    // names
    /// @return the lock known by that name and kind; null: there was none, and @p fresh is the known one from now on.
    std::shared_ptr<NamedLock> knownOrAdd(NamedLock& fresh);
    void forget(NamedLock& named) noexcept;
    /// Other clients want the name too: keeps what is known about its turns even if no object of it lives; for the last
    /// 64 names.
    void remember(NamedLock& named) noexcept;

    // holds, and requests about them
    HoldRef takeHold(NamedLock& named, std::uint64_t caller, Lane lane);
    /// Keeps a hold that nobody else uses any more for reuse. @return what to destroy without the mutex.
    std::shared_ptr<NamedLock> recycle(HoldRef& hold) noexcept;
    std::shared_ptr<HoldCall> takeCall(Hold& hold);
    /// An operation is over. @param call its request. The caller has another reference to the hold.
    void putBack(std::shared_ptr<HoldCall> call) noexcept;

    // acquiring
    [[nodiscard]] AcquireMachine::Settings settingsFor(Wait wait, std::chrono::milliseconds lease) const noexcept;
    /// A thread's hold, if it is valid. A hold whose time is over is lost here, if the alarm has not come to it yet.
    Hold* validHold(NamedLock& named, std::uint64_t caller);
    /// A thread's valid hold of the name by another kind of lock (of a read/write lock: the other half), for whose end
    /// an acquire of this kind would wait instead of being refused. Null if there is none.
    Hold* holdOfOtherKind(NamedLock& named, std::uint64_t caller);
    void grant(Hold& hold, std::uint32_t level, const AcquireResult& result);

    // ending
    /// The level that a thread's unlock() ends. @param unlockOwed if there is none: whether the thread lost what it had
    Acquired innermostOf(NamedLock& named, std::uint64_t caller, bool& unlockOwed);
    /// Whether a level can still be given back.
    [[nodiscard]] bool isHeld(const Acquired& acquired);

    // losing
    /// A held hold is over: makes it lost.
    void lose(Hold& hold, LossReason reason);
    /// Makes a hold lost whose time is over.
    void expire(Hold& hold) { lose(hold, reasonOfEnd(hold)); }
    /// Why a hold ends when it is not renewed any more.
    [[nodiscard]] LossReason reasonOfEnd(const Hold& hold) const noexcept;
    /// The leases of the outer levels of a hold were over before the inner level ended: reports the outer ones as lost.
    void loseRest(Hold& hold);
    /// A request that ends a holder of this client by force is about to be sent. It may come late, so the holder is not
    /// inherited by another caller from now on.
    void forces(NamedLock& named, std::string_view holder);
    /// The holds of this client that forceUnlock() ended are lost now, not only at their next renewal: that of the
    /// holder and, of a read lock, those of the other readers. @param call the request with its answer. Other readers
    /// keep their holds if an earlier try freed the lock, or if they came after the request: it is not known whether
    /// they were ended
    void loseForced(NamedLock& named, std::string_view holder, const Call& call);

    /// A token that is stopped when the hold is lost, or at risk; already stopped if the hold is that now.
    std::stop_token stopToken(Hold& hold, StopAt when);
    static std::stop_token stoppedToken();

    // news
    /// A connection was made anew that had ended: perhaps to another server, perhaps to one that has lost what it had.
    /// Has all holds confirmed, and lets the first waiter of each name try once. @param where only names of these
    /// slots; null: all
    void unsettle(const SlotSet* where = nullptr);

    // the alarm
    /// Calls the run's timeIsOver() at that time, instead of at the time asked for before.
    void wakeAt(TimePoint when, BackgroundRun& run);
    /// Sets the alarm, unless it goes off before. Leaving it set after its reason is gone is cheaper than setting one
    /// for each lock.
    void arm() noexcept;
    /// The alarm goes off: continues the runs whose time has come, judges deadlines, sends renewals. Background thread.
    void ring();
    /// Asks for the alarm again, after an exception.
    void recover() noexcept;

    // the client's end
    /// Something is under way for which the client's end waits.
    void begins() noexcept { ++underWay_; }
    void ends() noexcept;
    void begins(Waiter& waiter) noexcept;
    void ends(Waiter& waiter) noexcept;
    [[nodiscard]] bool isAnythingUnderWay() const noexcept { return underWay_ > 0; }
    /// Loses the holds and ends the waiters. @return what to destroy without the mutex.
    std::vector<std::shared_ptr<NamedLock>> close();
    [[nodiscard]] bool isClosing() const noexcept { return closing_; }
    /// The connections are about to end: cancels the runs that only sleep.
    void endRuns();
    ShutdownFlow* shutdown = nullptr; ///< is told when nothing is under way

    /// The hold's name in Redis.
    [[nodiscard]] std::string holderText(const Hold& hold) const;
    /// Tells the observer of a hold, or (@p holder) of another's that has the lock instead. Costs nothing without an
    /// observer, and fails nothing: it is not told what there is no memory for.
    template <class What>
    void tellOf(const Hold& hold, What what) noexcept
    try {
        if (config.observer) {
            tellObserverOf(hold, holderText(hold), std::move(what));
        }
    } catch (...) {
    }
    template <class What>
    void tellOf(const Hold& hold, const std::string& holder, What what) noexcept
    try {
        if (config.observer) {
            tellObserverOf(hold, holder, std::move(what));
        }
    } catch (...) {
    }
    /// As tellOf(), but not of a member: the observer is told of its group.
    template <class What>
    void tellOfWhole(const Hold& hold, What what)
    {
        if (!hold.isMember) {
            tellOf(hold, std::move(what));
        }
    }

private:
    static constexpr std::size_t maxDebts = 1024;
    static constexpr std::size_t maxSharedNames = 64;
    static constexpr std::size_t maxIdle = 128; ///< holds, and calls, kept for the next operations

    /// A name is stored in its NamedLock alone; each kind has its own.
    struct NameKey {
        LockKind kind;
        std::string_view name;

        friend bool operator==(const NameKey&, const NameKey&) noexcept = default;
    };
    struct NameHash {
        using is_transparent = void;
        std::size_t operator()(const NameKey& key) const noexcept
        {
            return std::hash<std::string_view>()(key.name) + static_cast<std::size_t>(key.kind);
        }
        std::size_t operator()(const NamedLock* named) const noexcept { return operator()(keyOf(*named)); }
    };
    struct NameEqual {
        using is_transparent = void;
        bool operator()(const NamedLock* a, const NamedLock* b) const noexcept { return keyOf(*a) == keyOf(*b); }
        bool operator()(const NameKey& a, const NamedLock* b) const noexcept { return a == keyOf(*b); }
        bool operator()(const NamedLock* a, const NameKey& b) const noexcept { return keyOf(*a) == b; }
    };
    /// What threads still owe of a name that nobody uses.
    struct OwedUnlocks {
        LockKind kind;
        std::string name;
        LocalLock<Hold, HoldRef> owed;
    };
    static NameKey keyOf(const NamedLock& named) noexcept { return {named.kind, named.name}; }

    void joinOtherKinds(NamedLock& named);
    void tellObserverOf(const Hold& hold, const std::string& holder,
                        const std::function<void(Observer&, const LockEvent&)>& what);
    void tellLoss(Hold& hold, LossReason reason);

    boost::unordered_flat_set<NamedLock*, NameHash, NameEqual> names_; ///< a lock is in it until its destructor
    std::vector<HoldRef> idleHolds_;
    std::vector<std::shared_ptr<HoldCall>> idleCalls_;
    std::deque<OwedUnlocks> debts_;                      ///< for late unlock() calls, also after the client's end
    std::deque<std::shared_ptr<NamedLock>> sharedNames_; ///< kept for their turns
    std::size_t underWay_ = 0;                           ///< releases, and acquires that would have to be released
    TimePoint armed_ = TimePoint::max();
    bool closing_ = false;
};

/// Something is under way for whose end the client's shutdown waits, within its time: what it may leave in Redis is
/// still to be taken back.
class Underway {
public:
    explicit Underway(Core& core) noexcept : core_(&core) { core.begins(); }
    Underway(Underway&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
    Underway& operator=(Underway&&) = delete;
    /// Expects the mutex to be free.
    ~Underway()
    {
        if (core_ != nullptr) {
            const Inside lock(core_->port);
            core_->ends();
        }
    }

private:
    Core* core_;
};

} // namespace redislock::detail
