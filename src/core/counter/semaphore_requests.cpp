#include "core/counter/semaphore_requests.hpp"

#include "core/counter/counter_requests.hpp"
#include "core/machine/lock_answer.hpp"
#include "redislock/lease_time.hpp"

#include <limits>
#include <utility>

namespace redislock::detail {

namespace {

std::shared_ptr<ScriptCall> withdrawal(const NamedCounter& counter, const std::string& record)
{
    return std::make_shared<ScriptCall>(scripts::semaphoreWithdraw, std::vector{counter.name, record},
                                        std::vector{counter.channel(), counter.recordTime()});
}

} // namespace

CounterOrder permitsOrder(NamedCounter& counter, std::int64_t permits, Wait wait)
{
    if (!isCount(permits)) {
        return {};
    }
    const auto record = counter.newRecord();
    return {.script = &scripts::semaphoreAcquire,
            .keys = {counter.name, record},
            .arguments = {std::to_string(permits), counter.recordTime()},
            .meaning = LockAnswer::ofSemaphore,
            .permits = permits,
            .lease = maxLease, // no permit ends by itself
            .wait = wait,
            .record = record,
            .undo = [self = &counter, record](bool) { return withdrawal(*self, record); }};
}

CounterRequest<bool> releaseRequest(NamedCounter& counter, std::int64_t permits, AddTo where)
{
    if (!isCount(permits, 0)) {
        return {.refused = Errc::invalidArgument};
    }
    auto request = addRequest(counter, permits, where);
    request.afterwards = request.call != nullptr ? request.call->again() : nullptr;
    request.tells = [self = counter.shared_from_this()](bool done, std::error_code ec) {
        if (done || ec) {
            self->tellReleased({}, ec ? Unlocked::unconfirmed : Unlocked::released, {});
        }
    };
    return request;
}

CounterRequest<std::int64_t> drainRequest(NamedCounter& counter)
{
    auto recorded = counter.recorded(mostTaken);
    if (recorded.refused) {
        return {.refused = recorded.refused};
    }
    return {.call = std::make_shared<ScriptCall>(scripts::semaphoreDrain, recorded.keysWith(counter.name),
                                                 std::vector{counter.recordTime()}),
            .recorded = recorded,
            .meaning = numberIn(0, std::numeric_limits<std::int64_t>::max()),
            .afterwards = withdrawal(counter, recorded.record)};
}

CounterRequest<bool> trySetForRequest(NamedCounter& counter, std::int64_t permits, std::chrono::milliseconds live)
{
    return live <= live.zero() ? CounterRequest<bool>{.refused = Errc::invalidArgument}
                               : trySetRequest(counter, permits, live, permits);
}

} // namespace redislock::detail
