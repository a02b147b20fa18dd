#include "redislock/permit_expirable_semaphore.hpp"

#include "client/counter/counter_calls.hpp"
#include "client/lock/throwing.hpp"
#include "core/counter/counter_requests.hpp"
#include "core/counter/permit_requests.hpp"

#include <boost/uuid/random_generator.hpp>

#include <string_view>
#include <utility>

namespace redislock {

using namespace detail;

namespace {

constexpr std::string_view hexDigits = "0123456789abcdef";

/// A random id, as users see it.
std::string newId()
{
    std::string id;
    for (const unsigned char byte : boost::uuids::random_generator()()) {
        id.push_back(hexDigits[byte >> 4U]);
        id.push_back(hexDigits[byte & 15U]);
    }
    return id;
}

/// The guard of the permit, if it was granted.
Permit permitOf(NamedCounter& counter, const std::string& id, Lease lease, const CounterOutcome& outcome)
{
    return outcome.granted ? CounterCalls::guardOf(grantedPermit(counter, id, lease, outcome)) : Permit();
}

} // namespace

Permit PermitExpirableSemaphore::acquire(Lease lease, std::stop_token stop) const
{
    return tryAcquire(waitForever, lease, std::move(stop));
}

Permit PermitExpirableSemaphore::acquire(Lease lease, std::error_code& ec) const
{
    return tryAcquire(waitForever, lease, ec);
}

Permit PermitExpirableSemaphore::acquire(Lease lease, std::stop_token stop, std::error_code& ec) const
{
    return tryAcquire(waitForever, lease, std::move(stop), ec);
}

Permit PermitExpirableSemaphore::tryAcquire(Wait wait, Lease lease, std::stop_token stop) const
{
    return throwing(*state_, "acquire", lease, [&](std::error_code& ec) { return tryAcquire(wait, lease, stop, ec); });
}

Permit PermitExpirableSemaphore::tryAcquire(Wait wait, Lease lease, std::error_code& ec) const
{
    return tryAcquire(wait, lease, {}, ec);
}

Permit PermitExpirableSemaphore::tryAcquire(Wait wait, Lease lease, std::stop_token stop, std::error_code& ec) const
{
    const auto id = newId();
    const auto order = permitOrder(*state_, id, wait, lease);
    CounterOutcome outcome;
    ec = CounterCalls::acquire(*state_, order, stop, outcome);
    return permitOf(*state_, id, lease, outcome);
}

Unlocked PermitExpirableSemaphore::release(const std::string& id) const
{
    return throwing(*state_, "release", [&](std::error_code& ec) { return release(id, ec); });
}

Unlocked PermitExpirableSemaphore::release(const std::string& id, std::error_code& ec) const
{
    const Unlocked how = CounterCalls::ask(*state_, releaseById(*state_, id), ec);
    if (ec == Errc::unreachable || ec == Errc::serverRefused || ec == Errc::badReply) {
        ec.clear(); // the release goes on in the background
    }
    return how;
}

bool PermitExpirableSemaphore::updateLeaseTime(const std::string& id, Lease lease) const
{
    return throwing(*state_, "updateLeaseTime", lease,
                    [&](std::error_code& ec) { return updateLeaseTime(id, lease, ec); });
}

bool PermitExpirableSemaphore::updateLeaseTime(const std::string& id, Lease lease, std::error_code& ec) const
{
    return CounterCalls::ask(*state_, updateRequest(*state_, id, lease), ec);
}

std::optional<std::chrono::milliseconds> PermitExpirableSemaphore::getLeaseTime(const std::string& id) const
{
    return throwing(*state_, "getLeaseTime", [&](std::error_code& ec) { return getLeaseTime(id, ec); });
}

std::optional<std::chrono::milliseconds> PermitExpirableSemaphore::getLeaseTime(const std::string& id,
                                                                                std::error_code& ec) const
{
    return CounterCalls::ask(*state_, leaseTimeRequest(*state_, id), ec);
}

std::int64_t PermitExpirableSemaphore::count(Count which, std::error_code& ec) const
{
    return CounterCalls::ask(*state_, countRequest(*state_, which != Count::acquired, which != Count::available), ec);
}

std::int64_t PermitExpirableSemaphore::availablePermits() const
{
    return throwing(*state_, "availablePermits", [&](std::error_code& ec) { return availablePermits(ec); });
}

std::int64_t PermitExpirableSemaphore::availablePermits(std::error_code& ec) const
{
    return count(Count::available, ec);
}

std::int64_t PermitExpirableSemaphore::acquiredPermits() const
{
    return throwing(*state_, "acquiredPermits", [&](std::error_code& ec) { return acquiredPermits(ec); });
}

std::int64_t PermitExpirableSemaphore::acquiredPermits(std::error_code& ec) const
{
    return count(Count::acquired, ec);
}

std::int64_t PermitExpirableSemaphore::getPermits() const
{
    return throwing(*state_, "getPermits", [&](std::error_code& ec) { return getPermits(ec); });
}

std::int64_t PermitExpirableSemaphore::getPermits(std::error_code& ec) const
{
    return count(Count::all, ec);
}

bool PermitExpirableSemaphore::trySetPermits(std::int64_t permits) const
{
    return throwing(*state_, "trySetPermits", permits, [&](std::error_code& ec) { return trySetPermits(permits, ec); });
}

bool PermitExpirableSemaphore::trySetPermits(std::int64_t permits, std::error_code& ec) const
{
    return CounterCalls::ask(*state_, trySetRequest(*state_, permits, std::chrono::milliseconds::zero(), permits), ec);
}

bool PermitExpirableSemaphore::trySetPermits(std::int64_t permits, std::chrono::milliseconds timeToLive) const
{
    return throwing(*state_, "trySetPermits", permits,
                    [&](std::error_code& ec) { return trySetPermits(permits, timeToLive, ec); });
}

bool PermitExpirableSemaphore::trySetPermits(std::int64_t permits, std::chrono::milliseconds timeToLive,
                                             std::error_code& ec) const
{
    return CounterCalls::ask(*state_, trySetForRequest(*state_, permits, timeToLive), ec);
}

void PermitExpirableSemaphore::setPermits(std::int64_t permits) const
{
    throwing(*state_, "setPermits", permits, [&](std::error_code& ec) {
        setPermits(permits, ec);
        return true;
    });
}

void PermitExpirableSemaphore::setPermits(std::int64_t permits, std::error_code& ec) const
{
    CounterCalls::ask(*state_, setPermitsRequest(*state_, permits), ec);
}

void PermitExpirableSemaphore::addPermits(std::int64_t difference) const
{
    throwing(*state_, "addPermits", difference, [&](std::error_code& ec) {
        addPermits(difference, ec);
        return true;
    });
}

void PermitExpirableSemaphore::addPermits(std::int64_t difference, std::error_code& ec) const
{
    CounterCalls::ask(*state_, addRequest(*state_, difference, AddTo::anyCounter), ec);
}

bool PermitExpirableSemaphore::forceDelete() const
{
    return throwing(*state_, "forceDelete", [&](std::error_code& ec) { return forceDelete(ec); });
}

bool PermitExpirableSemaphore::forceDelete(std::error_code& ec) const
{
    return CounterCalls::ask(*state_, deleteRequest(*state_), ec);
}

const std::string& PermitExpirableSemaphore::name() const noexcept
{
    return state_->name;
}

void PermitExpirableSemaphore::startAcquire(const State& state, Wait wait, Lease lease, PermitHandler handler)
{
    const auto id = newId();
    CounterCalls::asyncAcquire<Permit>(
        state, permitOrder(*state, id, wait, lease), std::move(handler),
        [state, id, lease](const CounterOutcome& outcome) { return permitOf(*state, id, lease, outcome); });
}

void PermitExpirableSemaphore::startRelease(const State& state, const std::string& id, UnlockHandler handler)
{
    CounterCalls::asyncAsk(state, releaseById(*state, id), std::move(handler));
}

void PermitExpirableSemaphore::startUpdate(const State& state, const std::string& id, Lease lease, FlagHandler handler)
{
    CounterCalls::asyncAsk(state, updateRequest(*state, id, lease), std::move(handler));
}

void PermitExpirableSemaphore::startLeaseTime(const State& state, const std::string& id, TimeHandler handler)
{
    CounterCalls::asyncAsk(state, leaseTimeRequest(*state, id), std::move(handler));
}

void PermitExpirableSemaphore::startCount(const State& state, Count which, NumberHandler handler)
{
    CounterCalls::asyncAsk(state, countRequest(*state, which != Count::acquired, which != Count::available),
                           std::move(handler));
}

void PermitExpirableSemaphore::startTrySet(const State& state, std::int64_t permits,
                                           std::chrono::milliseconds timeToLive, FlagHandler handler)
{
    CounterCalls::asyncAsk(state, trySetRequest(*state, permits, timeToLive, permits), std::move(handler));
}

void PermitExpirableSemaphore::startSet(const State& state, std::int64_t permits, FlagHandler handler)
{
    CounterCalls::asyncAsk(state, setPermitsRequest(*state, permits), std::move(handler));
}

void PermitExpirableSemaphore::startAdd(const State& state, std::int64_t difference, FlagHandler handler)
{
    CounterCalls::asyncAsk(state, addRequest(*state, difference, AddTo::anyCounter), std::move(handler));
}

void PermitExpirableSemaphore::startDelete(const State& state, FlagHandler handler)
{
    CounterCalls::asyncAsk(state, deleteRequest(*state), std::move(handler));
}

} // namespace redislock
