/// @file
/// An observer that remembers all events.
#pragma once

#include "redislock/observer.hpp"
#include "support/eventually.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace redislock::test {

/// One event.
struct Told {
    std::string what{}; ///< the observer's function
    std::string name{};
    std::string holder{};
    std::chrono::nanoseconds time{}; ///< the duration that came with it
    std::optional<std::chrono::milliseconds> left{};
    std::uint32_t attempts = 0;
    LossReason reason{};
    ObjectKind kind{};
    Unlocked how{};
    std::error_code error{};
    std::string why{}; ///< of disconnected and warned
    std::chrono::nanoseconds at = bootTime();
};

/// Remembers all events; runs the reaction to each event, on the client's thread. Thread-safe.
class RecordingObserver final : public Observer {
public:
    using Reaction = std::function<void(const Told&)>;

    /// From now on @p reaction runs after each event was noted.
    void react(Reaction reaction)
    {
        const std::lock_guard lock(mutex_);
        reaction_ = std::move(reaction);
    }

    [[nodiscard]] std::vector<Told> all() const
    {
        const std::lock_guard lock(mutex_);
        return events_;
    }

    /// The events of one kind, of one lock if a name is given.
    [[nodiscard]] std::vector<Told> of(std::string_view what, std::string_view name = {}) const
    {
        auto events = all();
        std::erase_if(events,
                      [&](const Told& told) { return told.what != what || (!name.empty() && told.name != name); });
        return events;
    }

    [[nodiscard]] std::size_t count(std::string_view what, std::string_view name = {}) const
    {
        return of(what, name).size();
    }

    /// Waits until there are @p least events of a kind. @return whether there were in time.
    [[nodiscard]] bool await(std::string_view what, std::string_view name = {}, std::size_t least = 1) const
    {
        return eventually([&] { return count(what, name) >= least; }, std::chrono::seconds(15));
    }

    /// The kinds of all events of one lock, in order, without repetitions of the last.
    [[nodiscard]] std::vector<std::string> story(std::string_view name) const
    {
        std::vector<std::string> kinds;
        for (const auto& told : all()) {
            if (told.name == name && (kinds.empty() || kinds.back() != told.what)) {
                kinds.push_back(told.what);
            }
        }
        return kinds;
    }

    void acquired(const LockEvent& e, std::chrono::nanoseconds waited, std::uint32_t attempts) noexcept override
    {
        note(e, {.what = "acquired", .time = waited, .attempts = attempts});
    }
    void contended(const LockEvent& e, std::optional<std::chrono::milliseconds> left, std::chrono::nanoseconds waited,
                   std::uint32_t attempts) noexcept override
    {
        note(e, {.what = "contended", .time = waited, .left = left, .attempts = attempts});
    }
    void renewed(const LockEvent& e, std::chrono::nanoseconds late) noexcept override
    {
        note(e, {.what = "renewed", .time = late});
    }
    void renewalFailed(const LockEvent& e, std::error_code error) noexcept override
    {
        note(e, {.what = "renewalFailed", .error = error});
    }
    void atRisk(const LockEvent& e, std::chrono::nanoseconds validFor, LossReason reason) noexcept override
    {
        note(e, {.what = "atRisk", .time = validFor, .reason = reason});
    }
    void lost(const LockEvent& e, LossReason reason) noexcept override { note(e, {.what = "lost", .reason = reason}); }
    void released(const LockEvent& e, Unlocked how, std::chrono::nanoseconds held) noexcept override
    {
        note(e, {.what = "released", .time = held, .how = how});
    }
    void unconfirmed(const LockEvent& e) noexcept override { note(e, {.what = "unconfirmed"}); }
    void heldTooLong(const LockEvent& e, std::chrono::nanoseconds held) noexcept override
    {
        note(e, {.what = "heldTooLong", .time = held});
    }
    void keyWithoutTtl(const LockEvent& e) noexcept override { note(e, {.what = "keyWithoutTtl"}); }
    void pushMissed(const LockEvent& e) noexcept override { note(e, {.what = "pushMissed"}); }
    void subscribeRefused(const LockEvent& e) noexcept override { note(e, {.what = "subscribeRefused"}); }
    void connected(std::string_view purpose) noexcept override
    {
        note({}, {.what = "connected:" + std::string(purpose)});
    }
    void disconnected(std::string_view purpose, std::error_code error, std::string_view why) noexcept override
    {
        note({}, {.what = "disconnected:" + std::string(purpose), .error = error, .why = std::string(why)});
    }
    void warned(std::string_view what) noexcept override { note({}, {.what = "warned", .why = std::string(what)}); }

private:
    void note(const LockEvent& event, Told told)
    {
        told.name = event.name;
        told.holder = event.holder;
        told.kind = event.kind;
        Reaction reaction;
        {
            const std::lock_guard lock(mutex_);
            events_.push_back(told);
            reaction = reaction_;
        }
        if (reaction) {
            reaction(told);
        }
    }

    mutable std::mutex mutex_;
    std::vector<Told> events_;
    Reaction reaction_;
};

} // namespace redislock::test
