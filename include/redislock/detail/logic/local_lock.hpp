/// @file
/// The holds of one name in this process.
#pragma once

#include "redislock/clock.hpp"
#include "redislock/detail/logic/mostly_one.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace redislock::detail {

/// The holds of one name in one client, by thread: the local half of the lock. At most one of them is valid at a time,
/// but a hold whose lease is over may stay beside it until its loss is noted. Not thread-safe; has no clock.
///
/// Threads that lost a hold still owe its unlock() calls. Their number is remembered for each thread, so that a late
/// unlock() is told apart from one of a thread that never held the lock. If there are too many such threads, they are
/// counted together: then a stranger may be taken for one of them, but none of them for a stranger, whose unlock()
/// throws.
///
/// @tparam Hold has `std::uint64_t owner` and `TimePoint validUntil() const`. @tparam Pointer a shared reference to a
/// hold.
template <class Hold, class Pointer = std::shared_ptr<Hold>>
class LocalLock {
public:
    void add(Pointer hold) { holds_.add(std::move(hold)); }

    /// Takes a hold out. @return the hold; null if it is not in here.
    Pointer remove(const Hold& hold) noexcept
    {
        for (std::size_t i = 0; i < holds_.size(); ++i) {
            if (holds_[i].get() == &hold) {
                return holds_.take(i);
            }
        }
        return nullptr;
    }

    /// The hold of a thread, valid or not; null when it has none.
    [[nodiscard]] Hold* of(std::uint64_t owner) const noexcept
    {
        for (const auto& hold : holds_) {
            if (hold->owner == owner) {
                return hold.get();
            }
        }
        return nullptr;
    }

    /// Until when a hold of this client keeps its other callers from asking Redis; in the past when none does.
    [[nodiscard]] TimePoint validUntil() const noexcept
    {
        TimePoint until{};
        for (const auto& hold : holds_) {
            until = std::max(until, hold->validUntil());
        }
        return until;
    }

    /// Notes that a thread lost a hold for which it will call unlock() so many times.
    void owe(std::uint64_t owner, std::uint32_t unlocks) noexcept
    {
        if (unlocks == 0) {
            return;
        }
        try {
            if (debts_ == nullptr) {
                debts_ = std::make_unique<std::vector<Debt>>();
            }
            for (auto& debt : *debts_) {
                if (debt.owner == owner) {
                    debt.unlocks += unlocks;
                    return;
                }
            }
            if (debts_->size() == maxDebtors) {
                oweTogether(debts_->front().unlocks);
                debts_->erase(debts_->begin());
            }
            debts_->push_back({owner, unlocks});
        } catch (const std::bad_alloc&) {
            oweTogether(unlocks);
        }
    }

    /// Counts one late unlock(). @return false for a thread that owes none.
    bool settle(std::uint64_t owner) noexcept
    {
        if (debts_ != nullptr) {
            const auto found = std::ranges::find(*debts_, owner, &Debt::owner);
            if (found != debts_->end()) {
                if (--found->unlocks == 0) {
                    debts_->erase(found);
                }
                return true;
            }
        }
        if (owedBySomebody_ == 0) {
            return false;
        }
        --owedBySomebody_;
        return true;
    }

    /// All holds of the name.
    [[nodiscard]] const MostlyOne<Pointer>& holds() const noexcept { return holds_; }

private:
    static constexpr std::size_t maxDebtors = 1024;
    struct Debt {
        std::uint64_t owner;
        std::uint32_t unlocks;
    };

    void oweTogether(std::uint32_t unlocks) noexcept
    {
        owedBySomebody_ += std::min(unlocks, UINT32_MAX - owedBySomebody_);
    }

    [[no_unique_address]] MostlyOne<Pointer> holds_; // the next member lies in this one's padding
    std::uint32_t owedBySomebody_ = 0;               ///< by the threads beyond maxDebtors
    std::unique_ptr<std::vector<Debt>> debts_;       ///< most names never have debts
};

} // namespace redislock::detail
