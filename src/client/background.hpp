/// @file
/// A client's own thread.
#pragma once

#include "client/route.hpp"
#include "link/connect/alarm.hpp"
#include "link/connect/last_errors.hpp"
#include "redislock/clock.hpp"
#include "redislock/config.hpp"
#include "redislock/error.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_set>

namespace redislock::detail {

/// How long a condition variable is to wait at a time, until a moment that may be TimePoint::max(). It adds the span to
/// the time of a clock of its own, which a longer one could overflow.
inline BootClock::duration napUntil(TimePoint until) noexcept
{
    return std::min<BootClock::duration>(until - BootClock::now(), std::chrono::hours(1));
}

/// The client's own thread, which starts with its first operation, and what runs on it: connecting, renewals and
/// asynchronous calls, notifications, timers.
class Background {
public:
    /// Something to be done after a pause.
    struct Later {
        boost::asio::steady_timer timer;
        std::function<void()> what; ///< empty: done, or called off
    };

    Background(const Config& config, const std::string& connectionName, const Node::Listener& listener);
    Background(const Background&) = delete;
    Background& operator=(const Background&) = delete;
    ~Background();

    /// Starts the thread, unless it was started, or end() was called. Any thread. @param owner kept until the thread
    /// ends; keeps this object alive. @return why there is no thread; nothing: there is, or was.
    std::optional<Reason> start(const std::shared_ptr<void>& owner);
    [[nodiscard]] bool isOwnThread() const noexcept;
    /// Calls @p what on the thread, soon, and in the order of the calls of this function. Any thread.
    void post(std::function<void()> what);
    /// Calls @p what on the thread at that time; earlier, when end() is called. Any thread.
    std::shared_ptr<Later> later(TimePoint when, std::function<void()> what);
    /// Makes the thread end when it has no more work, after @p last.
    void end(std::function<void()> last) noexcept;
    /// Called after end(): waits for the thread, until @p until or a little longer; a look-up that hangs must not hang
    /// the caller.
    void join(TimePoint until) noexcept;

    /// Called after an exception on the thread, when everything here has recovered. Set before start().
    std::function<void()> recovered;

    // used on the thread only, except that any thread may set alarms
    /// Two: with a hint of one, what this thread posts would wait for the end of its handler, and what others post
    /// meanwhile would overtake it.
    boost::asio::io_context io{2};
    LastErrors lastErrors; ///< used by any thread
    Route route;
    Alarm renewalTimer{io};

private:
    void run() noexcept;
    void recover();
    void close();

    boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{io.get_executor()};
    std::unordered_set<std::shared_ptr<Later>> later_; ///< all that waits for its time
    std::function<void()> last_;                       ///< from end()

    std::atomic<std::uint64_t> ownThread_{0};
    std::atomic<bool> started_{false};
    std::mutex mutex_; ///< guards the thread's start and end
    std::condition_variable ended_;
    std::thread thread_;
    bool isRunning_ = false;
    bool isEnding_ = false;
};

} // namespace redislock::detail
