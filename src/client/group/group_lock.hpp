/// @file
/// What the copies of a group lock share.
#pragma once

#include "client/group/group_hold.hpp"
#include "redislock/group_guard.hpp"
#include "redislock/lease_time.hpp"
#include "redislock/retry_policy.hpp"

#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <system_error>
#include <vector>

namespace redislock::detail {

struct FailedCall;

/// A MultiLock or RedLock: its members, and the holds of threads.
class GroupState {
public:
    /// @throws LockError `invalidArgument` for members that cannot form a group.
    static std::shared_ptr<GroupState> make(GroupMembers::Rule rule, std::vector<Lock> locks);

    /// Acquires for the owner of the guard.
    /// @param thrown receives what the policy throws; null: that is dropped.
    GroupGuard acquire(Wait wait, Lease lease, std::shared_ptr<const RetryPolicy> retry, const std::stop_token& stop,
                       std::error_code& ec, std::exception_ptr* thrown = nullptr) const;
    void asyncAcquire(Wait wait, Lease lease, std::shared_ptr<const RetryPolicy> retry, GroupHandler handler) const;

    /// Acquires for the calling thread.
    bool lock(Wait wait, Lease lease, std::shared_ptr<const RetryPolicy> retry, const std::stop_token& stop,
              std::error_code& ec, std::exception_ptr* thrown);
    Unlocked unlock(std::error_code& ec);
    /// The calling thread's hold; null if it has none.
    [[nodiscard]] std::shared_ptr<GroupHold> held() const;

    /// Describes the error, for messages.
    [[nodiscard]] FailedCall failedCall(const char* verb, const std::error_code& ec) const;

    static GroupGuard guardOf(std::shared_ptr<GroupHold> hold) noexcept { return GroupGuard(std::move(hold)); }
    static std::shared_ptr<GroupHold> holdOf(GroupGuard&& guard) noexcept { return std::move(guard.hold_); }

private:
    explicit GroupState(std::shared_ptr<const GroupMembers> members) noexcept : members_(std::move(members)) {}

    [[nodiscard]] std::optional<Errc> refusal(Lease lease) const;

    const std::shared_ptr<const GroupMembers> members_;
    mutable std::mutex mutex_;
    std::map<std::uint64_t, std::shared_ptr<GroupHold>>
        holds_; ///< by currentThread(); a lost hold until it is unlocked
};

} // namespace redislock::detail
