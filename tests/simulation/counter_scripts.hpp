/// @file
/// The requests of semaphores and latches, as `src/runtime` makes them.
#pragma once

#include "simulation/counter_operation.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace redislock::simulation {

/// A lease of a permit; nothing: it does not expire.
using PermitLease = std::optional<std::chrono::milliseconds>;
[[nodiscard]] TimePoint validUntil(PermitLease lease, TimePoint sentAt) noexcept;

/// A request whose answer is kept under the record.
struct RecordedScript {
    CounterScript script;
    std::string record;
};

// of all kinds
[[nodiscard]] RecordedScript trySet(CounterClient& client, Counter& counter, std::int64_t value);
[[nodiscard]] CounterScript get();

// semaphores
[[nodiscard]] CounterOrder acquirePermits(CounterClient& client, Counter& counter, std::int64_t permits, Wait wait);
[[nodiscard]] RecordedScript releasePermits(CounterClient& client, Counter& counter, std::int64_t permits);
[[nodiscard]] RecordedScript drainPermits(CounterClient& client, Counter& counter);
[[nodiscard]] CounterScript withdrawal(const CounterClient& client, const Counter& counter, const std::string& record);

// semaphores with leases
[[nodiscard]] CounterOrder acquirePermit(const CounterClient& client, const Counter& counter, const std::string& id,
                                         Wait wait, PermitLease lease);
/// @param keepMs how long copies of its acquire may still arrive; "0": none can.
[[nodiscard]] CounterScript releasePermit(const Counter& counter, const std::string& id, const std::string& keepMs);
/// @param number of the change, among those for that permit.
[[nodiscard]] CounterScript changeLease(const Counter& counter, const std::string& id, PermitLease lease,
                                        std::uint64_t number, const std::string& keepMs);
[[nodiscard]] CounterScript countPermits(const Counter& counter);

// latches
[[nodiscard]] CounterOrder waitForLatch(Wait limit);
[[nodiscard]] RecordedScript countDown(CounterClient& client, Counter& counter);

} // namespace redislock::simulation
