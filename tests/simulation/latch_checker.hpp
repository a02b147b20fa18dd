/// @file
/// Checks that latches open when they have to.
#pragma once

#include "simulation/counter_ledger.hpp"
#include "simulation/keyspace.hpp"
#include "simulation/scheduler.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace redislock::simulation {

/// S12: a latch opens with the count-down that brings the number of distinct count-downs to its count, not before, and
/// closes only when it is made anew. A latch that was taken away from outside is excused.
class LatchChecker {
public:
    explicit LatchChecker(const Keyspace& keyspace) noexcept : keyspace_(keyspace) {}

    /// Called after each request about a latch that the server executed.
    void executed(const Request& request, const Reply& reply, VirtualTime now);
    void excuse(const std::string& latch) { latches_[latch].isExcused = true; }

    /// A client begins to count down; the call has ended, with an answer.
    void counts(const std::string& latch) { ++latches_[latch].begun; }
    void counted(const std::string& latch) { ++latches_[latch].ended; }
    /// A wait that began at @p began has ended, because the latch was open.
    void passed(const std::string& latch, VirtualTime began) const;
    /// No request is under way.
    void expectAllCounted() const;

private:
    struct Latch {
        std::int64_t count = 0; ///< zero: open
        VirtualTime openUntil{VirtualTime::max()};
        Answers answers;
        std::int64_t begun = 0;
        std::int64_t ended = 0;
        std::int64_t distinct = 0; ///< count-downs that were executed
        bool isExcused = false;
    };

    std::int64_t foresee(Latch& latch, const Request& request, VirtualTime now);

    const Keyspace& keyspace_;
    std::map<std::string, Latch> latches_;
};

} // namespace redislock::simulation
