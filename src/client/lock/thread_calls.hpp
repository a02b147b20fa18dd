/// @file
/// Blocking calls about locks.
#pragma once

#include "client/engine.hpp"
#include "core/hold.hpp"
#include "core/order.hpp"
#include "redislock/lock_report.hpp"
#include "redislock/stop_at.hpp"
#include "redislock/unlocked.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <system_error>

namespace redislock::detail {

/// What locks and guards ask for on the thread of their caller.
struct ThreadCalls {
    /// Waits until the lock is acquired, the wait is over, or it is called off. @param acquired without a hold: not
    /// acquired.
    static std::error_code acquire(NamedLock& named, const AcquireOrder& order, const std::stop_token& stop,
                                   Acquired& acquired);
    /// Ends the innermost level of the thread, and waits for the answer.
    static Unlocked unlock(NamedLock& named, std::error_code& ec);
    /// The same for a given level.
    static Unlocked release(Acquired acquired);
    /// Ends a level without waiting.
    static void releaseUnawaited(const Acquired& acquired) noexcept;

    static bool forceUnlock(NamedLock& named, std::error_code& ec);
    static std::optional<std::chrono::milliseconds> timeToLive(NamedLock& named, std::error_code& ec);
    /// Who has the lock; see Lock::explain().
    static std::optional<LockReport> explain(NamedLock& named, std::error_code& ec);
    static void connect(Engine& engine, std::error_code& ec);
    /// Asks until there is an answer; it is in the call. @param repeated whether an earlier try may have been executed
    /// too
    static std::error_code query(Engine& engine, const std::shared_ptr<Call>& call, bool& repeated);

    // what is known here
    static std::uint32_t holdCount(const NamedLock& named) noexcept;
    static std::chrono::milliseconds validFor(const NamedLock& named) noexcept;
    static std::stop_token stopToken(const NamedLock& named, StopAt when);
    /// @param hold null: the token of no hold.
    static std::stop_token stopToken(Hold* hold, StopAt when);
};

} // namespace redislock::detail
