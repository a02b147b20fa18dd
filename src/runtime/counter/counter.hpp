/// @file
/// What a client knows of its semaphores and latches: names, who waits for them, and how they ask Redis.
#pragma once

#include "logic/call/channel_listener.hpp"
#include "logic/call/script_call.hpp"
#include "logic/call/signal.hpp"
#include "logic/flow/waiting.hpp"
#include "redislock/clock.hpp"
#include "redislock/detail/logic/acquire_machine.hpp"
#include "redislock/detail/logic/own_releases.hpp"
#include "redislock/detail/logic/waiter_queue.hpp"
#include "redislock/detail/protocol/script.hpp"
#include "redislock/error.hpp"
#include "redislock/handler.hpp"
#include "runtime/engine/underway.hpp"
#include "transport/adaptive_mutex.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace redislock::detail {

class Engine;
struct PermitHold;

enum class CounterKind : std::uint8_t { semaphore, permitExpirableSemaphore, countDownLatch };

/// What becomes of a request that the server denies.
enum class Denied : std::uint8_t {
    ends,   ///< it was not executed: the caller may repeat it
    goesOn, ///< twice is as good as once
};

/// Where Redis keeps the answer to a request, so that one that is sent twice counts once.
struct Recorded {
    std::string record{};                 ///< the key; never used for another request
    std::vector<std::string> taken{};     ///< of other requests, of no use any more: the script deletes them
    std::shared_ptr<Underway> underway{}; ///< until all that is settled

    /// The keys of the script that are not the semaphore's or latch's own.
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
    Recorded recorded{};                ///< its answer, if it is
    Meaning meaning{};
    std::shared_ptr<ScriptCall> afterwards{}; ///< asked in the background where the call stays unanswered
    Denied denied = Denied::ends;
    std::function<void(const Result&)> untold{}; ///< gives back what nobody was told of; null: that needs nothing
    std::optional<Errc> refused{};               ///< instead of a call
    Result known{};                              ///< instead of a call, and with an error
};

/// What somebody waits for: a script that is asked until it grants.
struct CounterOrder {
    const Script* script = nullptr; ///< null: refused
    std::vector<std::string> keys{};
    std::vector<std::string> arguments{};
    std::optional<LockAnswer> (*meaning)(const Reply&) = nullptr;
    std::int64_t permits = 0;          ///< of a message's number that it needs; 0: any message concerns it
    std::chrono::milliseconds lease{}; ///< how long a grant is good
    Wait wait = waitForever;
    std::string record{}; ///< the key where a grant is kept, if it is
    /// Takes back what may have been granted; null: nothing is. @param copies of the request may still arrive.
    std::function<std::shared_ptr<ScriptCall>(bool copies)> undo{};
    std::function<void()> untold{}; ///< gives back a grant that nobody was told of; null: its result does
};

/// How a wait ended.
struct CounterOutcome {
    bool granted = false;
    TimePoint validUntil{};
    bool repeated = false; ///< there may be another copy of the request that won
};

/// A thread, or an asynchronous operation, that waits. Guarded by the engine's mutex.
struct CounterWaiter : WaiterLink<CounterWaiter> {
    /// Has it try.
    void wake() noexcept
    {
        notified = hinted = true;
        look();
    }
    void look() noexcept { operation != nullptr ? operation->look() : call->signal.notify(Signal::look); }

    std::int64_t permits = 0;
    bool notified = false; ///< has not tried since it was woken
    bool hinted = false;   ///< was woken, and has had no answer since
    Refusals refusals{};
    std::optional<Errc> ended{}; ///< told to end
    AsyncWaiter* operation = nullptr;
    std::shared_ptr<ScriptCall> call{}; ///< its last request; a thread sleeps on its signal
};

/// Everything about one semaphore or latch. Lives as long as an object of it, a permit or a waiter.
class NamedCounter : public std::enable_shared_from_this<NamedCounter> {
public:
    NamedCounter(std::shared_ptr<Engine> e, CounterKind k, std::string n);
    NamedCounter(const NamedCounter&) = delete;
    NamedCounter& operator=(const NamedCounter&) = delete;
    ~NamedCounter();

    static std::shared_ptr<NamedCounter> of(const std::shared_ptr<Engine>& engine, CounterKind kind, std::string name);
    /// The client ends. Expects the engine's mutex.
    static void end(Engine& engine);

    [[nodiscard]] std::string channel() const;
    /// Where the answer to a new request is kept: never used for another.
    [[nodiscard]] std::string newRecord() const;
    /// How long answers are kept, in ms: longer than anybody repeats a request.
    [[nodiscard]] std::string recordTime() const;
    /// That key, and up to so many of other requests. None at the client's end, when the request is refused.
    [[nodiscard]] Recorded recorded(std::size_t others);

    /// Asks and waits for the answer.
    template <class Result>
    Result ask(const CounterRequest<Result>& request, std::error_code& ec)
    {
        bool repeated = false;
        const TimePoint begin = BootClock::now();
        ec = request.refused ? std::error_code(*request.refused) : drive(request.call, repeated);
        auto result = ec || request.call == nullptr ? request.known : request.meaning(*request.call, repeated, ec);
        ec = conclude(request, begin, repeated, ec);
        return result;
    }
    template <class Result>
    void asyncAsk(CounterRequest<Result> request, Handler<Result> handler);
    /// Asks in the background until answered, for a minute at most. @param record of no use any more when that has come.
    void askUnawaited(std::shared_ptr<ScriptCall> call, std::string record = {}) noexcept
    {
        askUnawaited(std::move(call), std::move(record), TimePoint::max());
    }
    /// Goes on in the background with what was first asked at @p begin, and ends while its answer is still kept, also when this
    /// process stood still in between: asked again after that, it would count again.
    void repeatUnawaited(std::shared_ptr<ScriptCall> call, TimePoint begin) noexcept;

    /// Waits until granted, on the calling thread.
    std::error_code acquire(const CounterOrder& order, CounterOutcome& outcome);
    /// Waits until granted, on none. @param make the result of the outcome.
    template <class Result>
    void asyncAcquire(CounterOrder order, Handler<Result> handler, std::function<Result(const CounterOutcome&)> make);

    /// Permits of this client, for changes of their leases. Any thread.
    void add(const std::shared_ptr<PermitHold>& permit);
    void remove(const std::string& id) noexcept;
    std::shared_ptr<PermitHold> find(const std::string& id);
    [[nodiscard]] bool isForked() const noexcept;

    const std::shared_ptr<Engine> engine;
    const CounterKind kind;
    const std::string name;

private:
    class Flow;
    class AsyncFlow;
    class Giving;
    class Forgetting;
    /// What the end of a wait leaves to be done.
    struct Ending {
        CounterOrder order{};
        AcquireResult result{};
        CounterOutcome outcome{};

        /// Whether Redis may have granted what nobody takes.
        [[nodiscard]] bool isOpen() const noexcept
        {
            return order.undo && !outcome.granted && (result.mayBeHeld || result.kind == AcquireResult::Kind::granted);
        }
        /// What its caller is told.
        [[nodiscard]] std::error_code error() const noexcept;
    };
    using Lock = std::unique_lock<AdaptiveMutex>;
    using End = std::function<void(boost::system::error_code, const CounterOutcome&)>;
    /// How long answers are kept at least. A copy of a request that a network holds back for longer is executed again.
    static constexpr std::chrono::milliseconds leastRecordTime{60'000};

    static std::string keyOf(CounterKind kind, const std::string& name);
    std::error_code drive(const std::shared_ptr<ScriptCall>& call, bool& repeated);
    /// What follows from the end of a request. @param ec also of an answer that the script cannot give. @return as goOn().
    template <class Result>
    std::error_code conclude(const CounterRequest<Result>& request, TimePoint begin, bool repeated, std::error_code ec)
    {
        if (ec) {
            settle(request.recorded.taken); // it may not have come as far as to delete them
            return goOn(request.afterwards, request.denied, ec, repeated, begin);
        }
        if (!repeated) {
            settle({request.recorded.record});
        }
        return {};
    }
    static bool isOpen(std::error_code ec) noexcept;
    /// Goes on in the background with a request that may have been executed, or may be later. @param call null: with none.
    /// @return what its caller is told: not that it was denied, where an earlier try may have been executed.
    std::error_code goOn(const std::shared_ptr<ScriptCall>& call, Denied denied, std::error_code ec, bool repeated,
                         TimePoint begin);
    void settle(const std::vector<std::string>& records) noexcept;
    static void forgetRecords(Engine& engine);
    void askUnawaited(std::shared_ptr<ScriptCall> call, std::string record, TimePoint limit) noexcept;
    /// Does what the end of a wait leaves to be done. Expects the engine's mutex to be free.
    void conclude(const Ending& ending);
    void subscribe();
    void refused(CounterWaiter& waiter) noexcept;
    void leave(CounterWaiter& waiter) noexcept;
    void hear(Notice notice, std::string_view text);
    void wakeFor(std::int64_t permits) noexcept;
    [[nodiscard]] ChannelListener listener();

    // guarded by the engine's mutex
    WaiterQueue<CounterWaiter> waiters_;
    OwnReleases releases_; ///< that nobody waits for, or who asked for them goes on meanwhile
    std::map<std::string, std::weak_ptr<PermitHold>> permits_;
    bool subscribed_ = false;
    bool confirmed_ = false;
};

} // namespace redislock::detail
