#include "core/counter/counter_requests.hpp"

#include "core/machine/lock_answer.hpp"
#include "redislock/lease_time.hpp"
#include "wire/key_schema.hpp"

#include <limits>
#include <string>
#include <utility>

namespace redislock::detail {

std::int64_t numberOf(const Reply& reply, std::int64_t least, std::int64_t most, std::error_code& ec) noexcept
{
    if (reply.kind != Reply::Kind::integer || reply.integer < least || reply.integer > most) {
        ec = Errc::badReply;
        return 0;
    }
    return reply.integer;
}

CounterRequest<std::int64_t>::Meaning numberIn(std::int64_t least, std::int64_t most)
{
    return [least, most](const Call& call, bool /*repeated*/, std::error_code& ec) {
        return numberOf(call.reply, least, most, ec);
    };
}

bool flagOf(const Call& call, bool /*repeated*/, std::error_code& ec) noexcept
{
    return numberOf(call.reply, 0, 1, ec) == 1;
}

bool doneOf(const Call& call, bool /*repeated*/, std::error_code& ec) noexcept
{
    return numberOf(call.reply, 1, 1, ec) == 1;
}

CounterRequest<bool> trySetRequest(NamedCounter& counter, std::int64_t value, std::chrono::milliseconds live,
                                   std::int64_t message)
{
    if (!isCount(value, 0) || live < live.zero() || live > maxLease) {
        return {.refused = Errc::invalidArgument};
    }
    auto recorded = counter.recorded(mostTaken);
    if (recorded.refused) {
        return {.refused = recorded.refused};
    }
    auto call =
        std::make_shared<ScriptCall>(scripts::counterTrySet, recorded.keysWith(counter.name),
                                     std::vector{std::to_string(value), std::to_string(live.count()), counter.channel(),
                                                 std::to_string(message), counter.recordTime()});
    return {.call = std::move(call), .recorded = std::move(recorded), .meaning = flagOf};
}

CounterRequest<std::int64_t> getRequest(NamedCounter& counter)
{
    using Limits = std::numeric_limits<std::int64_t>;
    return {.call = std::make_shared<ScriptCall>(scripts::counterGet, std::vector{counter.name},
                                                 std::vector<std::string>()),
            .meaning = numberIn(Limits::min(), Limits::max())};
}

CounterRequest<bool> deleteRequest(NamedCounter& counter)
{
    auto recorded = counter.recorded(0);
    if (recorded.refused) {
        return {.refused = recorded.refused};
    }
    const bool leases = counter.kind == CounterKind::permitExpirableSemaphore;
    const bool tells = counter.kind == CounterKind::countDownLatch;
    return {.call = std::make_shared<ScriptCall>(
                scripts::counterDelete,
                std::vector{counter.name, leases ? suffixed(counter.name, "timeout") : counter.name, recorded.record},
                std::vector{tells ? counter.channel() : std::string(), counter.recordTime()}),
            .recorded = std::move(recorded),
            .meaning = flagOf};
}

namespace {

CounterRequest<bool> addition(const NamedCounter& counter, std::int64_t difference, AddTo where, Recorded recorded)
{
    return {.call = std::make_shared<ScriptCall>(scripts::semaphoreAdd, recorded.keysWith(counter.name),
                                                 std::vector<std::string>{std::to_string(difference),
                                                                          where == AddTo::existingCounter ? "1" : "0",
                                                                          counter.channel(), counter.recordTime()}),
            .recorded = std::move(recorded),
            .meaning = where == AddTo::existingCounter ? flagOf : doneOf};
}

} // namespace

CounterRequest<bool> addRequest(NamedCounter& counter, std::int64_t difference, AddTo where)
{
    if (difference < -maxCount || difference > maxCount) {
        return {.refused = Errc::invalidArgument};
    }
    if (difference == 0) {
        return {.known = true};
    }
    auto recorded = counter.recorded(mostTaken);
    return recorded.refused ? CounterRequest<bool>{.refused = recorded.refused}
                            : addition(counter, difference, where, std::move(recorded));
}

void putBack(NamedCounter& counter, std::int64_t permits) noexcept
{
    try {
        // at the client's end too, which waits for releases
        auto request = addition(counter, permits, AddTo::existingCounter, {.record = counter.newRecord()});
        counter.askUnawaited(std::move(request.call), std::move(request.recorded.record));
    } catch (...) { // out of memory
    }
}

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
