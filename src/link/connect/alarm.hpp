/// @file
/// A timer that any thread may set.
#pragma once

#include "redislock/clock.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/system/system_error.hpp>

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <functional>
#include <utility>

namespace redislock::detail {

/// Calls a function on the thread of an io_context at a moment of the boot clock, also after a suspend.
///
/// Setting the alarm is one system call that allocates nothing and wakes nobody before the time. A timer of Asio may be
/// set only on its own thread, and to get there costs an allocation and a wake-up.
///
/// **Thread safety**: set() by any thread; the rest by the thread of the io_context.
class Alarm {
public:
    /// @throws boost::system::system_error when the system has no more timers.
    explicit Alarm(boost::asio::io_context& io) : timer_(io, make()) {}

    /// The alarm goes off at that time instead of the one set before; at once if that time has passed.
    void set(TimePoint when) noexcept
    {
        // an absolute time of zero would disarm it
        const auto ns = std::max<TimePoint::rep>(when.time_since_epoch().count(), 1);
        itimerspec time{};
        time.it_value.tv_sec = static_cast<std::time_t>(ns / 1'000'000'000);
        time.it_value.tv_nsec = static_cast<long>(ns % 1'000'000'000);
        ::timerfd_settime(timer_.native_handle(), TFD_TIMER_ABSTIME, &time, nullptr);
    }

    /// Calls @p ring each time the alarm goes off, until close(). What @p ring throws leaves the run of the io_context;
    /// then wait() again.
    void onRing(std::function<void()> ring)
    {
        ring_ = std::move(ring);
        wait();
    }
    void wait()
    {
        if (!timer_.is_open()) {
            return;
        }
        timer_.cancel(); // a wait that is left over would ring twice
        timer_.async_wait(boost::asio::posix::stream_descriptor::wait_read, [this](boost::system::error_code ec) {
            if (ec) {
                return;
            }
            std::uint64_t times = 0;
            (void)!::read(timer_.native_handle(), &times, sizeof times);
            ring_();
            wait();
        });
    }

    void close() { timer_.close(); }

private:
    static int make()
    {
        const int timer = ::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
        if (timer < 0) {
            throw boost::system::system_error(errno, boost::system::system_category(), "timerfd_create");
        }
        return timer;
    }

    boost::asio::posix::stream_descriptor timer_;
    std::function<void()> ring_;
};

} // namespace redislock::detail
