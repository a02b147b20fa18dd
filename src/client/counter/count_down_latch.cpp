#include "redislock/count_down_latch.hpp"

#include "client/counter/counter_calls.hpp"
#include "client/lock/throwing.hpp"
#include "core/counter/counter_requests.hpp"
#include "redislock/client.hpp"

#include <utility>

namespace redislock {

using namespace detail;

bool CountDownLatch::trySetCount(std::int64_t count) const
{
    return throwing(*state_, "trySetCount", count, [&](std::error_code& ec) { return trySetCount(count, ec); });
}

bool CountDownLatch::trySetCount(std::int64_t count, std::error_code& ec) const
{
    return CounterCalls::ask(*state_, newCountRequest(*state_, count), ec);
}

std::int64_t CountDownLatch::countDown() const
{
    return throwing(*state_, "countDown", [&](std::error_code& ec) { return countDown(ec); });
}

std::int64_t CountDownLatch::countDown(std::error_code& ec) const
{
    return CounterCalls::ask(*state_, countDownRequest(*state_), ec);
}

std::int64_t CountDownLatch::getCount() const
{
    return throwing(*state_, "getCount", [&](std::error_code& ec) { return getCount(ec); });
}

std::int64_t CountDownLatch::getCount(std::error_code& ec) const
{
    return CounterCalls::ask(*state_, getRequest(*state_), ec);
}

void CountDownLatch::wait() const
{
    (void)wait(waitForever);
}

void CountDownLatch::wait(std::error_code& ec) const
{
    (void)wait(waitForever, ec);
}

bool CountDownLatch::wait(std::stop_token stop) const
{
    return wait(waitForever, std::move(stop));
}

bool CountDownLatch::wait(std::stop_token stop, std::error_code& ec) const
{
    return wait(waitForever, std::move(stop), ec);
}

bool CountDownLatch::wait(Wait limit, std::stop_token stop) const
{
    return throwing(*state_, "wait", [&](std::error_code& ec) { return wait(limit, stop, ec); });
}

bool CountDownLatch::wait(Wait limit, std::error_code& ec) const
{
    return wait(limit, {}, ec);
}

bool CountDownLatch::wait(Wait limit, std::stop_token stop, std::error_code& ec) const
{
    const auto order = waitOrder(*state_, limit);
    CounterOutcome outcome;
    ec = CounterCalls::acquire(*state_, order, stop, outcome);
    return outcome.granted;
}

bool CountDownLatch::forceDelete() const
{
    return throwing(*state_, "forceDelete", [&](std::error_code& ec) { return forceDelete(ec); });
}

bool CountDownLatch::forceDelete(std::error_code& ec) const
{
    return CounterCalls::ask(*state_, deleteRequest(*state_), ec);
}

const std::string& CountDownLatch::name() const noexcept
{
    return state_->name;
}

void CountDownLatch::startSet(const State& state, std::int64_t count, FlagHandler handler)
{
    CounterCalls::asyncAsk(state, newCountRequest(*state, count), std::move(handler));
}

void CountDownLatch::startCountDown(const State& state, NumberHandler handler)
{
    CounterCalls::asyncAsk(state, countDownRequest(*state), std::move(handler));
}

void CountDownLatch::startGet(const State& state, NumberHandler handler)
{
    CounterCalls::asyncAsk(state, getRequest(*state), std::move(handler));
}

void CountDownLatch::startWait(const State& state, Wait limit, FlagHandler handler)
{
    CounterCalls::asyncAcquire<bool>(state, waitOrder(*state, limit), std::move(handler),
                                     [](const CounterOutcome& outcome) { return outcome.granted; });
}

void CountDownLatch::startDelete(const State& state, FlagHandler handler)
{
    CounterCalls::asyncAsk(state, deleteRequest(*state), std::move(handler));
}

} // namespace redislock
