/// @file
/// The held members of a group.
#pragma once

#include "core/group/group_machine.hpp"
#include "core/group/group_standing.hpp"
#include "redislock/config.hpp"
#include "redislock/handler.hpp"
#include "redislock/lock.hpp"
#include "redislock/lock_guard.hpp"
#include "redislock/observer.hpp"
#include "redislock/stop_at.hpp"
#include "redislock/unlocked.hpp"

#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace redislock::detail {

/// What a group consists of. Does not change.
struct GroupMembers {
    enum class Rule : std::uint8_t {
        all,      ///< MultiLock
        majority, ///< RedLock, on distinct servers
    };

    std::vector<Lock> locks;
    Rule rule = Rule::all;

    [[nodiscard]] std::size_t needed() const noexcept
    {
        return rule == Rule::all ? locks.size() : locks.size() / 2 + 1;
    }
    [[nodiscard]] bool isForked() const noexcept;
    /// The configurations of the members' clients.
    [[nodiscard]] std::vector<const Config*> configs() const;
    /// An executor for handlers without one of their own.
    [[nodiscard]] boost::asio::any_completion_executor handlerExecutor() const;
    /// Whether this is a client's own thread of one of the members: it must not wait.
    [[nodiscard]] bool isOwnThread() const noexcept;
    /// The group as text, for messages.
    [[nodiscard]] std::string str() const;
    [[nodiscard]] bool isObserved() const noexcept;
    /// Calls @p what with each different observer of the members' clients.
    template <class What>
    void tell(const What& what) const noexcept
    {
        try {
            tellEach(what);
        } catch (const std::bad_alloc&) { // what there is no memory for is not told
            return;
        }
    }
    void tellEach(const std::function<void(Observer&, const LockEvent&)>& what) const;
};

/// One try at all members of a group, and the hold if the try succeeds. Members are granted, and lost, on the
/// background threads of their clients. When too few are left, or when the hold is ended, the others are given back,
/// including those that are granted later. **Thread safety**: safe. No call waits, except release().
class GroupHold : public std::enable_shared_from_this<GroupHold> {
public:
    using Answer = std::function<void(std::size_t member, const MemberAnswer&)>;

    explicit GroupHold(std::shared_ptr<const GroupMembers> members);
    ~GroupHold();
    GroupHold(const GroupHold&) = delete;
    GroupHold& operator=(const GroupHold&) = delete;

    /// Tries a member. @param answer called later, on the background thread of the member's client.
    void ask(std::size_t member, Wait wait, Lease lease, const Answer& answer);
    /// The try succeeded: from now on it counts which members are lost.
    void keep();
    /// Gives everything back without waiting. A second call does nothing.
    void end() noexcept;

    /// Ends the hold, and waits as GroupGuard::release() does.
    Unlocked release();
    /// Ends the hold. @param whenReleased called once, on any thread, perhaps in here.
    void release(const std::function<void(Unlocked)>& whenReleased);

    [[nodiscard]] TimePoint validUntil() const;
    [[nodiscard]] std::size_t heldMembers() const;
    [[nodiscard]] std::stop_token stopToken(StopAt when) const;
    [[nodiscard]] const GroupMembers& members() const noexcept { return *members_; }

private:
    using OnStop = std::stop_callback<std::function<void()>>;

    struct Member {
        LockGuard guard;
        std::shared_ptr<boost::asio::cancellation_signal> attempt; ///< while the attempt is under way
        std::unique_ptr<OnStop> onLoss;
        std::unique_ptr<OnStop> onRisk;
    };

    void arrived(std::size_t index, LockGuard guard);
    void hurt(std::size_t index, StopAt how);
    void follow(GroupStanding::Verdict verdict, std::size_t index);
    void tellOf(GroupStanding::Verdict verdict, std::size_t index);
    [[nodiscard]] std::vector<TimePoint>& deadlines() const noexcept;
    std::vector<Member> take() noexcept;
    void withdraw(std::vector<Member>& taken) noexcept;
    void giveBack(std::vector<Member>& taken, const std::function<void(Unlocked)>& whenReleased);
    void stop(std::size_t index, const std::stop_source& source) const;

    const std::shared_ptr<const GroupMembers> members_;
    mutable std::mutex mutex_; ///< never held over a call that may call back
    GroupStanding standing_;
    std::vector<Member> held_;                 ///< empty when the hold is over
    mutable std::vector<TimePoint> deadlines_; ///< its memory
    TimePoint keptAt_{};                       ///< 0: not held yet, or never
    bool isRiskTold_ = false;
    std::stop_source lost_;
    std::stop_source atRisk_;
};

} // namespace redislock::detail
