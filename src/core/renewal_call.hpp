/// @file
/// The request that renews holds.
#pragma once

#include "core/hold.hpp"
#include "link/request/call.hpp"
#include "redislock/clock.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace redislock::detail {

/// Renews several holds, with one script. Nobody waits for it.
class RenewalCall : public Call {
public:
    struct Item {
        HoldRef hold;
        std::chrono::milliseconds lease;
        bool asked = true; ///< was in the request when it was last sent
    };

    /// @param count how many holds are added without makeRoom(), so that add() allocates nothing. @param use the script
    /// that renews
    RenewalCall(const ScriptUse& use, std::size_t count) : use_(use)
    {
        items_.reserve(count);
        mode = Mode::detached;
    }
    void makeRoom() { items_.reserve(items_.size() + 1); }
    void add(Hold& hold, std::chrono::milliseconds lease) noexcept { items_.push_back({&hold, lease}); }

    /// Leaves out holds that have ended meanwhile.
    void encode(std::string& out, Form by) override;
    [[nodiscard]] Subject subject() const override;
    [[nodiscard]] bool isWanted(TimePoint now) const noexcept override;
    [[nodiscard]] bool isInNoOrder() const noexcept override { return true; }
    void finished() noexcept override;
    [[nodiscard]] Slot slot() const noexcept override { return items_.front().hold->lock->slot; }

    [[nodiscard]] const ScriptUse& use() const noexcept { return use_; }
    [[nodiscard]] const std::vector<Item>& items() const noexcept { return items_; }
    /// When the request is over: what to destroy without the mutex.
    std::vector<Item> takeItems() noexcept { return std::move(items_); }

private:
    const ScriptUse& use_;
    std::vector<Item> items_;
};

} // namespace redislock::detail
