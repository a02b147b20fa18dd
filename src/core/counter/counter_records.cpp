// Answers that Redis keeps, so that a request that is sent twice counts once: their names, and their end.
#include "core/counter/counter.hpp"
#include "redislock/lease_time.hpp"
#include "wire/key_schema.hpp"

#include <algorithm>
#include <memory>

namespace redislock::detail {

std::string NamedCounter::newRecord() const
{
    return requestKey(name, core.id + ":" + std::to_string(port->nextRequest()));
}

std::string NamedCounter::recordTime()
{
    return std::to_string(maxLease.count());
}

std::string NamedCounter::tombstoneTime() const
{
    return std::to_string((leastRecordTime + 2 * core.config.unreachableAfter).count());
}

std::chrono::milliseconds NamedCounter::surelyRecorded() const noexcept
{
    return std::max(leastRecordTime, 2 * core.config.unreachableAfter);
}

Recorded NamedCounter::recorded(std::size_t others)
{
    Recorded made{.record = newRecord()};
    if (!port->isForked()) {
        const Inside lock(*port);
        if (core.isClosing()) {
            made.refused = Errc::shutdown;
            return made;
        }
        made.underway = std::make_shared<Underway>(core);
        core.counters.records.take(name, others, made.taken);
    }
    return made;
}

/// These records are no longer needed: the answers have arrived, and no other copies of the requests are under way.
/// Empty names are skipped.
void NamedCounter::discardRecords(std::span<const std::string> records) noexcept
{
    try {
        const Inside lock(*port);
        for (const auto& record : records) {
            if (!record.empty()) {
                core.counters.records.add(name, record);
            }
        }
        if (core.counters.records.isFull() || core.isClosing()) { // at the end no later request deletes them
            core.counters.forgetRecords();
        }
    } catch (...) { // out of memory: the records end with their time to live
        return;
    }
}

} // namespace redislock::detail
