/// @file
/// What a client knows of its locks: names, holds, waiters. Everything here is guarded by the logic's mutex, except
/// where it says otherwise.
#pragma once

#include "logic/call/call.hpp"
#include "logic/call/port.hpp"
#include "logic/flow/waiting.hpp"
#include "logic/lock/lock_kind.hpp"
#include "redislock/clock.hpp"
#include "redislock/detail/logic/due_heap.hpp"
#include "redislock/detail/logic/hold_levels.hpp"
#include "redislock/detail/logic/local_lock.hpp"
#include "redislock/detail/logic/own_releases.hpp"
#include "redislock/detail/logic/release_machine.hpp"
#include "redislock/detail/logic/renew_machine.hpp"
#include "redislock/detail/logic/turn.hpp"
#include "redislock/detail/logic/waiter_queue.hpp"
#include "redislock/hold_ref.hpp"
#include "redislock/identity.hpp"
#include "redislock/observer.hpp"
#include "redislock/unlocked.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace redislock::detail {

class Core;

/// A request about a hold: acquire or release. Its bytes are made from the hold each time it is sent. An
/// operation takes one from the core and puts it back when it is over, so that a hold that is only held needs none.
class HoldCall final : public Call, public std::enable_shared_from_this<HoldCall> {
public:
    enum class Verb : std::uint8_t { lock, unlock };

    /// Is about that hold from now on, and keeps it.
    void attach(HoldRef hold) noexcept { hold_ = std::move(hold); }
    HoldRef detach() noexcept { return std::move(hold_); }

    /// Sets what is to be sent next.
    void prepare(Verb verb, std::chrono::milliseconds lease, std::uint32_t count, Mode how) noexcept
    {
        verb_ = verb;
        leaseMs_ = lease.count();
        count_ = count;
        mode = how;
    }

    void encode(std::string& out, Form by) override;
    void finished() noexcept override;

    [[nodiscard]] Hold& hold() const noexcept { return *hold_; }
    [[nodiscard]] Verb verb() const noexcept { return verb_; }
    [[nodiscard]] std::chrono::milliseconds lease() const noexcept { return std::chrono::milliseconds(leaseMs_); }
    [[nodiscard]] std::uint32_t count() const noexcept { return count_; }
    /// What it is about: an acquire sets at least 1, a release leaves at least 0.
    [[nodiscard]] Level level() const noexcept
    {
        return count_ > (verb_ == Verb::lock ? 1U : 0U) ? Level::nested : Level::outermost;
    }

    bool quiet = false;                 ///< of a release: nobody is told
    bool echoes = false;                ///< of a release: its own client listens, and is told too
    std::chrono::milliseconds place{0}; ///< of a kind that keeps one: how long a waiter's place is kept
    HolderId writer{};                  ///< of a reader that writes: its write hold; 0: none
    bool isHeard = false;               ///< of a waiter with a place of its own: its client hears of grants to it
    std::uint32_t sends = 0;            ///< of such a waiter: how often it was sent; guarded as the members of Call
    AsyncWaiter* asker = nullptr;       ///< the asynchronous operation whose acquire it is
    ReleaseMachine release;             ///< of an unawaited release
    std::function<void(Unlocked)> whenReleased; ///< called once when that is over, under the mutex: must only post

private:
    HoldRef hold_;
    std::int64_t leaseMs_ = 0;
    std::uint32_t count_ = 0;
    Verb verb_ = Verb::lock;
};

/// An outermost hold with its nested levels, from before its acquire is sent until its last reply was read. A client
/// may have hundreds of thousands: whatever only operations need is in their calls.
struct Hold {
    enum class Phase : std::uint8_t {
        acquiring, ///< not granted yet, or not at all
        held,      ///< granted; valid until its deadline
        ended,     ///< given up; the release may be under way
        lost,      ///< over without having been given up; final
    };

    /// Until when it is valid. Any thread, no lock.
    [[nodiscard]] TimePoint validUntil() const noexcept
    {
        return phase.load(std::memory_order_acquire) == Phase::held
                   ? TimePoint(TimePoint::duration(deadline.load(std::memory_order_acquire)))
                   : TimePoint{};
    }

    /// A request that names the holder has ended.
    void note(const Outcome& outcome) noexcept
    {
        unanswered = unanswered || (!outcome.replied && outcome.fault.failure != Failure::notConnected);
    }

    /// Sets the deadline from the levels.
    void updateDeadline() noexcept
    {
        deadline.store(levels.validUntil().time_since_epoch().count(), std::memory_order_release);
    }

    std::atomic<std::uint32_t> references{0};
    std::atomic<Phase> phase{Phase::acquiring};
    Lane lane = Lane::commands;
    bool atRiskTold = false;
    bool heldTooLong = false;
    bool refused = false;     ///< the last answer to a renewal: for now, the server refuses it
    bool isMember = false;    ///< of a group, which is told of instead
    bool isTentative = false; ///< of a group that is not held yet: its caller does not know of it
    LossReason reason{};      ///< of one that is lost
    bool unanswered = false;  ///< a request that names the holder never was answered, or may yet undo what others did
    std::uint16_t countsUnderWay = 0; ///< requests that are to set its count
    std::uint32_t givenLevel = 0; ///< granted by another's release for less than its lease, which is still to be sent
    std::shared_ptr<NamedLock> lock;
    HolderId id{};
    std::uint64_t owner = 0; ///< currentThread() of who took it; 0: nobody's, taken asynchronously
    std::atomic<TimePoint::rep> deadline{0};
    HoldLevels levels;
    TimePoint grantedAt{};
    TimePoint holderSince{};                       ///< when Redis granted it; the hold may have been passed on since
    std::stop_source stopAtRisk{std::nostopstate}; ///< made when first asked for
    std::stop_source stopLost{std::nostopstate};   ///< made when first asked for

    RenewMachine renewal;
    DueSlot renewalSlot;
    DueSlot deadlineSlot;
};

/// What a message said of a waiter: the release of another granted it the lock.
struct Grant {
    std::uint32_t request = 0;         ///< which of its requests had taken, or kept, the place
    std::chrono::milliseconds lasts{}; ///< 0: it only has to ask
};

/// A thread, or an asynchronous operation, that waits for a lock. Lives on its stack, or in it.
struct Waiter : WaiterLink<Waiter> {
    Waiter(Hold& h, std::shared_ptr<HoldCall> c, std::chrono::milliseconds l, TimePoint now) noexcept
        : hold(h), call(std::move(c)), lease(l), joined(now)
    {
    }

    /// Has it judge its situation again.
    void look() noexcept;

    Hold& hold;
    std::shared_ptr<HoldCall> call; ///< its acquire
    std::chrono::milliseconds lease;
    TimePoint joined;
    bool parked = false;    ///< asleep outside any call
    bool submitted = false; ///< somebody else queued its acquire: it goes on as if it had itself
    bool underWay = false;  ///< Redis may have granted it something, or may soon: counted by Core::begins()
    bool notified = false;
    bool behindHold = false;    ///< when it came, a hold of this client was valid, or the first waiter had been refused
    bool refused = false;       ///< the last answer to it was that another holds the lock
    bool comesBack = true;      ///< asks more than once
    bool aside = false;         ///< asleep so that others get the lock: no message is for it
    bool owesTelling = false;   ///< was to follow a release that told nobody: if it gets nothing, it tells
    bool subscribed = false;    ///< to a channel of its own
    std::uint32_t attempts = 0; ///< requests that were sent
    HoldRef passed{};           ///< was passed on to it, and it does not know yet
    std::uint32_t passedLevel = 0; ///< of that
    std::optional<Grant> grant{};  ///< that it has not looked at yet
    Refusals refusals{};
    std::string blocker;       ///< who has the lock, as the last answer said; for an observer alone
    TimePoint blockedUntil{};  ///< at least; 0: not known
    std::optional<Errc> ended; ///< told to end
    AsyncWaiter* operation = nullptr;
};

/// Everything about one name. Lives as long as a lock object, guard, hold or waiter uses it.
struct NamedLock : std::enable_shared_from_this<NamedLock> {
    NamedLock(std::shared_ptr<Port> p, Core& c, LockKind k, std::string n);
    NamedLock(const NamedLock&) = delete;
    NamedLock& operator=(const NamedLock&) = delete;
    ~NamedLock();

    /// The one of that name and kind. Without the mutex.
    static std::shared_ptr<NamedLock> of(const std::shared_ptr<Port>& port, Core& core, LockKind kind,
                                         std::string name);

    [[nodiscard]] const KindTraits& traits() const noexcept { return KindTraits::of(kind); }
    /// On which Redis tells that it is free, or what the channels of a queue begin with; empty if it tells nobody. Made
    /// each time: most names are never waited for.
    [[nodiscard]] std::string channel() const;
    /// Turns count from now on; never of a kind whose waiters ask each for itself, or are told nothing. @return null:
    /// they do not, or there is no memory for that
    Turn* takeTurns() noexcept;
    /// Releases of one kind let acquires of all kinds in. @param act is called for each of them.
    template <class Act>
    void forEachKind(Act act)
    {
        NamedLock* each = this;
        do {
            act(*each);
            each = each->sameName;
        } while (each != this);
    }
    /// Joins the ring of another kind of the name.
    void join(NamedLock& other) noexcept
    {
        releases = other.releases;
        sameName = std::exchange(other.sameName, this);
    }
    void leaveOtherKinds() noexcept
    {
        NamedLock* before = this;
        while (before->sameName != this) {
            before = before->sameName;
        }
        before->sameName = std::exchange(sameName, this);
    }

    const std::shared_ptr<Core> core; ///< kept by who keeps its port
    const std::string name;

    LocalLock<Hold, HoldRef> local;
    WaiterQueue<Waiter> waiters;       ///< the head asks Redis
    WaiterQueue<Waiter> askers;        ///< who asks for itself, in no order: once, or when its policy says so
    NamedLock* sameName = this;        ///< a ring of all kinds of this name
    OwnReleases releases;              ///< of all kinds of this name
    std::uint32_t releaseWatchers = 0; ///< waiters that sleep until releases are answered
    bool race = false;                 ///< the first waiter is to try when the release under way is answered
    bool subscribed = false;
    const LockKind kind;
    std::unique_ptr<Turn> turn; ///< where others were seen to want the name, or threads of this client to wait for it
    TimePoint answeredAt{};     ///< when Redis last answered an acquire, whatever it said
};

/// Appends the hold's name in Redis, "<client>:<number>", as an argument, without an allocation.
void appendHolder(std::string& out, const Hold& hold);

} // namespace redislock::detail
