/// @file
/// What a client knows of its locks, and decides.
#pragma once

#include "logic/call/port.hpp"
#include "logic/counter/counters.hpp"
#include "logic/lock/hold.hpp"
#include "logic/lock/order.hpp"
#include "logic/lock/passing.hpp"
#include "logic/lock/releasing.hpp"
#include "logic/lock/renewing.hpp"
#include "logic/lock/waking.hpp"
#include "redislock/config.hpp"
#include "redislock/detail/logic/acquire_machine.hpp"
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
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redislock::detail {

/// The locks of one client: names, holds, and what becomes of them. It knows no connection, thread or clock but through
/// its port, whose rules are these: all functions are called under one mutex, one at a time.
class Core {
public:
    Core(Port& outside, const Config& settings, std::string client, std::uint64_t seed);
    Core(const Core&) = delete;
    Core& operator=(const Core&) = delete;

    Port& port;
    const Config& config;
    const std::string id; ///< of the client, with which its holders' names begin
    Random random;
    Waking waking{*this};
    Passing passing{*this};
    Releasing releasing{*this};
    Renewing renewing{*this};
    Counters counters{*this};
    TimePoint silentSince{}; ///< a waiter ended because the server had not answered since then; 0: it did again
    Reason silence = Errc::unreachable; ///< why the last acquire that got no answer got none

    // names
    /// @return the one that is known of that name and kind; null: none was, and this one is from now on.
    std::shared_ptr<NamedLock> knownOrAdd(NamedLock& fresh);
    void forget(NamedLock& named) noexcept;
    /// Others want it too: how it is shared with them stays known though no object of it lives; of the last 64 names.
    void remember(NamedLock& named) noexcept;

    // holds, and requests about them
    HoldRef takeHold(NamedLock& named, std::uint64_t caller, Lane lane);
    /// Keeps a hold that nobody else uses any more for another one. @return what to destroy without the mutex.
    std::shared_ptr<NamedLock> recycle(HoldRef&& hold) noexcept;
    std::shared_ptr<HoldCall> takeCall(Hold& hold);
    /// An operation is over. @param call its request; the caller has another reference to its hold.
    void putBack(std::shared_ptr<HoldCall> call) noexcept;

    // acquiring
    [[nodiscard]] AcquireMachine::Settings settingsFor(Wait wait, std::chrono::milliseconds lease) const noexcept;
    /// A thread's hold, if it is valid; one whose time is over is lost here if the alarm did not come to it yet.
    Hold* validHold(NamedLock& named, std::uint64_t caller);
    /// A thread's valid hold of the name by another kind, that a hold of this kind would wait for instead of being
    /// refused: of a read/write lock the other half. Null without one.
    Hold* holdOfOtherKind(NamedLock& named, std::uint64_t caller);
    void grant(Hold& hold, std::uint32_t level, const AcquireResult& result);

    // ending
    /// What a thread's unlock() ends. @param owed of one that has nothing to end: whether it lost what it had
    Acquired innermostOf(NamedLock& named, std::uint64_t caller, bool& owed);
    /// Whether a level can still be given back.
    [[nodiscard]] bool isHeld(const Acquired& acquired);

    // losing
    /// A held hold is over: its final state.
    void lose(Hold& hold, LossReason reason);
    /// As much, of one whose time is over.
    void expire(Hold& hold) { lose(hold, reasonOfEnd(hold)); }
    /// Why a hold ends when it is not renewed any more.
    [[nodiscard]] LossReason reasonOfEnd(const Hold& hold) const noexcept;
    /// The outer levels of a hold were over before the inner one ended.
    void loseRest(Hold& hold);
    /// A holder of this client is to be ended by force, and by nothing but that request, however late it comes.
    void forces(NamedLock& named, std::string_view holder);
    /// Holds of this client that were ended by force are lost now, not only at their next renewal: that of the holder,
    /// and those of others who read. @param call its answer; where an earlier try did it, or a reader came later,
    /// nobody knows of the others
    void loseForced(NamedLock& named, std::string_view holder, const Call& call);

    /// A token that is stopped when the hold is lost, or at risk; one that is stopped already when it is.
    std::stop_token stopToken(Hold& hold, StopAt when);
    static std::stop_token stoppedToken();

    /// A request that no thread waits for has ended. Without the mutex; any thread.
    void finished(HoldCall& call) noexcept;

    // the client's end
    /// Something is under way that it waits for.
    void begins() noexcept { ++underWay_; }
    void ends() noexcept;
    void begins(Waiter& waiter) noexcept;
    void ends(Waiter& waiter) noexcept;
    [[nodiscard]] bool isAnythingUnderWay() const noexcept { return underWay_ > 0; }
    /// Holds are lost, waiters are told. @return what to destroy without the mutex.
    std::vector<std::shared_ptr<NamedLock>> close();
    [[nodiscard]] bool isClosing() const noexcept { return closing_; }

    /// The hold's name in Redis.
    [[nodiscard]] std::string holderText(const Hold& hold) const;
    /// Of a hold, or (@p holder) of the one that has the lock instead. Without an observer this costs nothing.
    template <class What>
    void tellOf(const Hold& hold, What what)
    {
        if (config.observer) {
            tellObserverOf(hold, holderText(hold), std::move(what));
        }
    }
    template <class What>
    void tellOf(const Hold& hold, std::string holder, What what)
    {
        if (config.observer) {
            tellObserverOf(hold, std::move(holder), std::move(what));
        }
    }
    /// As tellOf(); of a member the group is told of instead.
    template <class What>
    void tellOfWhole(const Hold& hold, What what)
    {
        if (!hold.isMember) {
            tellOf(hold, std::move(what));
        }
    }

private:
    static constexpr std::size_t maxLostNames = 1024;
    static constexpr std::size_t maxSharedNames = 64;
    static constexpr std::size_t maxIdle = 128; ///< holds, and calls, kept for the next operations

    /// What the end of a request left. Let go of without the mutex, and last: it may be what keeps the client.
    struct Finished {
        HoldRef hold;
        std::shared_ptr<NamedLock> rest;
        AsyncWaiter* asking = nullptr; ///< is to be told, without the mutex
    };
    /// Names are kept in their locks alone; each kind has its own.
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
    static NameKey keyOf(const NamedLock& named) noexcept { return {named.kind, named.name}; }

    Finished endOf(HoldCall& call);
    void joinOtherKinds(NamedLock& named);
    void tellObserverOf(const Hold& hold, std::string holder, std::function<void(Observer&, const LockEvent&)> what);
    void tellLoss(Hold& hold, LossReason reason);

    boost::unordered_flat_set<NamedLock*, NameHash, NameEqual> names_; ///< each until its destructor took it out
    std::vector<HoldRef> idleHolds_;
    std::vector<std::shared_ptr<HoldCall>> idleCalls_;
    std::deque<std::shared_ptr<NamedLock>> lostNames_;   ///< kept for late unlock() calls
    std::deque<std::shared_ptr<NamedLock>> sharedNames_; ///< kept for their turns
    std::size_t underWay_ = 0;                           ///< releases, and acquires that would have to be released
    bool closing_ = false;
};

} // namespace redislock::detail
