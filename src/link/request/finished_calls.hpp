/// @file
/// Calls that have ended.
#pragma once

#include "link/request/call.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <utility>

namespace redislock::detail {

/// Ended calls, collected under a connection's mutex and reported after it is unlocked: declare this before the lock.
/// Allocates nothing: the calls are linked, and the addresses of sleepers have room for as many as are woken without
/// delaying others.
class FinishedCalls {
public:
    FinishedCalls() noexcept {} // not defaulted: the array is not cleared
    FinishedCalls(const FinishedCalls&) = delete;
    FinishedCalls& operator=(const FinishedCalls&) = delete;
    ~FinishedCalls() { tell(); }

    /// Adds a call that has its outcome. Its thread, if one waits, may use it again from here on.
    void add(std::shared_ptr<Call> call) noexcept;
    [[nodiscard]] bool empty() const noexcept { return first_ == nullptr && sleepers_ == 0; }
    /// Wakes the threads and ends the other calls; so does the destructor.
    void tell() noexcept;
    /// How many of the calls had a waiting thread, since this was asked last.
    std::size_t takeAwaited() noexcept { return std::exchange(awaited_, 0); }

private:
    std::shared_ptr<Call> first_; ///< calls for which no thread waits; destroyed outside the mutex
    Call* last_ = nullptr;
    std::size_t awaited_ = 0;
    std::size_t sleepers_ = 0;
    std::array<const void*, 64> addresses_;
};

} // namespace redislock::detail
