/// @file
/// Asynchronous calls about locks and clients. Each call is an object on the background thread.
#pragma once

#include "core/hold.hpp"
#include "core/order.hpp"
#include "redislock/handler.hpp"

#include <chrono>
#include <memory>

namespace redislock::detail {

/// What locks, guards and clients ask for without waiting. A handler is called once, however the call ends.
struct AsyncCalls {
    static void acquire(std::shared_ptr<NamedLock> named, AcquireOrder order, LockHandler handler);
    /// Ends a level, which counts as ended from here on. Waits for the answer as long as a blocking call would.
    static void release(const Acquired& acquired, UnlockHandler handler);
    static void timeToLive(const std::shared_ptr<NamedLock>& named, TimeHandler handler);
    static void isLocked(const std::shared_ptr<NamedLock>& named, FlagHandler handler);
    static void forceUnlock(const std::shared_ptr<NamedLock>& named, FlagHandler handler);
    static void connect(Engine& engine, FlagHandler handler);
    static void shutdown(Engine& engine, std::chrono::milliseconds timeout, FlagHandler handler);
};

} // namespace redislock::detail
