/// @file
/// The state that a client, its locks and its guards share.
#pragma once

#include "client/background.hpp"
#include "client/group/server_id.hpp"
#include "core/core.hpp"
#include "core/counter/counter.hpp"
#include "core/port.hpp"
#include "link/mutexes.hpp"
#include "redislock/config.hpp"
#include "values/system/process.hpp"
#include "wire/assert.hpp"

#include <boost/asio/any_completion_executor.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace redislock::detail {

/// The shell around the core of one client: the mutex under which the core decides, and the connections, threads and
/// time that it needs. Calls that block run on the calling thread (ThreadCalls), everything else on the client's own
/// (Background).
///
/// The mutex guards the core, and with it all local state: to get at the core, a caller must show its lock. The mutex
/// is never held over I/O or callbacks; the blocking connection's mutex may be taken under it, never the other way
/// round.
class Engine final : public Port, public std::enable_shared_from_this<Engine> {
public:
    using Lock = std::unique_lock<WakingMutex>;

    static std::shared_ptr<Engine> make(Config config);
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    std::shared_ptr<NamedLock> named(const KindTraits& kind, std::string name);
    std::shared_ptr<NamedCounter> counter(CounterKind kind, std::string name);
    bool shutdown(std::chrono::milliseconds timeout) noexcept;
    /// First step of the end: ends the waiters, loses the holds. @return false when the end had begun before.
    bool beginEnd();
    /// Last step of the end: closes the connections, ends the background thread.
    void endConnections() noexcept;

    // what calls are made of
    [[nodiscard]] const Config& config() const noexcept { return config_; }
    [[nodiscard]] const std::string& id() const noexcept { return core_.id; }
    [[nodiscard]] Lock lock() noexcept { return Lock(mutex_); }
    /// @param lock of this engine's mutex, and locked.
    [[nodiscard]] Core& core([[maybe_unused]] const Lock& lock) noexcept
    {
        REDISLOCK_ASSERT(lock.mutex() == &mutex_ && lock.owns_lock());
        return core_;
    }
    /// For what keeps a reference to it, and uses it with the mutex.
    [[nodiscard]] Core& ownCore() noexcept { return core_; }
    /// The connection on which a request of a thread was put.
    [[nodiscard]] ThreadLink& commandsFor(const Call& call) noexcept { return route().of(call).commands; }
    /// Writes what is queued for the connections of the threads.
    void flush();
    [[nodiscard]] Background& background() noexcept { return *background_; }
    /// The ids of the nodes of the cluster, as far as they are known; empty without one.
    [[nodiscard]] std::vector<std::string> nodeIds() { return route().ids(); }
    /// What was said about errors that calls have met.
    [[nodiscard]] const LastErrors& lastErrors() const noexcept { return background_->lastErrors; }
    [[nodiscard]] ServerId& serverId() noexcept { return serverId_; }
    /// Why an operation that may have to wait cannot begin; nothing: it can, and the background thread is there.
    [[nodiscard]] std::optional<Reason> refusal();
    /// The same, for an operation that does not wait, and so may begin on any thread.
    [[nodiscard]] std::optional<Reason> asyncRefusal();
    /// Calls @p what on the background thread, soon. @return false after the client's end: then it is not called.
    bool tryPost(std::function<void()> what);
    /// Calls @p what on the background thread at that time; earlier, when the client ends. @return what calls it off;
    /// empty if the client has ended, or has no thread: then it is not called.
    std::function<void()> doAt(TimePoint when, std::function<void()> what);
    /// For handlers without an executor of their own: the background thread, as long as there is one; empty if the
    /// system has no thread for it.
    boost::asio::any_completion_executor handlerExecutor();

    // Port
    void enter() noexcept override REDISLOCK_ACQUIRES(mutex_) { mutex_.lock(); }
    void exit() noexcept override REDISLOCK_RELEASES(mutex_);
    [[nodiscard]] TimePoint now() const noexcept override { return BootClock::now(); }
    [[nodiscard]] bool isForked() const noexcept override;
    HolderId nextHolder() noexcept override;
    std::uint64_t nextRequest() noexcept override;
    bool submit(Lane lane, std::shared_ptr<Call> call, std::shared_ptr<Call> behind = nullptr) override;
    void submitIfConnected(std::vector<std::shared_ptr<Call>> calls) override;
    bool withdraw(Call& call) override;
    Fault giveUp(Lane lane, Call& call) noexcept override;
    void unfit(const Reply& reply) noexcept override { background_->lastErrors.noteUnfit(reply); }
    void fail(const std::shared_ptr<Call>& call, Errc why) override { commandsFor(*call).withdraw(call, why); }
    void want(std::string channel, ChannelListener listener) override;
    void drop(std::string channel, ChannelListener listener) override;
    void wake(Call& call) noexcept override { mutex_.notify(call.signal, Signal::look); }
    void alarm(TimePoint when) noexcept override { background_->renewalTimer.set(when); }
    using Port::after;
    void after(TimePoint when, std::function<void()> what) override;
    using Port::post;
    void post(std::function<void()> what) override { background_->post(std::move(what)); }
    void tell(std::function<void(Observer&)> what) override;

private:
    explicit Engine(Config config);

    [[nodiscard]] Route& route() noexcept { return background_->route; }
    void recover();
    void sendOutbox();

    std::optional<Uncancelled> held_; ///< from the destructor on: the end of the other members closes descriptors
    const Config config_;
    const std::uint32_t generation_;
    std::atomic<bool> closing_{false}; ///< set under the mutex

    WakingMutex mutex_;
    Core core_;
    bool queued_ = false;                       ///< requests for the command connection since exit() last looked
    std::vector<std::shared_ptr<Call>> outbox_; ///< for the background thread to send
    bool outboxClosed_ = false;

    std::unique_ptr<Background> background_;

    ServerId serverId_;
};

/// The engine of a lock that the library made.
inline Engine& engineOf(const NamedLock& named) noexcept
{
    return static_cast<Engine&>(named.core->port);
}

/// The engine of a semaphore or latch.
inline Engine& engineOf(const NamedCounter& counter) noexcept
{
    return static_cast<Engine&>(*counter.port);
}

} // namespace redislock::detail
