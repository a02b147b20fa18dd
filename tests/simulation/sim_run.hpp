/// @file
/// Operations that no thread waits for.
#pragma once

#include "core/operation/acquire_flow.hpp"
#include "core/operation/background_run.hpp"
#include "core/operation/release_flow.hpp"
#include "simulation/faults.hpp"
#include "simulation/sim_client.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

namespace redislock::simulation {

/// Runs an operation of the library in the background of a process, as `detail::AsyncOperation` does.
template <class Flow>
class SimRun final : public detail::BackgroundRun, public std::enable_shared_from_this<SimRun<Flow>> {
public:
    using Make = std::function<void(std::optional<Flow>&, detail::BackgroundRun*)>;
    /// Called with the ended operation; what it returns is called on the background thread.
    using Conclude = std::function<std::function<void()>(std::optional<Flow>&)>;

    SimRun(SimClient& client, Make make, Conclude conclude)
        : BackgroundRun(client.core()), client_(client), make_(std::move(make)), conclude_(std::move(conclude))
    {
    }

    std::shared_ptr<BackgroundRun> keep() override { return this->shared_from_this(); }
    void start()
    {
        self_ = this->shared_from_this();
        make_(flow_, this);
        begin();
        client_.observe();
    }
    /// The process is gone.
    void leave()
    {
        core_.runs.remove(*this);
        flow_.reset();
        make_ = nullptr;
        conclude_ = nullptr;
        self_.reset();
    }
    [[nodiscard]] const std::optional<Flow>& flow() const noexcept { return flow_; }

private:
    detail::Operation* operation() noexcept override { return flow_ ? &*flow_ : nullptr; }
    Rest finish() override
    {
        client_.post([self = std::exchange(self_, nullptr), tell = conclude_(flow_)] { tell(); });
        flow_.reset();
        return {};
    }
    Rest failed() noexcept override
    {
        leave();
        return {};
    }

    SimClient& client_;
    Make make_;
    Conclude conclude_;
    std::optional<Flow> flow_;
    std::shared_ptr<SimRun> self_; ///< from start() to the end
};

using SimAcquire = SimRun<detail::AcquireFlow>;
using SimRelease = SimRun<detail::ReleaseFlow>;

/// An acquire as `detail::AsyncCalls::acquire()` makes it. @param end called once, on the background thread; without a
/// hold, the lock was not acquired
std::shared_ptr<SimAcquire> acquireInBackground(SimClient& client, NamedLock& named, const detail::AcquireOrder& order,
                                                std::function<void(std::error_code, const detail::Acquired&)> end);

std::optional<Situation> situationOf(const SimAcquire& acquire);

} // namespace redislock::simulation
