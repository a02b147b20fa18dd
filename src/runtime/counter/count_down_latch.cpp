#include "redislock/count_down_latch.hpp"

#include "redislock/client.hpp"
#include "runtime/counter/counter_async.hpp"
#include "runtime/counter/counter_requests.hpp"
#include "runtime/lock/throwing.hpp"

namespace redislock {

using namespace detail;

namespace {

CounterOrder waitOrder(const NamedCounter& latch, Wait limit)
{
    return {.script = &scripts::counterGet,
            .keys = {latch.name},
            .meaning = LockAnswer::ofLatch,
            .lease = maxLease, // what is open now is all that is asked
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
    auto call = std::make_shared<ScriptCall>(scripts::countDownLatchCountDown, recorded.keysWith(latch.name),
                                             std::vector{latch.channel(), latch.recordTime()});
    return {.call = call,
            .recorded = std::move(recorded),
            .meaning = numberIn(0, std::numeric_limits<std::int64_t>::max()),
            .afterwards = call->again()};
}

} // namespace

bool CountDownLatch::trySetCount(std::int64_t count) const
{
    return throwing(name(), "trySetCount", count, [&](std::error_code& ec) { return trySetCount(count, ec); });
}

bool CountDownLatch::trySetCount(std::int64_t count, std::error_code& ec) const
{
    return state_->ask(newCountRequest(*state_, count), ec);
}

std::int64_t CountDownLatch::countDown() const
{
    return throwing(name(), "countDown", [&](std::error_code& ec) { return countDown(ec); });
}

std::int64_t CountDownLatch::countDown(std::error_code& ec) const
{
    return state_->ask(countDownRequest(*state_), ec);
}

std::int64_t CountDownLatch::getCount() const
{
    return throwing(name(), "getCount", [&](std::error_code& ec) { return getCount(ec); });
}

std::int64_t CountDownLatch::getCount(std::error_code& ec) const
{
    return state_->ask(getRequest(*state_), ec);
}

void CountDownLatch::wait() const
{
    (void)wait(waitForever);
}

void CountDownLatch::wait(std::error_code& ec) const
{
    (void)wait(waitForever, ec);
}

bool CountDownLatch::wait(Wait limit) const
{
    return throwing(name(), "wait", [&](std::error_code& ec) { return wait(limit, ec); });
}

bool CountDownLatch::wait(Wait limit, std::error_code& ec) const
{
    CounterOutcome outcome;
    ec = state_->acquire(waitOrder(*state_, limit), outcome);
    return outcome.granted;
}

bool CountDownLatch::forceDelete() const
{
    return throwing(name(), "forceDelete", [&](std::error_code& ec) { return forceDelete(ec); });
}

bool CountDownLatch::forceDelete(std::error_code& ec) const
{
    return state_->ask(deleteRequest(*state_), ec);
}

const std::string& CountDownLatch::name() const noexcept
{
    return state_->name;
}

void CountDownLatch::startSet(const State& state, std::int64_t count, FlagHandler handler)
{
    state->asyncAsk(newCountRequest(*state, count), std::move(handler));
}

void CountDownLatch::startCountDown(const State& state, NumberHandler handler)
{
    state->asyncAsk(countDownRequest(*state), std::move(handler));
}

void CountDownLatch::startGet(const State& state, NumberHandler handler)
{
    state->asyncAsk(getRequest(*state), std::move(handler));
}

void CountDownLatch::startWait(const State& state, Wait limit, FlagHandler handler)
{
    state->asyncAcquire<bool>(waitOrder(*state, limit), std::move(handler),
                              [](const CounterOutcome& outcome) { return outcome.granted; });
}

void CountDownLatch::startDelete(const State& state, FlagHandler handler)
{
    state->asyncAsk(deleteRequest(*state), std::move(handler));
}

} // namespace redislock
