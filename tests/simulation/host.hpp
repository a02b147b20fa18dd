/// @file
/// The machine and the process of one client.
#pragma once

#include "redislock/random.hpp"
#include "simulation/pausable.hpp"
#include "simulation/scheduler.hpp"

#include <memory>
#include <string>
#include <utility>

namespace redislock::simulation {

/// Runs tasks for one process by its machine's clock: later when the process is paused, never when it has crashed.
class Host : public std::enable_shared_from_this<Host> {
public:
    Host(Scheduler& scheduler, std::string name, DriftingClock clock, std::uint64_t seed)
        : scheduler_(scheduler), name_(std::move(name)), clock_(clock), chance_(seed), process_(scheduler)
    {
    }

    [[nodiscard]] TimePoint now() const noexcept { return clock_.read(scheduler_.now()); }
    [[nodiscard]] VirtualTime trueTime(TimePoint local) const noexcept
    {
        return local == TimePoint::max() ? VirtualTime::max() : clock_.when(local);
    }
    [[nodiscard]] const std::string& name() const noexcept { return name_; }

    /// Sets a timer of this machine.
    void at(TimePoint when, Task task)
    {
        if (when != TimePoint::max()) {
            arrive(clock_.when(when), std::move(task));
        }
    }
    /// Wakes a thread: it runs after a moment.
    void soon(Task task) { arrive(scheduler_.now() + moment(), std::move(task)); }
    /// Gives the process' background thread a task, behind its present tasks.
    void post(Task task)
    {
        lastPost_ = std::max(lastPost_, scheduler_.now() + moment());
        arrive(lastPost_, std::move(task));
    }
    /// Lets something come from outside at that time.
    void arrive(VirtualTime when, Task task)
    {
        scheduler_.at(when, [self = shared_from_this(), task = std::move(task)]() mutable {
            self->process_.run(std::move(task), self);
        });
    }

    void pauseUntil(VirtualTime end) noexcept { process_.pauseUntil(end); }
    /// Since when the process has run without a pause.
    [[nodiscard]] VirtualTime runsSince() const noexcept { return process_.pausedUntil(); }
    /// How long the process was paused, in all.
    [[nodiscard]] VirtualTime stood() const noexcept { return process_.stood(); }
    void crash() noexcept { process_.end(); }

private:
    VirtualTime moment() noexcept
    {
        constexpr double longest = 60'000;
        return VirtualTime(static_cast<std::int64_t>(chance_.unit() * longest));
    }

    Scheduler& scheduler_;
    std::string name_;
    DriftingClock clock_;
    Random chance_;
    Pausable process_;
    VirtualTime lastPost_{0};
};

} // namespace redislock::simulation
