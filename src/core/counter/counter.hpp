/// @file
/// What a client knows about its semaphores and latches: names, waiters, and how they ask Redis.
#pragma once

#include "core/core.hpp"
#include "core/machine/acquire_machine.hpp"
#include "core/machine/query_machine.hpp"
#include "core/operation/background_run.hpp"
#include "core/port.hpp"
#include "core/share/own_releases.hpp"
#include "core/share/waiter_queue.hpp"
#include "link/request/calls.hpp"
#include "link/request/channels.hpp"
#include "redislock/clock.hpp"
#include "redislock/error.hpp"
#include "redislock/observer.hpp"
#include "redislock/unlocked.hpp"
#include "wire/script.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace redislock::detail {

struct PermitHold;

enum class CounterKind : std::uint8_t { semaphore, permitExpirableSemaphore, countDownLatch };

/// The kind as users know it.
constexpr ObjectKind objectKind(CounterKind kind) noexcept
{
    return kind == CounterKind::semaphore                  ? ObjectKind::semaphore
           : kind == CounterKind::permitExpirableSemaphore ? ObjectKind::permitExpirableSemaphore
                                                           : ObjectKind::countDownLatch;
}

/// What becomes of a request that the server denies.
enum class Denied : std::uint8_t {
    ends,   ///< it was not executed: the caller may repeat it
    goesOn, ///< it goes on in the background: twice is as good as once
};

/// Where Redis keeps the answer to a request, so that a request that is sent twice counts once.
struct Recorded {
    std::string record{};                 ///< the key; never used for another request
    std::vector<std::string> taken{};     ///< records of other requests, no longer needed: the script deletes them
    std::shared_ptr<Underway> underway{}; ///< the client's end waits until all that is settled
    std::optional<Errc> refused{};        ///< instead of a request: the client has ended, and would not wait for that

    /// The keys of the script: @p name, the request's own record, and the records to delete.
    [[nodiscard]] std::vector<std::string> keysWith(std::string name) const
    {
        std::vector<std::string> keys{std::move(name), record};
        keys.insert(keys.end(), taken.begin(), taken.end());
        return keys;
    }
};

/// A question about a counter, or a change of it, and what the answer means.
template <class Result>
struct CounterRequest {
    /// @param repeated an earlier try may have been executed too.
    using Meaning = std::function<Result(const Call& call, bool repeated, std::error_code& ec)>;

    std::shared_ptr<ScriptCall> call{}; ///< null: nothing is to be asked
    Recorded recorded{};                ///< where its answer is kept, if it is
    Meaning meaning{};
    std::shared_ptr<ScriptCall> afterwards{}; ///< asked in the background if the call stays unanswered
    Denied denied = Denied::ends;
    std::function<void(const Result&)> untold{}; ///< gives back a result that its caller never got; null: not needed
    /// Tells the observer of the result; null: nothing is told.
    std::function<void(const Result&, std::error_code)> tells{};
    std::optional<Errc> refused{}; ///< an error instead of a call
    Result known{};                ///< the result without a call, or with an error
};

/// What a caller waits for: a script that is sent until it grants.
struct CounterOrder {
    const Script* script = nullptr; ///< null: refused
    std::vector<std::string> keys{};
    std::vector<std::string> arguments{};
    std::optional<LockAnswer> (*meaning)(const Reply&) = nullptr;
    std::int64_t permits = 0;          ///< needed from the number in a message; 0: any message will do
    std::chrono::milliseconds lease{}; ///< how long a grant is good
    Wait wait = waitForever;
    std::string record{}; ///< the key where a grant is kept, if it is
    std::string holder{}; ///< what observers know a grant by
    /// Makes the request that takes back a possible grant; null: nothing is taken back. @param copies of the first
    /// request may still arrive.
    std::function<std::shared_ptr<ScriptCall>(bool copies)> undo{};
    std::function<void()> untold{}; ///< gives back a grant that its caller never got; null: the result does that
};

/// How a wait ended.
struct CounterOutcome {
    bool granted = false;
    TimePoint validUntil{};
    bool repeated = false; ///< another copy of the granted request may still arrive
};

/// A thread, or an asynchronous operation, that waits for a counter.
struct CounterWaiter : WaiterLink<CounterWaiter> {
    /// Makes the waiter try.
    void wake() noexcept
    {
        notified = hinted = true;
        look();
    }
    void look() noexcept { run != nullptr ? run->look() : port->wake(*call); }

    std::int64_t permits = 0;
    bool notified = false; ///< has not tried since it was woken
    bool hinted = false;   ///< was woken, and has had no answer since
    Refusals refusals{};
    std::optional<Errc> ended{};  ///< why it has to end; nothing: it goes on
    BackgroundRun* run = nullptr; ///< null: a thread waits
    Port* port = nullptr;
    std::shared_ptr<ScriptCall> call{}; ///< its last request; a thread sleeps on its signal
};

/// What is left to be done at the end of a wait.
struct CounterEnding {
    CounterOrder order{};
    AcquireResult result{};
    CounterOutcome outcome{};
    TimePoint began{};
    /// Until when Redis surely remembers what it may have granted. Later the same request would be granted again, and
    /// taking it back would give nothing back.
    TimePoint rememberedUntil = TimePoint::max();
    TimePoint blockedUntil{}; ///< nothing will be free before, as the last answer said; 0: not known

    /// Whether Redis may have granted something that nobody takes.
    [[nodiscard]] bool isOpen() const noexcept
    {
        return order.undo && !outcome.granted && (result.mayBeHeld || result.kind == AcquireResult::Kind::granted);
    }
    /// The error that its caller gets.
    [[nodiscard]] std::error_code error() const noexcept;
};

/// Everything about one semaphore or latch. Lives as long as an object, a permit or a waiter of it. Its functions are
/// called without the mutex unless they say otherwise.
class NamedCounter : public std::enable_shared_from_this<NamedCounter> {
public:
    NamedCounter(std::shared_ptr<Port> p, Core& c, CounterKind k, std::string n);
    NamedCounter(const NamedCounter&) = delete;
    NamedCounter& operator=(const NamedCounter&) = delete;
    ~NamedCounter();

    static std::shared_ptr<NamedCounter> of(const std::shared_ptr<Port>& port, Core& core, CounterKind kind,
                                            std::string name);
    [[nodiscard]] std::string channel() const;
    /// Tells the observer; costs nothing without one. Called with the mutex or without.
    template <class What>
    void tellOf(std::string holder, What what)
    {
        if (core.config.observer) {
            // with copies, without the counter: the queue of a client that has ended would keep it alive
            port->tell([of = name, as = objectKind(kind), holder = std::move(holder),
                        what = std::move(what)](Observer& observer) {
                what(observer, LockEvent{of, holder, as});
            });
        }
    }

    /// @param held zero: not known
    void tellReleased(const std::string& holder, Unlocked how, std::chrono::nanoseconds held);

    // requests
    /// A key for the answer to a new request; never used for another request.
    [[nodiscard]] std::string newRecord() const;
    /// How long answers are kept, in ms: much longer than anybody repeats a request, since the server's clock may be
    /// set forward meanwhile.
    [[nodiscard]] static std::string recordTime();
    /// The same for the end of a permit that another client took, and which that client does not ask for again: only
    /// the network may hold a copy of its request. There may be many of these records, and nobody deletes them.
    [[nodiscard]] std::string tombstoneTime() const;
    /// Such a key, and up to @p others settled keys of other requests. At the client's end none: the request is
    /// refused.
    [[nodiscard]] Recorded recorded(std::size_t others);
    /// For how long an answer is surely kept, from before its request is sent; leaves time for the way to the server.
    [[nodiscard]] std::chrono::milliseconds surelyRecorded() const noexcept;
    /// Finds out what the end of a request means, and does what follows. @param ec how it ended, in and out
    template <class Result>
    Result conclude(const CounterRequest<Result>& request, TimePoint begin, bool repeated, std::error_code& ec)
    {
        auto result = ec || request.call == nullptr ? request.known : request.meaning(*request.call, repeated, ec);
        if (ec && request.call != nullptr) {
            noteUnfit(*port, ec, request.call->reply);
        }
        if (ec) {
            discardRecords(request.recorded.taken); // the request may not have deleted them
            ec = goOn(request.afterwards, request.denied, ec, repeated, begin);
        } else if (!repeated) {
            discardRecords({&request.recorded.record, 1});
        }
        if (request.tells && (!ec || isOpen(ec))) {
            request.tells(result, ec);
        }
        return result;
    }
    /// Sends the request in the background until it is answered, for a minute at most. @param record settled when the
    /// answer has come.
    void askUnawaited(std::shared_ptr<ScriptCall> call, std::string record = {}) noexcept
    {
        askUnawaited(std::move(call), std::move(record), TimePoint::max(), nullptr);
    }
    /// The same, for a request whose result observers are told.
    void askUnawaited(const CounterRequest<Unlocked>& request);
    /// Does what the end of a wait leaves to be done.
    void conclude(const CounterEnding& ending);

    // waiting; these expect the mutex
    void join(CounterWaiter& waiter) noexcept { waiters_.join(waiter); }
    void leave(CounterWaiter& waiter) noexcept;
    void subscribe(CounterWaiter& waiter);
    /// A waiter was woken for too few permits: they may be enough for one that wants less.
    void refused(CounterWaiter& waiter) noexcept;
    [[nodiscard]] const OwnReleases& releases() const noexcept { return releases_; }
    [[nodiscard]] const WaiterQueue<CounterWaiter>& waiters() const noexcept { return waiters_; }
    [[nodiscard]] Listening listening() const noexcept { return listening_; }
    /// A release begins for which its caller does not wait.
    void beginsUnawaitedRelease() noexcept { releases_.begin(); }
    void endsUnawaitedRelease() noexcept;
    /// The client ends.
    void end();

    /// Permits that this client has, for changes of their leases.
    void add(const std::shared_ptr<PermitHold>& permit);
    void remove(const std::string& id) noexcept;
    std::shared_ptr<PermitHold> find(const std::string& id);

    const std::shared_ptr<Port> port; ///< keeps the core alive
    Core& core;
    const CounterKind kind;
    const std::string name;

private:
    class Unawaited;
    /// How long a request is repeated, and a tombstone kept, at least.
    static constexpr std::chrono::milliseconds leastRecordTime{60'000};

    static bool isOpen(std::error_code ec) noexcept;
    /// Goes on in the background after a request that may have been executed, or may still be. @param call what to
    /// send; null: nothing. @return the error for its caller: no denial if an earlier try may have been executed.
    std::error_code goOn(const std::shared_ptr<ScriptCall>& call, Denied denied, std::error_code ec, bool repeated,
                         TimePoint begin);
    void discardRecords(std::span<const std::string> records) noexcept;
    /// Called once, under the mutex: must only post. @param failed why there is no answer; no error: there is one.
    /// @param repeated an earlier try may have been executed too
    using WhenOver = std::function<void(std::error_code failed, bool repeated)>;
    void askUnawaited(std::shared_ptr<ScriptCall> call, std::string record, TimePoint limit,
                      WhenOver whenOver) noexcept;
    void tellOf(const CounterEnding& ending);
    void hear(Notice notice, std::string_view text);
    void wakeFor(std::int64_t permits) noexcept;
    [[nodiscard]] ChannelListener listener();

    WaiterQueue<CounterWaiter> waiters_;
    OwnReleases releases_; ///< releases for which no caller waits, or not any more
    std::map<std::string, std::weak_ptr<PermitHold>> permits_;
    Listening listening_ = Listening::no;
};

/// A release is under way for which its caller does not wait.
class UnawaitedRelease {
public:
    explicit UnawaitedRelease(std::shared_ptr<NamedCounter> counter) : counter_(std::move(counter))
    {
        const Inside lock(*counter_->port);
        counter_->beginsUnawaitedRelease();
    }
    UnawaitedRelease(const UnawaitedRelease&) = delete;
    UnawaitedRelease& operator=(const UnawaitedRelease&) = delete;
    ~UnawaitedRelease()
    {
        const Inside lock(*counter_->port);
        counter_->endsUnawaitedRelease();
    }

private:
    const std::shared_ptr<NamedCounter> counter_;
};

} // namespace redislock::detail
