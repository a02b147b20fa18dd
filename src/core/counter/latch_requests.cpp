#include "core/counter/latch_requests.hpp"

#include "core/counter/counter_requests.hpp"
#include "core/machine/lock_answer.hpp"

#include <limits>
#include <string>
#include <utility>

namespace redislock::detail {

CounterOrder waitOrder(const NamedCounter& latch, Wait limit)
{
    return {.script = &scripts::counterGet,
            .keys = {latch.name},
            .meaning = LockAnswer::ofLatch,
            .lease = maxLease, // only asks whether the latch is open now
            .wait = limit};
}

CounterRequest<bool> newCountRequest(NamedCounter& latch, std::int64_t count)
{
    constexpr std::int64_t newCount = 1;
    return isCount(count) ? trySetRequest(latch, count, std::chrono::milliseconds::zero(), newCount)
                          : CounterRequest<bool>{.refused = Errc::invalidArgument};
}

CounterRequest<std::int64_t> countDownRequest(NamedCounter& latch)
{
    auto recorded = latch.recorded(mostTaken);
    if (recorded.refused) {
        return {.refused = recorded.refused};
    }
    auto call = std::make_shared<ScriptCall>(scripts::countDownLatchCountDown, recorded.keysWith(latch.name),
                                             std::vector{latch.channel(), latch.recordTime()});
    return {.call = call,
            .recorded = std::move(recorded),
            .meaning = numberIn(0, std::numeric_limits<std::int64_t>::max()),
            .afterwards = call->again()};
}

} // namespace redislock::detail
