/// @file
/// Many due times, one timer.
#pragma once

#include "redislock/clock.hpp"
#include "wire/assert.hpp"

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace redislock::detail {

/// A place in a DueHeap, embedded in the scheduled item.
struct DueSlot {
    static constexpr std::uint32_t absent = UINT32_MAX;
    std::uint32_t index = absent;

    [[nodiscard]] bool scheduled() const noexcept { return index != absent; }
};

/// A binary min-heap of due times over items that know their place, so that any item can be moved or removed in O(log
/// n): the renewal schedule (and the schedule of deadlines) of one client.
///
/// @tparam Item scheduled by address; must not be destroyed while it is in the heap. @tparam slot the member of Item
/// that keeps its place. Only set() of a new item allocates. Not thread-safe; has no clock.
template <class Item, DueSlot Item::*slot>
class DueHeap {
public:
    /// Schedules an item, or moves it to another time.
    void set(Item& item, TimePoint due)
    {
        auto& place = item.*slot;
        if (!place.scheduled()) {
            if (heap_.size() == heap_.capacity()) { // grows by an eighth: there may be hundreds of thousands
                heap_.reserve(heap_.size() + heap_.size() / 8 + 16);
            }
            heap_.push_back({due, &item});
            place.index = static_cast<std::uint32_t>(heap_.size() - 1);
        } else {
            heap_[place.index].due = due;
        }
        siftDown(siftUp(place.index));
    }

    /// Takes an item out; does nothing if it is not scheduled.
    void remove(Item& item) noexcept
    {
        auto& place = item.*slot;
        if (!place.scheduled()) {
            return;
        }
        REDISLOCK_ASSERT(place.index < heap_.size() && heap_[place.index].item == &item);
        const std::uint32_t hole = std::exchange(place.index, DueSlot::absent);
        const Entry last = heap_.back();
        heap_.pop_back();
        if (hole < heap_.size()) {
            put(hole, last);
            siftDown(siftUp(hole));
        }
    }

    /// The most overdue item; null when none is due.
    [[nodiscard]] Item* firstDue(TimePoint now) const noexcept
    {
        return heap_.empty() || heap_.front().due > now ? nullptr : heap_.front().item;
    }

    /// Takes out and returns the most overdue item; null when none is due.
    Item* popDue(TimePoint now) noexcept
    {
        Item* item = firstDue(now);
        if (item != nullptr) {
            remove(*item);
        }
        return item;
    }

    /// The earliest due time; `TimePoint::max()` when empty.
    [[nodiscard]] TimePoint earliest() const noexcept { return heap_.empty() ? TimePoint::max() : heap_.front().due; }

    /// When a scheduled item is due.
    [[nodiscard]] TimePoint dueOf(const Item& item) const noexcept
    {
        REDISLOCK_ASSERT((item.*slot).scheduled());
        return heap_[(item.*slot).index].due;
    }

    /// Calls @p act with each item, in no order. It must not change this heap.
    template <class Act>
    void forEach(Act act) const
    {
        for (const Entry& entry : heap_) {
            act(*entry.item);
        }
    }

    [[nodiscard]] std::size_t size() const noexcept { return heap_.size(); }
    [[nodiscard]] bool empty() const noexcept { return heap_.empty(); }

private:
    struct Entry {
        TimePoint due;
        Item* item;
    };

    void put(std::uint32_t index, const Entry& entry) noexcept
    {
        heap_[index] = entry;
        (entry.item->*slot).index = index;
    }

    std::uint32_t siftUp(std::uint32_t index) noexcept
    {
        const Entry entry = heap_[index];
        while (index > 0 && entry.due < heap_[(index - 1) / 2].due) {
            put(index, heap_[(index - 1) / 2]);
            index = (index - 1) / 2;
        }
        put(index, entry);
        return index;
    }

    void siftDown(std::uint32_t index) noexcept
    {
        const Entry entry = heap_[index];
        const auto size = static_cast<std::uint32_t>(heap_.size());
        for (;;) {
            std::uint32_t child = 2 * index + 1;
            if (child >= size) {
                break;
            }
            if (child + 1 < size && heap_[child + 1].due < heap_[child].due) {
                ++child;
            }
            if (heap_[child].due >= entry.due) {
                break;
            }
            put(index, heap_[child]);
            index = child;
        }
        put(index, entry);
    }

    std::vector<Entry> heap_;
};

} // namespace redislock::detail
