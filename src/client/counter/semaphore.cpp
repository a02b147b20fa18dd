#include "redislock/semaphore.hpp"

#include "client/counter/counter_calls.hpp"
#include "client/lock/throwing.hpp"
#include "core/counter/counter_requests.hpp"
#include "redislock/client.hpp"

#include <fmt/format.h>

#include <utility>

namespace redislock {

using namespace detail;

namespace {

/// The arguments of trySetPermits(), for a message.
struct PermitsForATime {
    std::int64_t permits;
    std::chrono::milliseconds timeToLive;
};

std::string inWords(const PermitsForATime& asked)
{
    return fmt::format("{} permits (0 to 2147483647) for {} ms (1 ms to 30 days)", asked.permits,
                       asked.timeToLive.count());
}

} // namespace

bool Semaphore::trySetPermits(std::int64_t permits) const
{
    return throwing(*state_, "trySetPermits", permits, [&](std::error_code& ec) { return trySetPermits(permits, ec); });
}

bool Semaphore::trySetPermits(std::int64_t permits, std::error_code& ec) const
{
    return CounterCalls::ask(*state_, trySetRequest(*state_, permits, std::chrono::milliseconds::zero(), permits), ec);
}

bool Semaphore::trySetPermits(std::int64_t permits, std::chrono::milliseconds timeToLive) const
{
    return throwing(*state_, "trySetPermits", PermitsForATime{permits, timeToLive},
                    [&](std::error_code& ec) { return trySetPermits(permits, timeToLive, ec); });
}

bool Semaphore::trySetPermits(std::int64_t permits, std::chrono::milliseconds timeToLive, std::error_code& ec) const
{
    return CounterCalls::ask(*state_, trySetForRequest(*state_, permits, timeToLive), ec);
}

void Semaphore::acquire(std::int64_t permits) const
{
    throwing(*state_, "acquire", permits, [&](std::error_code& ec) { return tryAcquire(permits, waitForever, ec); });
}

void Semaphore::acquire(std::int64_t permits, std::error_code& ec) const
{
    (void)tryAcquire(permits, waitForever, ec);
}

bool Semaphore::acquire(std::int64_t permits, std::stop_token stop) const
{
    return throwing(*state_, "acquire", permits, [&](std::error_code& ec) { return acquire(permits, stop, ec); });
}

bool Semaphore::acquire(std::int64_t permits, std::stop_token stop, std::error_code& ec) const
{
    return tryAcquire(permits, waitForever, std::move(stop), ec);
}

bool Semaphore::tryAcquire(std::int64_t permits) const
{
    return tryAcquire(permits, oneAttempt);
}

bool Semaphore::tryAcquire(std::int64_t permits, std::error_code& ec) const
{
    return tryAcquire(permits, oneAttempt, ec);
}

bool Semaphore::tryAcquire(std::int64_t permits, Wait wait, std::stop_token stop) const
{
    return throwing(*state_, "tryAcquire", permits,
                    [&](std::error_code& ec) { return tryAcquire(permits, wait, stop, ec); });
}

bool Semaphore::tryAcquire(std::int64_t permits, Wait wait, std::error_code& ec) const
{
    return tryAcquire(permits, wait, {}, ec);
}

bool Semaphore::tryAcquire(std::int64_t permits, Wait wait, std::stop_token stop, std::error_code& ec) const
{
    ec.clear();
    if (permits == 0) {
        return true;
    }
    const auto order = permitsOrder(*state_, permits, wait);
    CounterOutcome outcome;
    ec = CounterCalls::acquire(*state_, order, stop, outcome);
    return outcome.granted;
}

void Semaphore::release(std::int64_t permits) const
{
    throwing(*state_, "release", permits, [&](std::error_code& ec) {
        release(permits, ec);
        return true;
    });
}

void Semaphore::release(std::int64_t permits, std::error_code& ec) const
{
    CounterCalls::ask(*state_, releaseRequest(*state_, permits, AddTo::anyCounter), ec);
}

bool Semaphore::releaseIfExists(std::int64_t permits) const
{
    return throwing(*state_, "releaseIfExists", permits,
                    [&](std::error_code& ec) { return releaseIfExists(permits, ec); });
}

bool Semaphore::releaseIfExists(std::int64_t permits, std::error_code& ec) const
{
    return CounterCalls::ask(*state_, releaseRequest(*state_, permits, AddTo::existingCounter), ec);
}

std::int64_t Semaphore::availablePermits() const
{
    return throwing(*state_, "availablePermits", [&](std::error_code& ec) { return availablePermits(ec); });
}

std::int64_t Semaphore::availablePermits(std::error_code& ec) const
{
    return CounterCalls::ask(*state_, getRequest(*state_), ec);
}

std::int64_t Semaphore::drainPermits() const
{
    return throwing(*state_, "drainPermits", [&](std::error_code& ec) { return drainPermits(ec); });
}

std::int64_t Semaphore::drainPermits(std::error_code& ec) const
{
    return CounterCalls::ask(*state_, drainRequest(*state_), ec);
}

void Semaphore::addPermits(std::int64_t difference) const
{
    throwing(*state_, "addPermits", [&](std::error_code& ec) {
        addPermits(difference, ec);
        return true;
    });
}

void Semaphore::addPermits(std::int64_t difference, std::error_code& ec) const
{
    CounterCalls::ask(*state_, addRequest(*state_, difference, AddTo::anyCounter), ec);
}

bool Semaphore::forceDelete() const
{
    return throwing(*state_, "forceDelete", [&](std::error_code& ec) { return forceDelete(ec); });
}

bool Semaphore::forceDelete(std::error_code& ec) const
{
    return CounterCalls::ask(*state_, deleteRequest(*state_), ec);
}

const std::string& Semaphore::name() const noexcept
{
    return state_->name;
}

void Semaphore::startSet(const State& state, std::int64_t permits, std::chrono::milliseconds timeToLive,
                         FlagHandler handler)
{
    CounterCalls::asyncAsk(state, trySetRequest(*state, permits, timeToLive, permits), std::move(handler));
}

void Semaphore::startAcquire(const State& state, std::int64_t permits, Wait wait, FlagHandler handler)
{
    if (permits == 0) {
        return CounterCalls::asyncAsk(state, CounterRequest<bool>{.known = true}, std::move(handler));
    }
    auto order = permitsOrder(*state, permits, wait);
    order.untold = [state, permits] { putBack(*state, permits); };
    CounterCalls::asyncAcquire<bool>(state, std::move(order), std::move(handler),
                                     [](const CounterOutcome& outcome) { return outcome.granted; });
}

void Semaphore::startRelease(const State& state, std::int64_t permits, bool ifExists, FlagHandler handler)
{
    CounterCalls::asyncAsk(state,
                           releaseRequest(*state, permits, ifExists ? AddTo::existingCounter : AddTo::anyCounter),
                           std::move(handler));
}

void Semaphore::startGet(const State& state, NumberHandler handler)
{
    CounterCalls::asyncAsk(state, getRequest(*state), std::move(handler));
}

void Semaphore::startDrain(const State& state, NumberHandler handler)
{
    auto request = drainRequest(*state);
    request.untold = [state](std::int64_t taken) { putBack(*state, taken); };
    CounterCalls::asyncAsk(state, std::move(request), std::move(handler));
}

void Semaphore::startAdd(const State& state, std::int64_t difference, FlagHandler handler)
{
    CounterCalls::asyncAsk(state, addRequest(*state, difference, AddTo::anyCounter), std::move(handler));
}

void Semaphore::startDelete(const State& state, FlagHandler handler)
{
    CounterCalls::asyncAsk(state, deleteRequest(*state), std::move(handler));
}

} // namespace redislock
