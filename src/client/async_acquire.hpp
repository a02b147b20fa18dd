/// @file
/// An asynchronous acquire.
#pragma once

#include "client/async_wait.hpp"
#include "client/completion.hpp"
#include "client/engine.hpp"
#include "core/operation/acquire_flow.hpp"
#include "redislock/lock_guard.hpp"

#include <cstdint>
#include <memory>

namespace redislock::detail {

/// The flow of an asynchronous acquire, driven on the background thread.
class AsyncAcquire final : public AsyncWait<AcquireFlow> {
public:
    AsyncAcquire(Engine& engine, std::shared_ptr<NamedLock> named, AcquireOrder order,
                 Completion<LockGuard> completion);
    ~AsyncAcquire() override;

    /// Listens to the handler's cancellation slot. Before begin(), on the thread that starts the operation.
    void cancelWhenToldTo();
    /// Called instead of begin(), if the acquire cannot begin.
    Completion<LockGuard> takeCompletion() { return std::move(completion_); }
    /// Joins the queue. Background thread.
    void begin();

private:
    void askPolicy(std::uint32_t refusals) override;
    void finish() override;
    void failed() override;
    void tell();

    std::shared_ptr<NamedLock> named_;
    const AcquireOrder order_;
    Completion<LockGuard> completion_;
    HoldRef hold_;
    // the result, which is not destroyed under the mutex
    boost::system::error_code ec_;
    LockGuard guard_;
    std::shared_ptr<NamedLock> rest_;
};

} // namespace redislock::detail
