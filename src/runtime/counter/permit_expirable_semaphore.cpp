#include "redislock/permit_expirable_semaphore.hpp"

#include "redislock/detail/logic/lease.hpp"
#include "redislock/detail/protocol/key_schema.hpp"
#include "runtime/counter/counter_async.hpp"
#include "runtime/counter/counter_requests.hpp"
#include "runtime/counter/permit_hold.hpp"
#include "runtime/lock/throwing.hpp"

#include <boost/uuid/random_generator.hpp>

#include <algorithm>
#include <limits>
#include <vector>

namespace redislock {

using namespace detail;

namespace {

using Time = std::optional<std::chrono::milliseconds>;

constexpr std::string_view hexDigits = "0123456789abcdef";

/// A random id, as it is shown.
std::string newId()
{
    std::string id;
    for (const unsigned char byte : boost::uuids::random_generator()()) {
        id.push_back(hexDigits[byte >> 4U]);
        id.push_back(hexDigits[byte & 15U]);
    }
    return id;
}

/// An id as it is in Redis, 16 bytes; empty for what is none.
std::string rawId(const std::string& id)
{
    std::string raw;
    if (id.size() != 32 || id.find_first_not_of(hexDigits) != std::string::npos) {
        return raw;
    }
    for (std::size_t i = 0; i < id.size(); i += 2) {
        raw.push_back(static_cast<char>(hexDigits.find(id[i]) * 16 + hexDigits.find(id[i + 1])));
    }
    return raw;
}

bool isLease(Lease lease) noexcept
{
    return lease == nonExpiring || (lease.isValid() && !lease.isRenewed());
}

std::string leaseText(Lease lease)
{
    return lease == nonExpiring ? "0" : std::to_string(lease.fixed().count());
}

TimePoint validUntil(Lease lease, TimePoint sentAt) noexcept
{
    return lease == nonExpiring ? TimePoint::max() : deadlineOf(sentAt, lease.fixed());
}

std::vector<std::string> keysOf(const NamedCounter& counter)
{
    return {counter.name, suffixed(counter.name, "timeout")};
}

/// With the id's tombstone.
std::vector<std::string> keysOf(const NamedCounter& counter, const std::string& id)
{
    return {counter.name, suffixed(counter.name, "timeout"), requestKey(counter.name, id)};
}

CounterOrder acquireOrder(NamedCounter& counter, const std::string& id, Wait wait, Lease lease)
{
    if (!isLease(lease)) {
        return {};
    }
    return {.script = &scripts::permitExpirableSemaphoreAcquire,
            .keys = keysOf(counter, id),
            .arguments = {rawId(id), leaseText(lease), counter.channel()},
            .meaning = LockAnswer::ofPermits,
            .permits = 1,
            .lease = lease == nonExpiring ? maxLease : lease.fixed(),
            .wait = wait,
            .undo = [self = &counter, id](bool copies) {
                return permitRelease(*self, id, copies ? self->recordTime() : "0").call;
            }};
}

Permit permitOf(NamedCounter& counter, const std::string& id, Lease lease, const CounterOutcome& outcome)
{
    if (!outcome.granted) {
        return {};
    }
    auto hold = std::make_shared<PermitHold>();
    hold->counter = counter.shared_from_this();
    hold->id = id;
    hold->open = outcome.repeated ? 1 : 0;
    hold->setValidUntil(lease == nonExpiring ? TimePoint::max() : outcome.validUntil);
    counter.add(hold);
    return PermitHold::guard(std::move(hold));
}

/// @param copies whether those of earlier requests for the permit may still arrive.
std::shared_ptr<ScriptCall> leaseCall(const NamedCounter& counter, const std::string& id, const std::string& lease,
                                      std::uint64_t number, bool copies)
{
    return std::make_shared<ScriptCall>(
        scripts::permitExpirableSemaphoreLease, keysOf(counter, id),
        std::vector{rawId(id), lease, std::to_string(number), copies ? counter.recordTime() : "0"});
}

/// How long a lease is; -1: for ever.
std::int64_t leaseOf(const Reply& reply, std::int64_t most, std::error_code& ec) noexcept
{
    const bool forever = reply.kind == Reply::Kind::integer && reply.integer == -1;
    return forever ? -1 : numberOf(reply, 1, most, ec);
}

CounterRequest<bool> updateRequest(NamedCounter& counter, const std::string& id, Lease lease)
{
    if (rawId(id).empty() || !isLease(lease)) {
        return {.refused = Errc::invalidArgument};
    }
    const auto hold = counter.find(id);
    std::uint64_t number = 0;
    bool copies = false;
    if (hold != nullptr) {
        hold->setValidUntil(
            std::min(hold->validUntil(), validUntil(lease, BootClock::now()))); // from here on it may be either
        number = ++hold->changes;
        copies = hold->open++ > 0;
    }
    return {.call = leaseCall(counter, id, leaseText(lease), number, copies),
            .meaning = [hold](const Call& call, bool repeated, std::error_code& ec) {
                const bool known = call.reply.kind != Reply::Kind::nil;
                const auto left = known ? leaseOf(call.reply, maxLease.count(), ec) : 0;
                if (!ec && hold != nullptr) { // as Redis has it now, whichever change of several came last
                    hold->setValidUntil(!known     ? TimePoint{}
                                        : left < 0 ? TimePoint::max()
                                                   : deadlineOf(call.sentAt, std::chrono::milliseconds(left)));
                    hold->open -= repeated ? 0 : 1;
                }
                return !ec && known;
            }};
}

CounterRequest<Time> leaseTimeRequest(NamedCounter& counter, const std::string& id)
{
    if (rawId(id).empty()) {
        return {.refused = Errc::invalidArgument};
    }
    return {.call = leaseCall(counter, id, {}, 0, false),
            .meaning = [](const Call& call, bool, std::error_code& ec) -> Time {
                if (call.reply.kind == Reply::Kind::nil) {
                    return std::nullopt;
                }
                const auto left = leaseOf(call.reply, std::numeric_limits<std::int64_t>::max(), ec);
                return ec ? Time() : left < 0 ? std::chrono::milliseconds::max() : std::chrono::milliseconds(left);
            }};
}

/// @param answer what is made of the free permits and those taken.
CounterRequest<std::int64_t> countRequest(NamedCounter& counter, std::int64_t free, std::int64_t taken)
{
    return {.call = std::make_shared<ScriptCall>(scripts::permitExpirableSemaphoreCount, keysOf(counter),
                                                 std::vector{counter.channel()}),
            .meaning = [free, taken](const Call& call, bool, std::error_code& ec) -> std::int64_t {
                using Limits = std::numeric_limits<std::int64_t>;
                if (call.reply.kind != Reply::Kind::array || call.reply.elements.size() != 2) {
                    ec = Errc::badReply;
                    return 0;
                }
                const auto first = numberOf(call.reply.elements[0], Limits::min() / 2, Limits::max() / 2, ec);
                return free * first + taken * numberOf(call.reply.elements[1], 0, Limits::max() / 2, ec);
            }};
}

CounterRequest<bool> setPermitsRequest(NamedCounter& counter, std::int64_t permits)
{
    if (!isCount(permits, 0)) {
        return {.refused = Errc::invalidArgument};
    }
    auto recorded = counter.recorded(0);
    auto keys = keysOf(counter);
    keys.push_back(recorded.record);
    return {.call = std::make_shared<ScriptCall>(
                scripts::permitExpirableSemaphoreSet, std::move(keys),
                std::vector{std::to_string(permits), counter.channel(), counter.recordTime()}),
            .recorded = std::move(recorded),
            .meaning = doneOf};
}

CounterRequest<bool> trySetFor(NamedCounter& counter, std::int64_t permits, std::chrono::milliseconds live)
{
    return live <= live.zero() ? CounterRequest<bool>{.refused = Errc::invalidArgument}
                               : trySetRequest(counter, permits, live, permits);
}

} // namespace

CounterRequest<Unlocked> detail::permitRelease(NamedCounter& counter, const std::string& id, const std::string& keepMs)
{
    const auto raw = rawId(id);
    if (raw.empty()) {
        return {.refused = Errc::invalidArgument, .known = Unlocked::alreadyLost};
    }
    auto call = std::make_shared<ScriptCall>(scripts::permitExpirableSemaphoreRelease, keysOf(counter, id),
                                             std::vector{raw, counter.channel(), keepMs});
    return {.call = call,
            .meaning =
                [](const Call& answered, bool repeated, std::error_code& ec) {
                    const auto how = numberOf(answered.reply, 0, 2, ec);
                    if (ec) {
                        return Unlocked::unconfirmed;
                    }
                    // a first try whose answer was lost may have done it
                    return how == 1 || (how == 0 && repeated) ? Unlocked::released : Unlocked::alreadyLost;
                },
            .afterwards = call->again(),
            .denied = Denied::goesOn,
            .known = Unlocked::unconfirmed};
}

namespace {

/// A release by id. Whether copies of requests for a permit that somebody else took may still arrive, nobody knows here.
CounterRequest<Unlocked> releaseById(NamedCounter& counter, const std::string& id)
{
    const auto hold = counter.find(id);
    return permitRelease(counter, id, hold != nullptr && hold->open == 0 ? "0" : counter.recordTime());
}

} // namespace

Permit PermitExpirableSemaphore::acquire(Lease lease) const
{
    return tryAcquire(waitForever, lease);
}

Permit PermitExpirableSemaphore::acquire(Lease lease, std::error_code& ec) const
{
    return tryAcquire(waitForever, lease, ec);
}

Permit PermitExpirableSemaphore::tryAcquire(Wait wait, Lease lease) const
{
    return throwing(name(), "acquire", lease, [&](std::error_code& ec) { return tryAcquire(wait, lease, ec); });
}

Permit PermitExpirableSemaphore::tryAcquire(Wait wait, Lease lease, std::error_code& ec) const
{
    const auto id = newId();
    const auto order = acquireOrder(*state_, id, wait, lease);
    CounterOutcome outcome;
    ec = order.script == nullptr ? std::error_code(Errc::invalidArgument) : state_->acquire(order, outcome);
    return permitOf(*state_, id, lease, outcome);
}

Unlocked PermitExpirableSemaphore::release(const std::string& id) const
{
    return throwing(name(), "release", [&](std::error_code& ec) { return release(id, ec); });
}

Unlocked PermitExpirableSemaphore::release(const std::string& id, std::error_code& ec) const
{
    const Unlocked how = state_->ask(releaseById(*state_, id), ec);
    if (ec == Errc::unreachable || ec == Errc::serverRefused || ec == Errc::badReply) {
        ec.clear(); // it goes on in the background
    }
    return how;
}

bool PermitExpirableSemaphore::updateLeaseTime(const std::string& id, Lease lease) const
{
    return throwing(name(), "updateLeaseTime", lease,
                    [&](std::error_code& ec) { return updateLeaseTime(id, lease, ec); });
}

bool PermitExpirableSemaphore::updateLeaseTime(const std::string& id, Lease lease, std::error_code& ec) const
{
    return state_->ask(updateRequest(*state_, id, lease), ec);
}

std::optional<std::chrono::milliseconds> PermitExpirableSemaphore::getLeaseTime(const std::string& id) const
{
    return throwing(name(), "getLeaseTime", [&](std::error_code& ec) { return getLeaseTime(id, ec); });
}

std::optional<std::chrono::milliseconds> PermitExpirableSemaphore::getLeaseTime(const std::string& id,
                                                                                std::error_code& ec) const
{
    return state_->ask(leaseTimeRequest(*state_, id), ec);
}

std::int64_t PermitExpirableSemaphore::count(Count which, std::error_code& ec) const
{
    return state_->ask(countRequest(*state_, which != Count::acquired, which != Count::available), ec);
}

std::int64_t PermitExpirableSemaphore::availablePermits() const
{
    return throwing(name(), "availablePermits", [&](std::error_code& ec) { return availablePermits(ec); });
}

std::int64_t PermitExpirableSemaphore::availablePermits(std::error_code& ec) const
{
    return count(Count::available, ec);
}

std::int64_t PermitExpirableSemaphore::acquiredPermits() const
{
    return throwing(name(), "acquiredPermits", [&](std::error_code& ec) { return acquiredPermits(ec); });
}

std::int64_t PermitExpirableSemaphore::acquiredPermits(std::error_code& ec) const
{
    return count(Count::acquired, ec);
}

std::int64_t PermitExpirableSemaphore::getPermits() const
{
    return throwing(name(), "getPermits", [&](std::error_code& ec) { return getPermits(ec); });
}

std::int64_t PermitExpirableSemaphore::getPermits(std::error_code& ec) const
{
    return count(Count::all, ec);
}

bool PermitExpirableSemaphore::trySetPermits(std::int64_t permits) const
{
    return throwing(name(), "trySetPermits", permits, [&](std::error_code& ec) { return trySetPermits(permits, ec); });
}

bool PermitExpirableSemaphore::trySetPermits(std::int64_t permits, std::error_code& ec) const
{
    return state_->ask(trySetRequest(*state_, permits, std::chrono::milliseconds::zero(), permits), ec);
}

bool PermitExpirableSemaphore::trySetPermits(std::int64_t permits, std::chrono::milliseconds timeToLive) const
{
    return throwing(name(), "trySetPermits", permits,
                    [&](std::error_code& ec) { return trySetPermits(permits, timeToLive, ec); });
}

bool PermitExpirableSemaphore::trySetPermits(std::int64_t permits, std::chrono::milliseconds timeToLive,
                                             std::error_code& ec) const
{
    return state_->ask(trySetFor(*state_, permits, timeToLive), ec);
}

void PermitExpirableSemaphore::setPermits(std::int64_t permits) const
{
    throwing(name(), "setPermits", permits, [&](std::error_code& ec) {
        setPermits(permits, ec);
        return true;
    });
}

void PermitExpirableSemaphore::setPermits(std::int64_t permits, std::error_code& ec) const
{
    state_->ask(setPermitsRequest(*state_, permits), ec);
}

void PermitExpirableSemaphore::addPermits(std::int64_t difference) const
{
    throwing(name(), "addPermits", difference, [&](std::error_code& ec) {
        addPermits(difference, ec);
        return true;
    });
}

void PermitExpirableSemaphore::addPermits(std::int64_t difference, std::error_code& ec) const
{
    state_->ask(addRequest(*state_, difference, AddTo::anyCounter), ec);
}

bool PermitExpirableSemaphore::forceDelete() const
{
    return throwing(name(), "forceDelete", [&](std::error_code& ec) { return forceDelete(ec); });
}

bool PermitExpirableSemaphore::forceDelete(std::error_code& ec) const
{
    return state_->ask(deleteRequest(*state_), ec);
}

const std::string& PermitExpirableSemaphore::name() const noexcept
{
    return state_->name;
}

void PermitExpirableSemaphore::startAcquire(const State& state, Wait wait, Lease lease, PermitHandler handler)
{
    const auto id = newId();
    state->asyncAcquire<Permit>(
        acquireOrder(*state, id, wait, lease), std::move(handler),
        [state, id, lease](const CounterOutcome& outcome) { return permitOf(*state, id, lease, outcome); });
}

void PermitExpirableSemaphore::startRelease(const State& state, const std::string& id, UnlockHandler handler)
{
    state->asyncAsk(releaseById(*state, id), std::move(handler));
}

void PermitExpirableSemaphore::startUpdate(const State& state, const std::string& id, Lease lease, FlagHandler handler)
{
    state->asyncAsk(updateRequest(*state, id, lease), std::move(handler));
}

void PermitExpirableSemaphore::startLeaseTime(const State& state, const std::string& id, TimeHandler handler)
{
    state->asyncAsk(leaseTimeRequest(*state, id), std::move(handler));
}

void PermitExpirableSemaphore::startCount(const State& state, Count which, NumberHandler handler)
{
    state->asyncAsk(countRequest(*state, which != Count::acquired, which != Count::available), std::move(handler));
}

void PermitExpirableSemaphore::startTrySet(const State& state, std::int64_t permits,
                                           std::chrono::milliseconds timeToLive, FlagHandler handler)
{
    state->asyncAsk(trySetRequest(*state, permits, timeToLive, permits), std::move(handler));
}

void PermitExpirableSemaphore::startSet(const State& state, std::int64_t permits, FlagHandler handler)
{
    state->asyncAsk(setPermitsRequest(*state, permits), std::move(handler));
}

void PermitExpirableSemaphore::startAdd(const State& state, std::int64_t difference, FlagHandler handler)
{
    state->asyncAsk(addRequest(*state, difference, AddTo::anyCounter), std::move(handler));
}

void PermitExpirableSemaphore::startDelete(const State& state, FlagHandler handler)
{
    state->asyncAsk(deleteRequest(*state), std::move(handler));
}

} // namespace redislock
