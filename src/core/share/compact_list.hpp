/// @file
/// A list that nearly always has one element.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace redislock::detail {

/// A list whose only element lies inside it. If there are several, which most lists never have, all of them lie
/// elsewhere, one behind the other: a client may have hundreds of thousands of these lists.
/// (boost::container::small_vector is 24 bytes larger than its element, this one 16.) Keeps its memory when it is
/// cleared. Not thread-safe.
///
/// @tparam T default-constructible and movable without exceptions; an element that was taken out is set to `T()`.
template <class T>
class CompactList {
public:
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

    [[nodiscard]] T* begin() noexcept { return size_ > 1 ? several_->data() : &first_; }
    [[nodiscard]] T* end() noexcept { return begin() + size_; }
    [[nodiscard]] const T* begin() const noexcept { return size_ > 1 ? several_->data() : &first_; }
    [[nodiscard]] const T* end() const noexcept { return begin() + size_; }
    [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return begin()[i]; }

    /// Adds an element at the end. Only this allocates, and only from the second element on.
    void add(T element)
    {
        if (size_ == 0) {
            first_ = std::move(element);
        } else {
            if (several_ == nullptr) {
                several_ = std::make_unique<std::vector<T>>();
            }
            if (size_ == 1) {
                several_->reserve(2);
                several_->push_back(std::exchange(first_, T()));
            }
            several_->push_back(std::move(element));
        }
        ++size_;
    }

    /// Takes out the i-th element; those behind it move up.
    T take(std::size_t i) noexcept
    {
        T taken = std::exchange(begin()[i], T());
        std::rotate(begin() + i, begin() + i + 1, end());
        if (size_ > 1) {
            several_->pop_back();
        }
        if (--size_ == 1) {
            first_ = std::move(several_->front());
            several_->clear();
        }
        return taken;
    }

    void clear() noexcept
    {
        first_ = T();
        if (several_ != nullptr) {
            several_->clear();
        }
        size_ = 0;
    }

private:
    T first_{};
    std::unique_ptr<std::vector<T>> several_;
    std::uint32_t size_ = 0;
};

} // namespace redislock::detail
