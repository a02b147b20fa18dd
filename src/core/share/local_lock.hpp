/// @file
/// The holds of one name in this process.
#pragma once

#include "redislock/clock.hpp"
#include "wire/assert.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
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
    void add(Pointer hold)
    {
        REDISLOCK_ASSERT(hold != nullptr);
        if (holds().empty()) {
            only_ = std::move(hold);
            return;
        }
        auto& several = rest().several;
        if (several.empty()) {
            several.reserve(2);
            several.push_back(std::exchange(only_, nullptr));
        }
        several.push_back(std::move(hold));
    }

    /// Takes a hold out. @return the hold; null if it is not in here.
    Pointer remove(const Hold& hold) noexcept
    {
        if (only_ != nullptr) {
            return only_.get() == &hold ? std::exchange(only_, nullptr) : nullptr;
        }
        for (std::size_t i = 0; i < holds().size(); ++i) {
            auto& several = rest_->several;
            if (several[i].get() == &hold) {
                Pointer taken = std::move(several[i]);
                several.erase(several.begin() + static_cast<std::ptrdiff_t>(i));
                if (several.size() == 1) {
                    only_ = std::move(several.front());
                    several.clear();
                }
                return taken;
            }
        }
        return nullptr;
    }

    /// The hold of a thread, valid or not; null when it has none.
    [[nodiscard]] Hold* of(std::uint64_t owner) const noexcept
    {
        for (const auto& hold : holds()) {
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
        for (const auto& hold : holds()) {
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
            auto& debts = rest().debts;
            for (auto& debt : debts) {
                if (debt.owner == owner) {
                    debt.unlocks += unlocks;
                    return;
                }
            }
            if (debts.size() == maxDebtors) {
                oweTogether(debts.front().unlocks);
                debts.erase(debts.begin());
            }
            debts.push_back({owner, unlocks});
        } catch (const std::bad_alloc&) {
            oweTogether(unlocks);
        }
    }

    /// Counts one late unlock(). @return false for a thread that owes none.
    bool countLateUnlock(std::uint64_t owner) noexcept
    {
        if (rest_ != nullptr) {
            auto& debts = rest_->debts;
            const auto found = std::ranges::find(debts, owner, &OwedUnlocks::owner);
            if (found != debts.end()) {
                if (--found->unlocks == 0) {
                    debts.erase(found);
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

    /// Whether any thread owes an unlock().
    [[nodiscard]] bool isOwed() const noexcept
    {
        return owedBySomebody_ > 0 || (rest_ != nullptr && !rest_->debts.empty());
    }

    /// All holds of the name. Valid until one is added or removed.
    [[nodiscard]] std::span<const Pointer> holds() const noexcept
    {
        if (only_ == nullptr && rest_ != nullptr) {
            return rest_->several;
        }
        return {&only_, only_ != nullptr ? std::size_t{1} : 0};
    }

private:
    static constexpr std::size_t maxDebtors = 1024;
    struct OwedUnlocks {
        std::uint64_t owner;
        std::uint32_t unlocks;
    };

    /// What most names never have. One pointer for both: with a CompactList, a name would not fit into 136 bytes.
    struct Rest {
        std::vector<Pointer> several; ///< all holds, if there are several
        std::vector<OwedUnlocks> debts;
    };

    Rest& rest()
    {
        if (rest_ == nullptr) {
            rest_ = std::make_unique<Rest>();
        }
        return *rest_;
    }

    void oweTogether(std::uint32_t unlocks) noexcept
    {
        owedBySomebody_ += std::min(unlocks, UINT32_MAX - owedBySomebody_);
    }

    Pointer only_; ///< the hold, if there is one
    std::unique_ptr<Rest> rest_;
    std::uint32_t owedBySomebody_ = 0; ///< by the threads beyond maxDebtors
};

} // namespace redislock::detail
