/// @file
/// The objects of a process of the library and their operations, by the words that the Java driver knows.
#pragma once

#include "redislock/redislock.hpp"

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace redislock::test {

using Words = std::vector<std::string>;

/// How a thread enters an object, and leaves it.
struct Turnstile {
    std::function<void()> enter;
    std::function<void()> leave; ///< throws if the entered object had been lost
};

/// Thread safety: safe.
class Objects {
public:
    /// @param place how long a place in a fair queue is kept
    /// @param patience how long a server may take to answer; 0: the default
    Objects(const std::vector<std::string>& urls, std::chrono::milliseconds watchdog, std::chrono::milliseconds place,
            std::chrono::milliseconds patience, std::shared_ptr<Observer> observer = {});
    Objects(Objects&&) noexcept;
    ~Objects();

    /// The UUID of the client of the first server.
    [[nodiscard]] std::string id() const { return servers_.front().id(); }

    /// @return nothing: the answer is no, or nothing was granted; otherwise the value of the answer, which may be
    /// empty.
    std::optional<std::string> run(const std::string& kind, const std::string& operation, const std::string& name,
                                   const Words& arguments);
    /// @param fresh whether to make an object that no other thread uses. Leases of permits are those of the watchdog.
    [[nodiscard]] Turnstile turnstile(const std::string& kind, const std::string& name, bool fresh);

private:
    using Outcome = std::optional<std::string>;
    using AnyLock = std::variant<Lock, FencedLock, MultiLock, RedLock>;

    AnyLock lock(const std::string& kind, const std::string& name);
    [[nodiscard]] AnyLock makeLock(const std::string& kind, const std::string& name) const;
    [[nodiscard]] std::vector<Lock> members(const std::string& names) const;

    template <class AnyOfThem>
    Outcome onLock(const AnyOfThem& lock, const std::string& operation, const Words& arguments);
    Outcome onSemaphore(const Semaphore& semaphore, const std::string& operation, const Words& arguments);
    Outcome onPermits(const PermitExpirableSemaphore& semaphore, const std::string& operation, const Words& arguments);
    static Outcome onLatch(const CountDownLatch& latch, const std::string& operation, const Words& arguments);

    /// The repeated actions of a thread; see repeat().
    Outcome repeat(const std::string& what, const std::string& key, const std::function<void()>& enter,
                   const std::function<void()>& leave) const;

    std::vector<Client> servers_;
    struct Shared;
    std::unique_ptr<Shared> shared_;
};

} // namespace redislock::test
