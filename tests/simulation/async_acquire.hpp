/// @file
/// An acquire that no thread waits for.
#pragma once

#include "logic/flow/acquire_flow.hpp"
#include "logic/flow/waiting.hpp"
#include "simulation/sim_client.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <system_error>

namespace redislock::simulation {

/// Drives the library's flow on the background thread of a process, as `detail::Engine::AsyncWait` does.
class AsyncAcquire final : public detail::AsyncWaiter, public std::enable_shared_from_this<AsyncAcquire> {
public:
    /// Called once, on the background thread. @param acquired without a hold: it was not
    using End = std::function<void(std::error_code, const detail::Acquired& acquired)>;

    AsyncAcquire(SimClient& client, NamedLock& named, const detail::AcquireOrder& order, End end);

    /// Background thread, as the rest.
    void begin();
    void cancel();
    [[nodiscard]] std::optional<Situation> situation() const;

    void look() noexcept override;
    void answered(detail::Call& call) override;

private:
    void act(const detail::WaitStep& next);
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

} // namespace redislock::simulation
