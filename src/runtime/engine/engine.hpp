/// @file
/// The state that a client, its locks and its guards share.
#pragma once

#include "logic/call/channel_listener.hpp"
#include "logic/call/port.hpp"
#include "logic/lock/core.hpp"
#include "redislock/config.hpp"
#include "redislock/detail/logic/query_machine.hpp"
#include "redislock/detail/logic/settled_records.hpp"
#include "redislock/handler.hpp"
#include "redislock/random.hpp"
#include "redislock/stop_at.hpp"
#include "redislock/unlocked.hpp"
#include "runtime/group/server_id.hpp"
#include "transport/adaptive_mutex.hpp"
#include "transport/alarm.hpp"
#include "transport/blocking_connection.hpp"
#include "transport/call_connection.hpp"
#include "transport/connect/connector.hpp"
#include "transport/subscriber.hpp"

#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdint>
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

/// The runtime of one client: drives the logic over the connections. Blocking operations run on the calling thread; renewals,
/// deadlines, the subscriber and callbacks on the background thread, which starts with the first operation.
///
/// One mutex guards the logic, and with it all local state. It is never held over I/O or callbacks; the blocking connection's mutex may be taken under
/// it, never the other way round.
class Engine final : public Port, public std::enable_shared_from_this<Engine> {
public:
    using Lock = std::unique_lock<AdaptiveMutex>;

    static std::shared_ptr<Engine> make(Config config);
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    std::shared_ptr<NamedLock> named(LockKind kind, std::string name);

    // acquire.cpp
    std::error_code acquire(NamedLock& lock, const AcquireOrder& order, Acquired& acquired);

    // release.cpp
    Unlocked unlock(NamedLock& lock, std::error_code& ec);
    Unlocked release(Acquired acquired);
    void releaseUnawaited(const Acquired& acquired) noexcept;

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
    [[nodiscard]] const std::string& id() const noexcept { return core_.id; }
    [[nodiscard]] std::chrono::milliseconds leaseTime(Lease lease) const noexcept { return core_.leaseTime(lease); }

    // port.cpp
    [[nodiscard]] TimePoint now() const noexcept override { return BootClock::now(); }
    HolderId nextHolder() noexcept override;
    bool submit(Lane lane, std::shared_ptr<Call> call, std::shared_ptr<Call> behind = nullptr) override;
    bool withdraw(Call& call) override;
    void leave(Call& call) noexcept override;
    void fail(const std::shared_ptr<Call>& call, Errc why) override;
    void want(std::string channel, ChannelListener listener) override;
    void drop(std::string channel, ChannelListener listener) override;
    void wake(Call& call) noexcept override { call.signal.notify(Signal::look); }
    void alarm(TimePoint when) noexcept override;
    void after(TimePoint when, std::function<void()> what) override;
    /// Has something done on the background thread, soon.
    void post(std::function<void()> what) override;
    void tell(std::function<void(Observer&)> what) override;
    void ended() noexcept override { changed_.notify_all(); }
    void forget(NamedLock& named) noexcept override;
    void finished(HoldCall& call) noexcept override;
    void heard(NamedLock& named, HolderId of, Notice notice) override;

private:
    friend class NamedCounter;
    friend class Underway;

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
        Alarm renewalTimer{io};
        Random random; ///< for questions; what concerns holds draws from the core's, under the mutex
        std::unordered_set<std::shared_ptr<Later>> later; ///< all that pauses
    };
    template <class Flow>
    class AsyncWait; ///< a wait that no thread waits for
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

    // engine.cpp
    void start();
    void run() noexcept;
    void recover();
    std::shared_ptr<Later> later(TimePoint when, std::function<void()> what);
    void ring();
    void sweepSoon() noexcept;
    void sendOutbox();
    std::function<void(bool, Errc)> reporter(const char* purpose);
    [[nodiscard]] std::chrono::milliseconds renewalTimeout() const noexcept;

    // shutdown.cpp
    bool closeLocalState(std::vector<std::shared_ptr<NamedLock>>& names);
    void endThread(TimePoint until) noexcept;

    // query.cpp
    std::error_code query(const std::shared_ptr<Call>& call, QueryMachine& machine);

    // drive.hpp
    template <class Flow>
    void drive(Lock& lock, Flow& flow, const AcquireOrder* order = nullptr);

    // release.cpp
    Unlocked endLevel(Lock& lock, Acquired acquired);

    const Config config_;
    const std::uint32_t generation_;
    std::atomic<bool> closing_{false};
    std::atomic<std::uint64_t> ownThread_{0};

    AdaptiveMutex mutex_;
    std::condition_variable_any changed_; ///< for shutdown
    Core core_;
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

/// The engine of a lock that the library made.
inline Engine& engineOf(const NamedLock& named) noexcept
{
    return static_cast<Engine&>(*named.port);
}

} // namespace redislock::detail
