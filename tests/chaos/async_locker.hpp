/// @file
/// A chain of asynchronous calls in a chaos run.
#pragma once

#include "chaos/habits.hpp"
#include "chaos/progress.hpp"
#include "history/recorded_guard.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace redislock::test::chaos {

/// Takes and frees locks with callbacks, one after the other, all on one io_context. Some of its calls are cancelled,
/// some guards just end, some are released with a callback. The chain is not a thread: it is an owner with a number of
/// its own. @tparam Lock history::RecordedLock or history::RecordedGroup.
template <class Lock>
class AsyncLocker {
public:
    AsyncLocker(boost::asio::io_context& io, Board& board, Slot& slot, std::uint64_t seed, std::vector<Lock> locks)
        : board_(board), slot_(slot), habits_(seed), locks_(std::move(locks)), executor_(io.get_executor()), timer_(io)
    {
    }
    AsyncLocker(const AsyncLocker&) = delete;
    AsyncLocker& operator=(const AsyncLocker&) = delete;

    /// Asks for some lock, and goes on from there until the board says stop. Runs on the io_context.
    void begin()
    {
        if (board_.ending) {
            return;
        }
        auto& lock = locks_[habits_.upTo(locks_.size() - 1)];
        const auto wait = habits_.wait();
        const auto lease = habits_.lease();
        lock.log().lockBegins(wait, lease);
        ++slot_.waiting;
        lock.lock().asyncTryLock(
            wait, lease,
            boost::asio::bind_cancellation_slot(
                cancel_.slot(),
                boost::asio::bind_executor(executor_, [this, &lock](boost::system::error_code ec, Guard guard) {
                    ended(lock, ec, std::move(guard));
                })));
        if (habits_.oneIn(6)) {
            timer_.expires_after(habits_.between(0, 40));
            timer_.async_wait([this](boost::system::error_code ec) {
                if (!ec && !held_) {
                    cancel_.emit(boost::asio::cancellation_type::total);
                }
            });
        }
    }

private:
    using Guard = typename Lock::Guard;

    void ended(Lock& lock, boost::system::error_code ec, Guard guard)
    {
        --slot_.waiting;
        ++slot_.operations;
        timer_.cancel();
        held_.emplace(lock, ec, std::move(guard));
        if (!held_->isHeld()) {
            held_.reset();
            return after(std::chrono::milliseconds(1), &AsyncLocker::begin);
        }
        ++slot_.holding;
        until_ = std::chrono::steady_clock::now() + habits_.hold();
        use();
    }

    void use()
    {
        if (held_->sample() && std::chrono::steady_clock::now() < until_ && !board_.ending) {
            return after(std::chrono::milliseconds(7), &AsyncLocker::use);
        }
        if (habits_.oneIn(2)) {
            return held_->asyncRelease(executor_, [this] { released(); });
        }
        released();
    }

    void released()
    {
        held_.reset();
        --slot_.holding;
        ++slot_.operations;
        after(std::chrono::milliseconds(0), &AsyncLocker::begin);
    }

    void after(std::chrono::milliseconds time, void (AsyncLocker::*next)())
    {
        timer_.expires_after(time);
        timer_.async_wait([this, next](boost::system::error_code) { (this->*next)(); });
    }

    Board& board_;
    Slot& slot_;
    Habits habits_;
    std::vector<Lock> locks_;
    boost::asio::io_context::executor_type executor_;
    boost::asio::steady_timer timer_; ///< of the pause, or of the cancellation
    boost::asio::cancellation_signal cancel_;
    std::optional<history::RecordedGuard<Lock>> held_;
    std::chrono::steady_clock::time_point until_{};
};

} // namespace redislock::test::chaos
