/// @file
/// An observer that remembers all events.
#pragma once

#include "redislock/redislock.hpp"
#include "support/eventually.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace redislock::test {

using namespace std::chrono_literals;

/// Remembers all events of a client.
class Recorder final : public Observer {
public:
    enum class Event {
        acquired,
        contended,
        renewed,
        renewalFailed,
        atRisk,
        lost,
        released,
        unconfirmed,
        keyWithoutTtl,
        pushMissed,
        subscribeRefused,
        connected,
        disconnected,
        warned,
    };
    struct Told {
        Event event;
        std::chrono::nanoseconds time{0}; ///< since boot
        std::string holder{};             ///< or the purpose of a connection, or a warning
        std::uint32_t attempts = 0;       ///< of acquired and contended
        LossReason reason{};              ///< of lost
        Unlocked how{};                   ///< of released
        std::error_code error{};          ///< of renewalFailed and disconnected
    };

    [[nodiscard]] std::size_t count(Event event) const { return all(event).size(); }

    /// Waits until an event happened often enough.
    [[nodiscard]] bool await(Event event, std::size_t times = 1, std::chrono::milliseconds timeout = 15s) const
    {
        return eventually([&] { return count(event) >= times; }, timeout);
    }

    [[nodiscard]] std::vector<Told> all(Event event) const
    {
        const std::lock_guard lock(mutex_);
        std::vector<Told> found;
        for (const auto& told : told_) {
            if (told.event == event) {
                found.push_back(told);
            }
        }
        return found;
    }

    /// Sets a function that is called with each event, on the client's thread.
    void onEvent(std::function<void(const Told&)> reaction)
    {
        const std::lock_guard lock(mutex_);
        reaction_ = std::move(reaction);
    }

private:
    using Nanoseconds = std::chrono::nanoseconds;

    void acquired(const LockEvent& e, Nanoseconds, std::uint32_t attempts) noexcept override
    {
        tell({.event = Event::acquired, .holder = std::string(e.holder), .attempts = attempts});
    }
    void contended(const LockEvent& e, std::optional<std::chrono::milliseconds>, Nanoseconds,
                   std::uint32_t attempts) noexcept override
    {
        tell({.event = Event::contended, .holder = std::string(e.holder), .attempts = attempts});
    }
    void renewed(const LockEvent& e, Nanoseconds) noexcept override { tell(Event::renewed, e); }
    void renewalFailed(const LockEvent& e, std::error_code error) noexcept override
    {
        tell({.event = Event::renewalFailed, .holder = std::string(e.holder), .error = error});
    }
    void atRisk(const LockEvent& e, Nanoseconds, LossReason) noexcept override { tell(Event::atRisk, e); }
    void lost(const LockEvent& e, LossReason reason) noexcept override
    {
        tell({.event = Event::lost, .holder = std::string(e.holder), .reason = reason});
    }
    void released(const LockEvent& e, Unlocked how, Nanoseconds) noexcept override
    {
        tell({.event = Event::released, .holder = std::string(e.holder), .how = how});
    }
    void unconfirmed(const LockEvent& e) noexcept override { tell(Event::unconfirmed, e); }
    void keyWithoutTtl(const LockEvent& e) noexcept override { tell(Event::keyWithoutTtl, e); }
    void pushMissed(const LockEvent& e) noexcept override { tell(Event::pushMissed, e); }
    void subscribeRefused(const LockEvent& e) noexcept override { tell(Event::subscribeRefused, e); }
    void connected(std::string_view purpose) noexcept override
    {
        tell({.event = Event::connected, .holder = std::string(purpose)});
    }
    void disconnected(std::string_view purpose, std::error_code error, std::string_view /*why*/) noexcept override
    {
        tell({.event = Event::disconnected, .holder = std::string(purpose), .error = error});
    }
    void warned(std::string_view what) noexcept override
    {
        tell({.event = Event::warned, .holder = std::string(what)});
    }

    void tell(Event event, const LockEvent& e) { tell({.event = event, .holder = std::string(e.holder)}); }

    void tell(Told told)
    {
        told.time = bootTime();
        std::function<void(const Told&)> reaction;
        {
            const std::lock_guard lock(mutex_);
            told_.push_back(told);
            reaction = reaction_;
        }
        if (reaction) {
            reaction(told);
        }
    }

    mutable std::mutex mutex_;
    std::vector<Told> told_;
    std::function<void(const Told&)> reaction_;
};

using Event = Recorder::Event;

} // namespace redislock::test
