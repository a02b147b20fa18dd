/// @file
/// A lock of any kind whose calls go into a history, and an observer that writes down the events of a client.
#pragma once

#include "history/call_log.hpp"
#include "history/recorder.hpp"
#include "redislock/redislock.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace redislock::test::history {

/// Writes down the events of a client's holds, with their holders.
class HistoryObserver final : public Observer {
public:
    explicit HistoryObserver(std::shared_ptr<Recorder> recorder) : recorder_(std::move(recorder)) {}

    void acquired(const LockEvent& event, std::chrono::nanoseconds waited, std::uint32_t attempts) noexcept override;
    void renewed(const LockEvent& event, std::chrono::nanoseconds took) noexcept override;
    void renewalFailed(const LockEvent& event, std::error_code error) noexcept override;
    void atRisk(const LockEvent& event, std::chrono::nanoseconds validFor, LossReason reason) noexcept override;
    void lost(const LockEvent& event, LossReason reason) noexcept override;
    void released(const LockEvent& event, Unlocked how, std::chrono::nanoseconds held) noexcept override;
    void unconfirmed(const LockEvent& event) noexcept override;

private:
    void note(const LockEvent& event, Op op, std::string error = {}) noexcept;

    std::shared_ptr<Recorder> recorder_;
};

/// Writes down the settings of a client: its first record.
void recordSettings(Recorder& recorder, const Client& client);

/// A lock whose calls are recorded: invoke before, ok, fail or unknown after. For one thread.
class RecordedLock {
public:
    using Guard = LockGuard;
    static constexpr bool threadsOwnGuards = true; ///< what a guard takes, its thread holds

    /// @param kind a word of the format.
    RecordedLock(std::shared_ptr<Recorder> recorder, const Client& client, const std::string& name, int thread,
                 const std::string& kind = {});

    /// As Lock::tryLock(wait, lease).
    bool tryLock(Wait wait, Lease lease);
    /// As Lock::unlock().
    Unlocked unlock();
    /// Writes down what the thread may believe now. @return whether it holds the lock.
    bool sample();

    [[nodiscard]] const std::string& kind() const noexcept { return kind_; }
    /// For other ways of taking the same lock.
    [[nodiscard]] const CallLog& log() const noexcept { return log_; }
    [[nodiscard]] const Lock& lock() const noexcept { return lock_; }
    [[nodiscard]] Belief belief() const;
    /// Writes down that another way of taking the lock has succeeded.
    void taken(const AskBelief& ask, const LockGuard& guard) const;

private:
    /// @return the token, 0 if the kind has none; nothing if the lock was not acquired.
    std::optional<std::uint64_t> attempt(Wait wait, Lease lease, std::error_code& ec) const;

    std::string kind_;
    CallLog log_;
    Lock lock_;
    std::optional<FencedLock> fenced_; ///< the same, to be asked for tokens
};

} // namespace redislock::test::history
