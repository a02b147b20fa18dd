/// @file
/// A group of locks whose calls go into a history.
#pragma once

#include "history/call_log.hpp"
#include "history/recorder.hpp"

#include <redislock/redislock.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace redislock::test::history {

/// A lock of a group. Its name in a history stands for one key on one server: equal keys on several servers have
/// different names.
struct RecordedMember {
    std::reference_wrapper<const Client> client;
    std::string name;
};

/// A MultiLock or a RedLock whose calls are recorded, as those of a RecordedLock. It also records its losses. For one
/// thread.
class RecordedGroup {
public:
    using Guard = GroupGuard;
    static constexpr bool threadsOwnGuards = false;

    /// Writes down the members of the group. @param kind "multi" or "red". @param name must not be that of a member.
    RecordedGroup(std::shared_ptr<Recorder> recorder, const std::string& kind, const std::string& name,
                  const std::vector<RecordedMember>& members, int owner);

    /// As GroupLock::tryLock(wait, lease).
    bool tryLock(Wait wait, Lease lease);
    /// As GroupLock::unlock().
    Unlocked unlock();
    /// Writes down what the thread may believe now. @return whether it holds the group.
    bool sample();

    /// For other ways of taking the same group.
    [[nodiscard]] const CallLog& log() const noexcept { return log_; }
    [[nodiscard]] const GroupLock& lock() const noexcept { return lock_; }
    [[nodiscard]] Belief belief() const;
    void taken(const AskBelief& ask, const GroupGuard& guard) { taken(ask, guard.stopToken()); }

private:
    void taken(const AskBelief& ask, const std::stop_token& lost);

    std::shared_ptr<Recorder> recorder_;
    std::string client_; ///< of the first member: that of the whole group in the history
    std::string name_;
    CallLog log_;
    GroupLock lock_;
    /// The callback of the last hold. On the heap, because a stop callback can be neither copied nor moved.
    std::unique_ptr<std::stop_callback<std::function<void()>>> loss_;
};

} // namespace redislock::test::history
