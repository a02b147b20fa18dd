/// @file
/// Calls of a lock that go into a history, whatever their form.
#pragma once

#include "history/recorder.hpp"

#include <redislock/redislock.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <system_error>

namespace redislock::test::history {

/// What the owner of a hold may believe.
struct Belief {
    std::chrono::milliseconds validFor; ///< `max()`: for ever
    std::int64_t count;
};
/// The facts about a hold when its call returns.
struct Known {
    std::uint64_t token = 0; ///< 0: none
    std::string holder{};
};
/// Called after the clock was read: so the recorded deadline is never later than the true one.
using AskBelief = std::function<Belief()>;

/// Writes down the calls of one owner for one lock. The owner is a thread, or something else with a number of its own;
/// its calls do not overlap. Thread safety: one thread at a time.
class CallLog {
public:
    /// @param kind a word of the format; empty: a RedisLock.
    CallLog(std::shared_ptr<Recorder> recorder, const Client& client, std::string kind, std::string lock, int owner);

    void lockBegins(Wait wait, Lease lease, std::int64_t permits = 1) const;
    void locked(const AskBelief& ask, const Known& known = {}) const;
    /// @param error no error: others have the lock.
    void notLocked(std::error_code error) const;

    void unlockBegins() const;
    /// @param left how many levels the owner has left.
    void unlocked(Unlocked how, std::error_code error, std::int64_t left) const;
    /// The release was sent, and nobody waits for its answer.
    void unlockSent(std::int64_t left) const;

    /// @return whether the lock is held.
    [[nodiscard]] bool sample(const AskBelief& ask) const;

private:
    [[nodiscard]] Record line(Op op, Phase phase) const;
    static Record withBelief(Record record, const AskBelief& ask);

    std::shared_ptr<Recorder> recorder_;
    std::string client_;
    std::string kind_;
    std::string lock_;
    int owner_;
    std::int64_t watchdogMs_;
};

} // namespace redislock::test::history
