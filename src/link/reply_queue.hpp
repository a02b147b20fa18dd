/// @file
/// Which reply belongs to which request.
#pragma once

#include "redislock/clock.hpp"
#include "wire/assert.hpp"

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace redislock::detail {

/// The requests of one connection in the order of their replies: first the written ones, then those not yet written.
///
/// Requests are shared: a slot stays, and its reply is read in order, even when nobody waits for it any more. A ring
/// buffer; allocates only to grow. Not thread-safe, no I/O, no clock.
///
/// @tparam Request has a member `TimePoint sentAt`.
template <class Request>
class ReplyQueue {
public:
    /// Makes room for so many more, at most 16: the next push() of each allocates nothing.
    void makeRoom(std::size_t more = 1)
    {
        if (size_ + more > ring_.size()) {
            grow();
        }
    }

    /// Adds a request whose bytes are yet to be written.
    void push(std::shared_ptr<Request> request)
    {
        makeRoom();
        REDISLOCK_ASSERT(request != nullptr);
        ring_[at(size_)] = std::move(request);
        ++size_;
    }

    /// All unwritten requests are being written now.
    void written(TimePoint now) noexcept
    {
        for (; written_ < size_; ++written_) {
            ring_[at(written_)]->sentAt = now;
        }
    }

    /// Takes the request to which the next reply belongs; null when no written request is left: the reply is
    /// unsolicited.
    std::shared_ptr<Request> answered() noexcept
    {
        if (written_ == 0) {
            return nullptr;
        }
        --written_;
        return takeFirst();
    }

    /// Takes the first request, written or not; null when empty. For a connection that has ended.
    std::shared_ptr<Request> abandon() noexcept
    {
        if (size_ == 0) {
            return nullptr;
        }
        written_ -= written_ > 0 ? 1 : 0;
        return takeFirst();
    }

    /// Takes out a request that has not been written yet. @return false for other requests, which stay.
    bool erase(const Request& request) noexcept
    {
        for (std::size_t i = written_; i < size_; ++i) {
            if (ring_[at(i)].get() != &request) {
                continue;
            }
            for (; i + 1 < size_; ++i) {
                ring_[at(i)] = std::move(ring_[at(i + 1)]);
            }
            ring_[at(i)].reset();
            --size_;
            return true;
        }
        return false;
    }

    [[nodiscard]] bool contains(const Request& request) const noexcept
    {
        for (std::size_t i = 0; i < size_; ++i) {
            if (ring_[at(i)].get() == &request) {
                return true;
            }
        }
        return false;
    }

    /// When the oldest unanswered request was written; `TimePoint::max()` when there is none.
    [[nodiscard]] TimePoint oldestSent() const noexcept
    {
        return written_ == 0 ? TimePoint::max() : ring_[first_]->sentAt;
    }

    /// The i-th request from the front.
    [[nodiscard]] const std::shared_ptr<Request>& operator[](std::size_t i) const noexcept
    {
        REDISLOCK_ASSERT(i < size_);
        return ring_[at(i)];
    }

    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] std::size_t unanswered() const noexcept { return written_; }
    [[nodiscard]] std::size_t unwritten() const noexcept { return size_ - written_; }

private:
    [[nodiscard]] std::size_t at(std::size_t i) const noexcept { return (first_ + i) & (ring_.size() - 1); }

    std::shared_ptr<Request> takeFirst() noexcept
    {
        REDISLOCK_ASSERT(size_ > 0 && written_ < size_);
        auto request = std::move(ring_[first_]);
        first_ = at(1);
        --size_;
        return request;
    }

    void grow()
    {
        std::vector<std::shared_ptr<Request>> larger(ring_.empty() ? 16 : ring_.size() * 2);
        for (std::size_t i = 0; i < size_; ++i) {
            larger[i] = std::move(ring_[at(i)]);
        }
        ring_ = std::move(larger);
        first_ = 0;
    }

    std::vector<std::shared_ptr<Request>> ring_; ///< its size is a power of two
    std::size_t first_ = 0;
    std::size_t size_ = 0;
    std::size_t written_ = 0;
};

} // namespace redislock::detail
