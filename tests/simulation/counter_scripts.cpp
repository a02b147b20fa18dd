// As in src/runtime/counter/semaphore.cpp, permit_expirable_semaphore.cpp and count_down_latch.cpp.
#include "simulation/counter_scripts.hpp"

#include "redislock/detail/protocol/key_schema.hpp"

namespace redislock::simulation {

namespace scripts = detail::scripts;
using detail::LockAnswer;

namespace {

std::string leaseText(PermitLease lease)
{
    return std::to_string(lease ? lease->count() : 0);
}

std::string leases(const Counter& counter)
{
    return detail::suffixed(counter.name, "timeout");
}

} // namespace

TimePoint validUntil(PermitLease lease, TimePoint sentAt) noexcept
{
    return lease ? detail::deadlineOf(sentAt, *lease) : TimePoint::max();
}

RecordedScript trySet(CounterClient& client, Counter& counter, std::int64_t value)
{
    const auto record = client.newRecord(counter);
    const bool isLatch = counter.kind == Counter::Kind::countDownLatch;
    return {{&scripts::counterTrySet,
             client.keysWith(counter, record),
             {std::to_string(value), "0", counter.channel, isLatch ? "1" : std::to_string(value), client.recordTime()}},
            record};
}

CounterScript get()
{
    return {&scripts::counterGet, {}, {}};
}

CounterOrder acquirePermits(CounterClient& client, Counter& counter, std::int64_t permits, Wait wait)
{
    const auto record = client.newRecord(counter);
    return {.script = {&scripts::semaphoreAcquire, {record}, {std::to_string(permits), client.recordTime()}},
            .meaning = LockAnswer::ofSemaphore,
            .permits = permits,
            .lease = maxLease,
            .wait = wait,
            .record = record,
            .undo = withdrawal(client, counter, record)};
}

RecordedScript releasePermits(CounterClient& client, Counter& counter, std::int64_t permits)
{
    const auto record = client.newRecord(counter);
    return {{&scripts::semaphoreAdd,
             client.keysWith(counter, record),
             {std::to_string(permits), "0", counter.channel, client.recordTime()}},
            record};
}

RecordedScript drainPermits(CounterClient& client, Counter& counter)
{
    const auto record = client.newRecord(counter);
    return {{&scripts::semaphoreDrain, client.keysWith(counter, record), {client.recordTime()}}, record};
}

CounterScript withdrawal(const CounterClient& client, const Counter& counter, const std::string& record)
{
    return {&scripts::semaphoreWithdraw, {record}, {counter.channel, client.recordTime()}};
}

CounterOrder acquirePermit(const CounterClient& client, const Counter& counter, const std::string& id, Wait wait,
                           PermitLease lease)
{
    return {.script = {&scripts::permitExpirableSemaphoreAcquire,
                       {leases(counter), detail::requestKey(counter.name, id)},
                       {id, leaseText(lease), counter.channel}},
            .meaning = LockAnswer::ofPermits,
            .permits = 1,
            .lease = lease.value_or(maxLease),
            .wait = wait,
            .undo = releasePermit(counter, id, client.recordTime())};
}

CounterScript releasePermit(const Counter& counter, const std::string& id, const std::string& keepMs)
{
    return {&scripts::permitExpirableSemaphoreRelease,
            {leases(counter), detail::requestKey(counter.name, id)},
            {id, counter.channel, keepMs}};
}

CounterScript changeLease(const Counter& counter, const std::string& id, PermitLease lease, std::uint64_t number,
                          const std::string& keepMs)
{
    return {&scripts::permitExpirableSemaphoreLease,
            {leases(counter), detail::requestKey(counter.name, id)},
            {id, leaseText(lease), std::to_string(number), keepMs}};
}

CounterScript countPermits(const Counter& counter)
{
    return {&scripts::permitExpirableSemaphoreCount, {leases(counter)}, {counter.channel}};
}

CounterOrder waitForLatch(Wait limit)
{
    return {.script = get(), .meaning = LockAnswer::ofLatch, .lease = maxLease, .wait = limit};
}

RecordedScript countDown(CounterClient& client, Counter& counter)
{
    const auto record = client.newRecord(counter);
    return {
        {&scripts::countDownLatchCountDown, client.keysWith(counter, record), {counter.channel, client.recordTime()}},
        record};
}

} // namespace redislock::simulation
