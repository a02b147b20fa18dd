/// @file
/// What a client knows about its locks: names, holds, waiters. The core's mutex guards everything here, except where a
/// comment says otherwise.
#pragma once

#include "core/due_heap.hpp"
#include "core/hold_levels.hpp"
#include "core/lock_kind.hpp"
#include "core/machine/renew_machine.hpp"
#include "core/port.hpp"
#include "core/share/local_lock.hpp"
#include "core/share/own_releases.hpp"
#include "core/share/turn.hpp"
#include "core/share/waiter_queue.hpp"
#include "link/request/call.hpp"
#include "redislock/clock.hpp"
#include "redislock/durability.hpp"
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
#include <vector>

namespace redislock::detail {

class BackgroundRun;
class Core;

/// A request about a hold: acquire or release. Its bytes are made from the hold each time it is sent. An operation
/// takes a call from the core and puts it back when the operation is over, so a hold that is merely held needs none.
class HoldCall final : public Call {
public:
    enum class Verb : std::uint8_t { lock, unlock };

    /// Makes this a request about @p hold, and keeps the hold.
    void attach(HoldRef hold) noexcept { hold_ = std::move(hold); }
    HoldRef detach() noexcept { return std::move(hold_); }
    /// Whether no operation uses it.
    [[nodiscard]] bool isIdle() const noexcept { return hold_ == nullptr; }

    /// Sets what is to be sent next.
    void prepare(Verb verb, std::chrono::milliseconds lease, std::uint32_t count) noexcept
    {
        verb_ = verb;
        leaseMs_ = lease.count();
        count_ = count;
    }

    void encode(std::string& out, Form by) override;
    [[nodiscard]] Subject subject() const override;
    [[nodiscard]] Slot slot() const noexcept override;

    [[nodiscard]] Hold& hold() const noexcept { return *hold_; }
    [[nodiscard]] Verb verb() const noexcept { return verb_; }
    [[nodiscard]] std::chrono::milliseconds lease() const noexcept { return std::chrono::milliseconds(leaseMs_); }
    [[nodiscard]] std::uint32_t count() const noexcept { return count_; }
    /// Which level it is about: an acquire sets at least 1, a release leaves at least 0.
    [[nodiscard]] Level level() const noexcept
    {
        return count_ > (verb_ == Verb::lock ? 1U : 0U) ? Level::nested : Level::outermost;
    }

    bool quiet = false;                 ///< for a release: the script publishes nothing
    bool echoes = false;                ///< for a release: its own client listens, and gets the message too
    std::chrono::milliseconds place{0}; ///< for a kind that keeps places: how long a waiter's place is kept
    HolderId writer{};                  ///< for a reader that also writes: its write hold; 0: none
    bool isHeard = false;               ///< for a waiter with a place of its own: its client hears of grants to it
    std::uint32_t sends = 0;            ///< for such a waiter: how often it was sent; guarded like the members of Call

private:
    HoldRef hold_;
    std::int64_t leaseMs_ = 0;
    std::uint32_t count_ = 0;
    Verb verb_ = Verb::lock;
};

/// An outermost hold with its nested levels, from before its acquire is sent until its last reply was read. A client
/// may have hundreds of thousands of them: what only an operation needs is in its call.
struct Hold {
    enum class Phase : std::uint8_t {
        acquiring, ///< not granted yet, or not at all
        held,      ///< granted; valid until its deadline
        ended,     ///< given up; the release may be under way
        lost,      ///< over without having been given up; final
    };

    /// Until when the hold is valid. Any thread, without the mutex.
    [[nodiscard]] TimePoint validUntil() const noexcept
    {
        return phase.load(std::memory_order_acquire) == Phase::held
                   ? TimePoint(TimePoint::duration(deadline.load(std::memory_order_acquire)))
                   : TimePoint{};
    }

    /// A request that names the holder has ended.
    void note(const Outcome& outcome) noexcept
    {
        const bool wasSent = outcome.fault.failure != Failure::notConnected && outcome.fault.failure != Failure::moved;
        unanswered = unanswered || (!outcome.replied && wasSent);
    }

    /// With which it was confirmed.
    [[nodiscard]] Durability durability() const noexcept { return {durabilityLevel, durabilityCount, {}}; }
    void setDurability(const Durability& durability) noexcept
    {
        durabilityLevel = durability.level;
        durabilityCount = static_cast<std::uint8_t>(durability.count);
    }

    /// Sets the deadline from the levels.
    void updateDeadline() noexcept
    {
        deadline.store(levels.validUntil().time_since_epoch().count(), std::memory_order_release);
    }

    std::atomic<std::uint32_t> references{0};
    std::atomic<Phase> phase{Phase::acquiring};
    Lane lane = Lane::commands;
    LossReason reason{};                                         ///< why it was lost
    Durability::Level durabilityLevel = Durability::Level::none; ///< with which it was confirmed
    std::uint8_t durabilityCount = 0;
    bool atRiskTold : 1 = false;
    bool heldTooLong : 1 = false;
    bool refused : 1 = false;       ///< the last answer to a renewal: for now, the server refuses it
    bool isMember : 1 = false;      ///< member of a group: observers are told of the group
    bool isTentative : 1 = false;   ///< member of a group that is not held yet: its caller does not know of it
    bool unanswered : 1 = false;    ///< a request that names the holder was never answered, or may still end the holder
    bool unconfirmed : 1 = false;   ///< no answer says yet that the server has it, see Core::unsettle()
    bool asks : 1 = false;          ///< as Call::asks, for its next renewal
    bool levelHasEnded : 1 = false; ///< one of several levels has ended: Redis keeps its time to live
    std::uint16_t countsUnderWay = 0; ///< requests under way that set its count
    std::uint32_t grantedLevel = 0;   ///< level granted by another's release for less than its lease, yet to be sent
    std::shared_ptr<NamedLock> lock;
    HolderId id{};
    std::uint64_t owner = 0; ///< currentThread() of the thread that took it; 0: taken asynchronously
    std::atomic<TimePoint::rep> deadline{0};
    HoldLevels levels;
    TimePoint grantedAt{};
    TimePoint holderSince{};                       ///< when Redis granted it; the hold may have been inherited since
    std::stop_source stopAtRisk{std::nostopstate}; ///< made when first asked for
    std::stop_source stopLost{std::nostopstate};   ///< made when first asked for

    RenewMachine renewal;
    DueSlot renewalSlot;
    DueSlot deadlineSlot;
};

/// A message to a waiter: another's release granted it the lock.
struct Grant {
    std::uint32_t request = 0;         ///< the waiter's request that took or kept the place
    std::chrono::milliseconds lasts{}; ///< 0: not granted, the waiter has to ask
};

/// A thread, or an asynchronous operation, that waits for a lock. Lives on the thread's stack, or in the operation.
struct Waiter : WaiterLink<Waiter> {
    Waiter(Hold* h, std::shared_ptr<HoldCall> c, std::chrono::milliseconds l, TimePoint now) noexcept
        : hold(h), call(std::move(c)), lease(l), joined(now)
    {
    }

    /// Makes the waiter judge its situation again.
    void look() noexcept;

    Hold* hold;                     ///< another one after a grant that was not durable
    std::shared_ptr<HoldCall> call; ///< its acquire
    std::chrono::milliseconds lease;
    TimePoint joined;
    TimePoint asksFrom{};   ///< after a message: others may ask before that
    bool parked = false;    ///< asleep outside any call
    bool submitted = false; ///< another thread queued its acquire: it goes on as if it had queued it itself
    bool underWay = false;  ///< Redis may have granted it something, or may soon: counted by Core::begins()
    bool notified = false;
    bool behindHold = false;    ///< when it came, a hold of this client was valid, or the first waiter had been refused
    bool refused = false;       ///< its last answer was that another holds the lock
    bool comesBack = true;      ///< asks more than once
    bool aside = false;         ///< asleep so that other clients get the lock: messages are not for it
    bool mustNotify = false;    ///< was to follow a release that published nothing: without the lock, it must publish
    bool subscribed = false;    ///< to a channel of its own
    std::uint32_t attempts = 0; ///< requests that were sent
    Durability durability{};    ///< that it asks for
    std::uint32_t answersBefore = 0;  ///< NamedLock::answers when it came
    HoldRef inherited{};              ///< hold that it inherited, and that it does not know of yet
    std::uint32_t inheritedLevel = 0; ///< its level of `inherited`
    std::optional<Grant> grant{};     ///< not looked at yet
    Refusals refusals{};
    std::string blocker;          ///< who has the lock, as the last answer said; for observers only
    TimePoint blockedUntil{};     ///< the lock is held at least until then; 0: not known
    std::optional<Errc> ended;    ///< why it has to end; nothing: it goes on
    BackgroundRun* run = nullptr; ///< null: a thread waits
};

/// Everything about one name and kind. Lives as long as a lock object, guard, hold or waiter uses it.
struct NamedLock : std::enable_shared_from_this<NamedLock> {
    NamedLock(std::shared_ptr<Port> p, Core& c, const KindTraits& t, std::string n);
    NamedLock(const NamedLock&) = delete;
    NamedLock& operator=(const NamedLock&) = delete;
    ~NamedLock();

    /// The lock of that name and kind. Called without the mutex.
    static std::shared_ptr<NamedLock> of(const std::shared_ptr<Port>& port, Core& core, const KindTraits& traits,
                                         std::string name);

    [[nodiscard]] const KindTraits& traits() const noexcept { return traits_; }
    /// The channel on which a release is published, or the prefix of the channels of waiters in a queue; empty if
    /// releases are not published. Made for each use: most names are never waited for.
    [[nodiscard]] std::string channel() const;
    /// Keeps account of turns and gaps from now on; not for a kind with a queue in Redis. @return null: none for this
    /// kind, or no memory for them
    Turn* takeTurns() noexcept;
    /// Calls @p act for each kind of the name: a release of one kind lets in acquires of all kinds.
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

    const std::shared_ptr<Core> core; ///< keeps the port alive too, whose owner keeps the core
    const std::string name;

    LocalLock<Hold, HoldRef> local;
    WaiterQueue<Waiter> waiters;         ///< the head asks Redis
    WaiterQueue<Waiter> askers;          ///< ask for themselves, in no order: once, or when their policy says so
    NamedLock* sameName = this;          ///< next in the ring of all kinds of this name
    OwnReleases releases;                ///< releases under way of all kinds of this name
    std::uint32_t answers = 0;           ///< how many acquires Redis has answered, with whatever answer
    bool releasesWatched = false;        ///< a waiter is to look when all releases are answered
    bool race = false;                   ///< the first waiter is to try when the release under way is answered
    Listening listening = Listening::no; ///< on the name's channel, or on those of its waiters
    const LockKind kind;
    const Slot slot;            ///< of the name, in a cluster
    std::unique_ptr<Turn> turn; ///< from when others were seen to want the name, or callers of this client to wait

private:
    const KindTraits& traits_;
};

/// The keys that a script is given: the lock's name, and perhaps the kind's other keys.
std::vector<std::string> keysOf(const NamedLock& named, const ScriptUse& use);

/// Appends the holder's name in Redis, "<client>:<number>", as an argument, without an allocation.
void appendHolder(std::string& out, const Hold& hold);

} // namespace redislock::detail
