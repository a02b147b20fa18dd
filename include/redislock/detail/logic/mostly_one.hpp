/// @file
/// A list that nearly always has one element.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace redislock::detail {

/// A list whose first element lies inside it, and the others, which most lists never have, elsewhere: a client may have
/// hundreds of thousands of these. (boost::container::small_vector is 24 bytes larger than its element, this one 16.)
/// Keeps its memory when it is cleared. Not thread-safe.
///
/// @tparam T default-constructible and movable; an element that was taken out is set to `T()`.
template <class T>
class MostlyOne {
    template <class List, class Element>
    class Iterator {
    public:
        using value_type = T;
        using difference_type = std::ptrdiff_t;

        Iterator() noexcept = default;
        Iterator(List& list, std::size_t i) noexcept : list_(&list), i_(i) {}

        Element& operator*() const noexcept { return (*list_)[i_]; }
        Element* operator->() const noexcept { return &(*list_)[i_]; }
        Iterator& operator++() noexcept
        {
            ++i_;
            return *this;
        }
        Iterator operator++(int) noexcept
        {
            const Iterator before = *this;
            ++i_;
            return before;
        }
        friend bool operator==(const Iterator&, const Iterator&) noexcept = default;

    private:
        List* list_ = nullptr;
        std::size_t i_ = 0;
    };

public:
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

    [[nodiscard]] T& operator[](std::size_t i) noexcept { return i == 0 ? first_ : (*others_)[i - 1]; }
    [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return i == 0 ? first_ : (*others_)[i - 1]; }

    [[nodiscard]] auto begin() noexcept { return Iterator<MostlyOne, T>(*this, 0); }
    [[nodiscard]] auto end() noexcept { return Iterator<MostlyOne, T>(*this, size_); }
    [[nodiscard]] auto begin() const noexcept { return Iterator<const MostlyOne, const T>(*this, 0); }
    [[nodiscard]] auto end() const noexcept { return Iterator<const MostlyOne, const T>(*this, size_); }

    /// Adds an element at the end. Only this allocates, and only from the second element on.
    void add(T element)
    {
        if (size_ == 0) {
            first_ = std::move(element);
        } else {
            if (others_ == nullptr) {
                others_ = std::make_unique<std::vector<T>>();
            }
            others_->push_back(std::move(element));
        }
        ++size_;
    }

    /// Takes out the i-th element; those behind it move up.
    T take(std::size_t i) noexcept
    {
        T taken = std::exchange((*this)[i], T());
        for (; i + 1 < size_; ++i) {
            std::swap((*this)[i], (*this)[i + 1]);
        }
        if (size_ > 1) {
            others_->pop_back();
        }
        --size_;
        return taken;
    }

    void clear() noexcept
    {
        while (!empty()) {
            take(size_ - 1U);
        }
    }

private:
    T first_{};
    std::unique_ptr<std::vector<T>> others_;
    std::uint32_t size_ = 0;
};

} // namespace redislock::detail
