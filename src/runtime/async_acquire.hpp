/// @file
/// An acquire that no thread waits for.
#pragma once

#include "runtime/acquire_flow.hpp"
#include "runtime/completion.hpp"
#include "runtime/engine.hpp"

#include <boost/asio/steady_timer.hpp>

#include <cstdint>
#include <memory>
#include <optional>

namespace redislock::detail {

/// Drives an AcquireFlow on the background thread, as Engine::drive() does on a calling one: what is a sleep there is ended by a
/// timer, look() or the answer here.
///
/// Members are guarded by the engine's mutex; only look() is called by other threads.
class Engine::AsyncAcquire final : public AsyncWaiter, public std::enable_shared_from_this<AsyncAcquire> {
public:
    AsyncAcquire(Engine& engine, std::shared_ptr<NamedLock> named, AcquireOrder order,
                 Completion<LockGuard> completion);
    ~AsyncAcquire() override;

    /// Listens to the handler's cancellation slot. Before begin(), on the thread that starts the operation.
    void cancelWhenToldTo();
    /// Instead of begin().
    Completion<LockGuard> takeCompletion() { return std::move(completion_); }
    void begin();
    void cancel();
    void look() noexcept override;
    void answered(HoldCall& call) override;

private:
    void act(const AcquireFlow::Next& next);
    void finish();
    void timeOver();
    void wakeAt(TimePoint when);
    void askPolicy(std::uint32_t refusals);

    Engine& engine_;
    std::shared_ptr<NamedLock> named_;
    const AcquireOrder order_;
    Completion<LockGuard> completion_;
    boost::asio::steady_timer timer_;

    HoldRef hold_;
    std::optional<AcquireFlow> flow_; ///< from begin() to the end
    TimePoint until_{};               ///< when it goes on if nothing happens
    bool awaits_ = false;             ///< an answer
    bool cancelled_ = false;
    bool looking_ = false;
};

} // namespace redislock::detail
