/// @file
/// The state that a client, its locks and its guards share.
#pragma once

#include "redislock/config.hpp"
#include "redislock/detail/logic/acquire_machine.hpp"
#include "redislock/detail/logic/query_machine.hpp"
#include "redislock/detail/logic/settled_records.hpp"
#include "redislock/handler.hpp"
#include "redislock/random.hpp"
#include "redislock/retry_policy.hpp"
#include "redislock/stop_at.hpp"
#include "redislock/unlocked.hpp"
#include "runtime/channel_listener.hpp"
#include "runtime/hold.hpp"
#include "runtime/server_id.hpp"
#include "runtime/watchdog.hpp"
#include "transport/adaptive_mutex.hpp"
#include "transport/alarm.hpp"
#include "transport/blocking_connection.hpp"
#include "transport/call_connection.hpp"
#include "transport/connector.hpp"
#include "transport/subscriber.hpp"

#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/unordered/unordered_flat_set.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace redislock::detail {

template <class Result>
class Completion;
class ListenedCall;
class NamedCounter;
class Underway;

/// What an acquire is asked for.
struct AcquireOrder {
    Wait wait;
    Lease lease;
    EndedBy endedBy;
    std::shared_ptr<const RetryPolicy> retry{}; ///< when it asks again; null: when it is told
    std::exception_ptr* thrown = nullptr;       ///< where what the policy throws is kept; null: it is not
};

/// A level that was acquired: what a guard, or the thread, later ends.
struct Acquired {
    HoldRef hold; ///< null: not acquired
    std::uint32_t level = 0;
    std::uint64_t token = 0; ///< of a fenced lock
};

/// The runtime of one client: drives the machines of the logic over the connections. Blocking operations run on the calling
/// thread; renewals, deadlines, the subscriber and callbacks on the background thread, which starts with the first operation.
///
/// One mutex guards all local state. It is never held over I/O or callbacks; the blocking connection's mutex may be taken under
/// it, never the other way round.
class Engine : public std::enable_shared_from_this<Engine> {
public:
    using Lock = std::unique_lock<AdaptiveMutex>;

    static std::shared_ptr<Engine> make(Config config);
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    std::shared_ptr<NamedLock> named(LockKind kind, std::string name);
    void forgetName(NamedLock& lock) noexcept;

    // acquire.cpp
    std::error_code acquire(NamedLock& lock, const AcquireOrder& order, Acquired& acquired);

    // release.cpp
    Unlocked unlock(NamedLock& lock, std::error_code& ec);
    Unlocked release(Acquired acquired);
    void releaseUnawaited(const Acquired& acquired) noexcept;
    void callFinished(HoldCall& call) noexcept;

    // asynchronous.cpp
    void asyncAcquire(std::shared_ptr<NamedLock> lock, AcquireOrder order, LockHandler handler);
    void asyncRelease(const Acquired& acquired, UnlockHandler handler);
    void asyncTimeToLive(const std::shared_ptr<NamedLock>& lock, TimeHandler handler);
    void asyncIsLocked(const std::shared_ptr<NamedLock>& lock, FlagHandler handler);
    void asyncForceUnlock(const std::shared_ptr<NamedLock>& lock, FlagHandler handler);
    /// Which server it is, in its own words. @param answered called once, on the background thread, or in here after the
    /// client's end. @note server_id.cpp
    void askRunId(std::function<void(std::error_code, std::string)> answered);
    [[nodiscard]] ServerId& serverId() noexcept { return serverId_; }
    /// For handlers without an executor of their own: the background thread, as long as there is one.
    boost::asio::any_completion_executor handlerExecutor();
    /// Has something done on the background thread at that time; before, when the client ends. @return what calls it off; empty,
    /// and nothing will be done, when the client has ended.
    std::function<void()> doAt(TimePoint when, std::function<void()> what);

    // query.cpp
    bool forceUnlock(NamedLock& lock, std::error_code& ec);
    std::optional<std::chrono::milliseconds> timeToLive(NamedLock& lock, std::error_code& ec);
    void connect(std::error_code& ec);

    // local answers
    std::uint32_t holdCount(const NamedLock& lock) noexcept;
    std::chrono::milliseconds validFor(const NamedLock& lock) noexcept;
    std::stop_token stopToken(const NamedLock& lock, StopAt when);
    std::stop_token stopToken(Hold* hold, StopAt when);
    /// A token that is stopped already.
    static std::stop_token stoppedToken();
    [[nodiscard]] bool isForked() const noexcept;
    /// Why an operation that may have to wait cannot begin.
    [[nodiscard]] std::optional<Errc> refusal() const noexcept;
    [[nodiscard]] bool onOwnThread() const noexcept;

    bool shutdown(std::chrono::milliseconds timeout) noexcept;

    [[nodiscard]] const Config& config() const noexcept { return config_; }
    [[nodiscard]] const std::string& id() const noexcept { return id_; }

    // for the watchdog
    [[nodiscard]] AdaptiveMutex& mutex() noexcept { return mutex_; }
    [[nodiscard]] Random& random() noexcept { return random_; }
    [[nodiscard]] CallConnection& renewals() noexcept { return background_->renewals; }
    [[nodiscard]] std::chrono::milliseconds leaseTime(Lease lease) const noexcept;
    [[nodiscard]] std::chrono::milliseconds renewalTimeout() const noexcept;
    /// A held hold is over: its final state. Expects the mutex.
    void lose(Hold& hold);
    /// A request about a hold. Expects the mutex, as putBack() does.
    std::shared_ptr<HoldCall> takeCall(Hold& hold);
    /// An operation is over. @param call its request; the caller has another reference to its hold.
    void putBack(std::shared_ptr<HoldCall> call) noexcept;
    /// Sends a release of a hold that is not, or no longer, held. Expects the mutex.
    void giveBack(Hold& hold, TimePoint until);
    /// Has something done on the background thread, soon.
    void post(std::function<void()> what);
    /// Calls the observer on the background thread, if there is one.
    void tell(std::function<void(Observer&)> what);
    template <class What>
    void tellOf(const Hold& hold, What what)
    {
        if (config_.observer) { // nobody else pays for what is to be told
            tellObserverOf(hold, std::move(what));
        }
    }

private:
    friend class NamedCounter;
    friend class Underway;

    static constexpr std::size_t maxLostNames = 1024;
    static constexpr std::size_t maxIdle = 128; ///< holds, and calls, kept for the next operations

    /// Something to be done, that a pause comes before.
    struct Later {
        boost::asio::steady_timer timer;
        std::function<void()> what; ///< empty: it is done, or called off
    };
    struct Background {
        explicit Background(Engine& engine);
        void close();

        boost::asio::io_context io{1};
        boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{io.get_executor()};
        Connector connector;
        CallConnection renewals;
        Subscriber<ChannelListener> subscriber;
        Alarm sweepTimer{io};
        Random random; ///< for questions; what concerns holds draws from the engine's, under its mutex
        Watchdog watchdog;
        std::unordered_set<std::shared_ptr<Later>> later; ///< all that pauses
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
    class AcquireFlow; ///< an acquire under way
    template <class Flow>
    class AsyncWait; ///< one, or another wait, that no thread waits for
    class AsyncAcquire;
    class AsyncQuery;
    template <class Result>
    struct Asked; ///< what waits for one

    explicit Engine(Config config);

    // asynchronous.cpp
    template <class Result>
    Completion<Result> completionOf(Handler<Result> handler);
    template <class Result, class Meaning>
    void asyncQuery(std::shared_ptr<ListenedCall> call, Handler<Result> handler, Meaning meaning);

    // hold.cpp
    void joinOtherKinds(NamedLock& named);

    // engine.cpp
    void start();
    void run() noexcept;
    void recover();
    std::shared_ptr<Later> after(TimePoint when, std::function<void()> what);
    std::string holderText(const Hold& hold) const;
    void tellObserverOf(const Hold& hold, std::function<void(Observer&, const LockEvent&)> what);
    void sweepSoon() noexcept;
    bool submit(std::shared_ptr<HoldCall> call, std::shared_ptr<HoldCall> behind = nullptr);
    bool submit(Lane lane, std::shared_ptr<Call> call, std::shared_ptr<Call> behind = nullptr);
    void sendOutbox();
    bool withdraw(Call& call);
    std::function<void(bool, Errc)> reporter(const char* purpose);
    void loseRest(Hold& hold);
    void tellLoss(Hold& hold);

    // shutdown.cpp
    void begins() noexcept { ++underWay_; }
    void ends() noexcept;
    void begins(Waiter& waiter) noexcept;
    void ends(Waiter& waiter) noexcept;
    bool closeLocalState(std::vector<std::shared_ptr<NamedLock>>& names);
    void endThread(TimePoint until) noexcept;

    // query.cpp
    std::error_code query(const std::shared_ptr<Call>& call, QueryMachine& machine);
    void loseForced(NamedLock& named, std::string_view holder);

    // acquire.cpp
    std::error_code acquireOutermost(Lock& lock, NamedLock& named, const AcquireOrder& order, HolderId writer,
                                     Acquired& acquired);
    Hold* otherHalf(const NamedLock& named);
    std::error_code acquireNested(Lock& lock, Hold& hold, const AcquireOrder& order, Acquired& acquired);
    std::error_code conclude(AcquireFlow& flow, Acquired& acquired);
    template <class Flow>
    void drive(Lock& lock, Flow& flow);
    HoldRef takeHold(NamedLock& named);
    std::shared_ptr<NamedLock> recycle(HoldRef&& hold) noexcept;
    void grant(Hold& hold, std::uint32_t level, const AcquireResult& result);
    Hold* validHold(NamedLock& named);
    AcquireMachine::Settings settingsFor(Wait wait, std::chrono::milliseconds lease) const noexcept;

    // wake.cpp
    void subscribe(NamedLock& named);
    void subscribe(NamedLock& named, Waiter& waiter);
    void unsubscribe(NamedLock& named) noexcept;
    void unsubscribe(NamedLock& named, Waiter& waiter) noexcept;
    static ChannelListener listenerOf(NamedLock& named, HolderId of = {});
    void onChannel(NamedLock& named, HolderId of, Notice notice);
    void wakeWaiters(NamedLock& named, HolderId of);
    std::shared_ptr<HoldCall> letTry(NamedLock& named, Waiter* waiter, Lane lane) noexcept;
    std::shared_ptr<HoldCall> submitFor(Waiter& waiter) noexcept;
    std::shared_ptr<HoldCall> handOnFairly(NamedLock& named, Lane lane) noexcept;
    void noteAudience(const HoldCall& call) noexcept;
    static Waiter* nextOf(const NamedLock& named) noexcept;
    void wakeNext(NamedLock& named) noexcept;

    // release.cpp
    Unlocked endLevel(Lock& lock, Hold& hold, std::uint32_t level);
    Unlocked endNested(Lock& lock, Hold& hold);
    Unlocked endOutermost(Lock& lock, Hold& hold);
    Unlocked driveRelease(Lock& lock, const std::shared_ptr<HoldCall>& call, ReleaseMachine& machine,
                          std::shared_ptr<HoldCall> behind);
    bool endUnawaited(Hold& hold, std::uint32_t level, std::function<void(Unlocked)> whenReleased = nullptr);
    enum class Behind { nobody, nextWaiter };
    static ReleaseMachine unawaitedRelease(TimePoint validUntil) noexcept;
    void startRelease(Hold& hold, const ReleaseMachine& machine, Behind behind,
                      std::function<void(Unlocked)> whenReleased = nullptr);
    std::shared_ptr<HoldCall> takeCallToRelease(Hold& hold) noexcept;
    bool step(const std::shared_ptr<HoldCall>& call, const ReleaseMachine::Event& event,
              std::shared_ptr<HoldCall> behind);
    void nestedAnswered(HoldCall& call);
    void correctCount(Hold& hold, bool unknown);
    void tellCount(const std::shared_ptr<HoldCall>& call, const ReleaseMachine::Event& event);
    void giveUp(Hold& hold);
    void releaseAnswered(Hold& hold, Unlocked how);
    [[nodiscard]] ReleaseMachine::Settings releaseSettings(TimePoint validUntil) const noexcept;

    const Config config_;
    const std::string id_;
    const std::uint32_t generation_;
    std::atomic<bool> closing_{false};
    std::atomic<std::uint64_t> ownThread_{0};

    AdaptiveMutex mutex_;
    std::condition_variable_any changed_; ///< for shutdown
    Random random_;
    boost::unordered_flat_set<NamedLock*, NameHash, NameEqual> names_; ///< each until its destructor took it out
    std::vector<HoldRef> idleHolds_;
    std::vector<std::shared_ptr<HoldCall>> idleCalls_;
    std::deque<std::shared_ptr<NamedLock>> lostNames_; ///< kept for late unlock() calls
    std::size_t underWay_ = 0; ///< releases, and acquires that would have to be released: shutdown waits for them
    std::vector<std::shared_ptr<Call>> outbox_; ///< for the background thread to send
    bool outboxClosed_ = false;
    std::unordered_set<std::shared_ptr<AsyncWaiter>> waiting_; ///< asynchronous operations
    std::unordered_map<std::string, NamedCounter*> counters_;  ///< each until its destructor took it out
    SettledRecords records_;

    std::unique_ptr<Background> background_;
    std::unique_ptr<BlockingConnection> commands_;

    ServerId serverId_;

    std::mutex threadMutex_;
    std::condition_variable threadEnded_;
    std::thread thread_;
    std::atomic<bool> started_{false};
    bool threadRunning_ = false;
};

} // namespace redislock::detail
