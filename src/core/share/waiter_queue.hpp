/// @file
/// The waiters of one name in this process.
#pragma once

#include "wire/assert.hpp"

#include <cstddef>

namespace redislock::detail {

/// A place in a WaiterQueue; the base class of waiters.
template <class Waiter>
struct WaiterLink {
    Waiter* before = nullptr; ///< for the head: the last waiter
    Waiter* behind = nullptr;
    bool queued = false;
};

/// First come, first served: a doubly linked list through the waiters themselves. Only its head asks Redis; every
/// waiter that leaves, for whatever reason, leaves through leave(), which names the new head. Allocates nothing, cannot
/// fail. Not thread-safe.
template <class Waiter>
class WaiterQueue {
public:
    [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }
    [[nodiscard]] Waiter* head() const noexcept { return head_; }
    /// How many waiters there are; counts them.
    [[nodiscard]] std::size_t size() const noexcept
    {
        std::size_t count = 0;
        forEach([&count](const Waiter&) { ++count; });
        return count;
    }

    /// Joins at the end.
    void join(Waiter& waiter) noexcept
    {
        REDISLOCK_ASSERT(!waiter.queued);
        waiter.behind = nullptr;
        waiter.queued = true;
        if (head_ == nullptr) {
            waiter.before = &waiter;
            head_ = &waiter;
            return;
        }
        waiter.before = head_->before;
        head_->before->behind = &waiter;
        head_->before = &waiter;
    }

    /// Leaves from anywhere. @return the new head if the old one left, null otherwise.
    Waiter* leave(Waiter& waiter) noexcept
    {
        if (!waiter.queued) {
            return nullptr;
        }
        REDISLOCK_ASSERT(head_ != nullptr && waiter.before != nullptr);
        const bool wasHead = head_ == &waiter;
        if (wasHead) {
            head_ = waiter.behind;
        } else {
            waiter.before->behind = waiter.behind;
        }
        if (Waiter* next = waiter.behind != nullptr ? waiter.behind : head_) {
            next->before = waiter.before; // if the last one left: the head knows the new last one
        }
        waiter.before = waiter.behind = nullptr;
        waiter.queued = false;
        return wasHead ? head_ : nullptr;
    }

    /// Calls a function with each waiter, first to last.
    template <class Function>
    void forEach(Function&& function) const
    {
        for (Waiter* waiter = head_; waiter != nullptr; waiter = waiter->behind) {
            function(*waiter);
        }
    }

private:
    Waiter* head_ = nullptr;
};

} // namespace redislock::detail
