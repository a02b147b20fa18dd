/// @file
/// An operation that no thread waits for.
#pragma once

#include "core/due_heap.hpp"
#include "core/operation/operation.hpp"
#include "link/request/call.hpp"
#include "redislock/hold_ref.hpp"

#include <memory>

namespace redislock::detail {

class Core;
struct NamedLock;

/// Runs an operation that no thread waits for. Where a thread would sleep, the core's alarm, look() or the answer
/// continues the operation.
///
/// Members are guarded by the core's mutex.
class BackgroundRun : public Requester {
public:
    /// What a run leaves over. Destroyed without the mutex: it may hold the last reference to the client.
    struct Rest {
        HoldRef hold{};
        std::shared_ptr<NamedLock> named{};
        std::shared_ptr<void> self{}; ///< the run's reference to itself
    };

    ~BackgroundRun() override;

    [[nodiscard]] Core& core() const noexcept { return core_; }
    /// A reference to this; what it refers to may be reused.
    virtual std::shared_ptr<BackgroundRun> keep() = 0;
    /// Something changed: the operation judges again, soon, on the background thread. Expects the mutex.
    void look() noexcept;
    /// Ends the operation as soon as possible. Any thread, without the mutex. What this posts does not keep the run,
    /// and with it the client: the background thread may have ended, and would never destroy what was posted.
    void cancel();
    /// Its time has come. Expects the mutex; background thread.
    void timeIsOver();
    /// The client ends: what only sleeps is cancelled. Expects the mutex.
    void endSleep();
    /// Ends the operation in the middle. Expects the mutex.
    void drop();
    void answered(Call& call) noexcept override;

    DueSlot slot; ///< in the core's heap

protected:
    explicit BackgroundRun(Core& core) noexcept : core_(core) {}

    /// The first step. Expects the mutex. The caller has other references to what may be left over.
    void begin();
    /// Ends the operation for lack of memory. Expects the mutex.
    void fail() noexcept;
    /// Null: the operation has not begun, or is over.
    virtual Operation* operation() noexcept = 0;
    /// The operation is done: takes its result, and destroys it. Expects the mutex. @return what is left over
    virtual Rest finish() = 0;
    /// There was no memory to go on: destroys the cancelled operation. Expects the mutex.
    virtual Rest failed() noexcept = 0;

    Core& core_;
    bool cancelled_ = false; ///< by the caller

private:
    template <class Step>
    void step(Step next);
    void act(const WaitStep& next);
    void askPolicy(const WaitStep& question);
    void dropRest();

    Rest rest_; ///< of an operation that has just ended
    bool awaits_ = false;
    bool looking_ = false;
};

} // namespace redislock::detail
