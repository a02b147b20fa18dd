/// @file
/// Who waits in this process for one name.
#pragma once

#include <cstddef>

namespace redislock::detail {

/// A place in a WaiterQueue, a base of what waits.
template <class Waiter>
struct WaiterLink {
    Waiter* before = nullptr;
    Waiter* behind = nullptr;
    bool queued = false;
};

/// First come, first served: a doubly linked list through the waiters themselves. Only its head asks Redis; whoever leaves,
/// for whatever reason, leaves through leave(), which names the one who is head now. Allocates nothing, cannot fail.
/// Not thread-safe.
template <class Waiter>
class WaiterQueue {
public:
    [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }
    [[nodiscard]] Waiter* head() const noexcept { return head_; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

    /// Joins at the end.
    void join(Waiter& waiter) noexcept
    {
        waiter.before = tail_;
        waiter.behind = nullptr;
        waiter.queued = true;
        (tail_ ? tail_->behind : head_) = &waiter;
        tail_ = &waiter;
        ++size_;
    }

    /// Leaves from anywhere. @return the new head if the old one left, null otherwise.
    Waiter* leave(Waiter& waiter) noexcept
    {
        if (!waiter.queued) {
            return nullptr;
        }
        const bool wasHead = head_ == &waiter;
        (waiter.before ? waiter.before->behind : head_) = waiter.behind;
        (waiter.behind ? waiter.behind->before : tail_) = waiter.before;
        waiter.before = waiter.behind = nullptr;
        waiter.queued = false;
        --size_;
        return wasHead ? head_ : nullptr;
    }

    /// Calls a function with each, first to last.
    template <class Function>
    void forEach(Function&& function) const
    {
        for (Waiter* waiter = head_; waiter != nullptr; waiter = waiter->behind) {
            function(*waiter);
        }
    }

private:
    Waiter* head_ = nullptr;
    Waiter* tail_ = nullptr;
    std::size_t size_ = 0;
};

} // namespace redislock::detail
