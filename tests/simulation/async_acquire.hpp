/// @file
/// An acquire for which no thread waits.
#pragma once

#include "core/operation/acquire_flow.hpp"
#include "core/operation/waiting.hpp"
#include "simulation/operation.hpp"
#include "simulation/sim_client.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <system_error>

namespace redislock::simulation {

/// Drives the library's flow on the background thread of a process, as `detail::AsyncWait` does.
class AsyncAcquire final : public detail::AsyncWaiter, public std::enable_shared_from_this<AsyncAcquire> {
public:
    /// Called once, on the background thread. @param acquired has no hold if the lock was not acquired
    using End = std::function<void(std::error_code, const detail::Acquired& acquired)>;

    AsyncAcquire(SimClient& client, NamedLock& named, const detail::AcquireOrder& order, End end);

    /// Called on the background thread, as all functions here.
    void begin();
    void cancel();
    /// The process is gone.
    void drop();
    [[nodiscard]] std::optional<Situation> situation() const;

    void look() noexcept override;
    void answered(detail::Call& call) override;

private:
    void act(const detail::WaitStep& next);
    void askPolicy(std::uint32_t refusals);
    void timeOver();
    void finish();

    SimClient& client_;
    NamedLock& named_;
    const detail::AcquireOrder order_;
    End end_;
    HoldRef hold_;
    std::optional<detail::AcquireFlow> flow_; ///< from begin() to the end
    std::shared_ptr<AsyncAcquire> self_;      ///< as long
    TimePoint until_{};
    std::uint64_t timers_ = 0;
    bool awaits_ = false;
    bool looking_ = false;
};

/// An acquire that a thread starts without waiting; the thread does nothing else until the acquire has ended.
class StartedAcquire final : public Awaiting, public Acquiring {
public:
    StartedAcquire(SimClient& client, NamedLock& named, const detail::AcquireOrder& order);
    ~StartedAcquire() override { attempt_->drop(); }

    void advance() override;
    [[nodiscard]] std::optional<Situation> situation() const override { return attempt_->situation(); }
    [[nodiscard]] std::error_code error() const noexcept override { return error_; }
    [[nodiscard]] const detail::Acquired& acquired() const noexcept override { return acquired_; }
    [[nodiscard]] bool isNested() const noexcept override { return false; }

private:
    SimClient& client_;
    const std::shared_ptr<AsyncAcquire> attempt_;
    bool begun_ = false;
    bool ended_ = false;
    std::error_code error_;
    detail::Acquired acquired_;
};

} // namespace redislock::simulation
