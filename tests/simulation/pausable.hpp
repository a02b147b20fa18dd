/// @file
/// A process that is stopped from time to time.
#pragma once

#include "simulation/scheduler.hpp"

#include <algorithm>
#include <deque>
#include <utility>

namespace redislock::simulation {

/// Runs tasks at once, or, while it is paused, later and in the same order.
class Pausable {
public:
    explicit Pausable(Scheduler& scheduler) noexcept : scheduler_(scheduler) {}

    void pauseUntil(VirtualTime end) noexcept
    {
        const VirtualTime begin = std::max(pausedUntil_, scheduler_.now());
        stood_ += std::max(end - begin, VirtualTime{0});
        pausedUntil_ = std::max(pausedUntil_, end);
    }
    /// How long it was paused, in all.
    [[nodiscard]] VirtualTime stood() const noexcept { return stood_; }
    [[nodiscard]] bool isPaused() const noexcept { return scheduler_.now() < pausedUntil_; }
    [[nodiscard]] VirtualTime pausedUntil() const noexcept { return pausedUntil_; }
    /// Runs nothing any more.
    void end() noexcept
    {
        ended_ = true;
        backlog_.clear();
    }

    /// @param keep an object that must live until then.
    template <class Keep>
    void run(Task task, Keep keep)
    {
        if (ended_) {
            return;
        }
        if (!isPaused() && backlog_.empty()) {
            return task();
        }
        backlog_.push_back(std::move(task));
        if (backlog_.size() == 1) {
            catchUp(std::move(keep));
        }
    }

private:
    template <class Keep>
    void catchUp(Keep keep)
    {
        scheduler_.at(pausedUntil_, [this, keep = std::move(keep)] {
            if (isPaused()) {
                return catchUp(keep);
            }
            while (!backlog_.empty() && !isPaused()) {
                const Task task = std::move(backlog_.front());
                task();
                if (!backlog_.empty()) {
                    backlog_.pop_front();
                }
            }
        });
    }

    Scheduler& scheduler_;
    VirtualTime pausedUntil_{0};
    VirtualTime stood_{0};
    std::deque<Task> backlog_; ///< the front task is running
    bool ended_ = false;
};

} // namespace redislock::simulation
