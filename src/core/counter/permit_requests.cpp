#include "core/counter/permit_requests.hpp"

#include "core/counter/counter_requests.hpp"
#include "core/machine/lock_answer.hpp"
#include "wire/key_schema.hpp"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

namespace redislock::detail {

namespace {

constexpr std::string_view hexDigits = "0123456789abcdef";

/// An id as it is in Redis, 16 bytes; empty if the text is no id.
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

/// The keys of a permit's scripts, with the tombstone of its id.
std::vector<std::string> keysOf(const NamedCounter& counter, const std::string& id)
{
    return {counter.name, suffixed(counter.name, "timeout"), requestKey(counter.name, id)};
}

/// @param copies whether copies of earlier requests for the permit may still arrive.
std::shared_ptr<ScriptCall> leaseCall(const NamedCounter& counter, const std::string& id, const std::string& lease,
                                      std::uint64_t number, bool copies)
{
    return std::make_shared<ScriptCall>(
        scripts::permitExpirableSemaphoreLease, keysOf(counter, id),
        std::vector{rawId(id), lease, std::to_string(number), copies ? counter.recordTime() : "0"});
}

/// The lease in an answer; -1: for ever.
std::int64_t leaseOf(const Reply& reply, std::int64_t most, std::error_code& ec) noexcept
{
    const bool forever = reply.kind == Reply::Kind::integer && reply.integer == -1;
    return forever ? -1 : numberOf(reply, 1, most, ec);
}

} // namespace

CounterOrder permitOrder(NamedCounter& counter, const std::string& id, Wait wait, Lease lease)
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
            .holder = id,
            .undo = [self = &counter, id](bool copies) {
                return permitRelease(*self, id, copies ? self->recordTime() : "0").call;
            }};
}

std::shared_ptr<PermitHold> grantedPermit(NamedCounter& counter, const std::string& id, Lease lease,
                                          const CounterOutcome& outcome)
{
    auto hold = std::make_shared<PermitHold>();
    hold->counter = counter.shared_from_this();
    hold->id = id;
    hold->grantedAt = counter.port->now();
    hold->open = outcome.repeated ? 1 : 0;
    hold->setValidUntil(lease == nonExpiring ? TimePoint::max() : outcome.validUntil);
    counter.add(hold);
    return hold;
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
            std::min(hold->validUntil(), validUntil(lease, counter.port->now()))); // now either may count
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

CounterRequest<std::optional<std::chrono::milliseconds>> leaseTimeRequest(NamedCounter& counter, const std::string& id)
{
    using Time = std::optional<std::chrono::milliseconds>;
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
    if (recorded.refused) {
        return {.refused = recorded.refused};
    }
    auto keys = keysOf(counter);
    keys.push_back(recorded.record);
    return {.call = std::make_shared<ScriptCall>(
                scripts::permitExpirableSemaphoreSet, std::move(keys),
                std::vector{std::to_string(permits), counter.channel(), counter.recordTime()}),
            .recorded = std::move(recorded),
            .meaning = doneOf};
}

CounterRequest<Unlocked> permitRelease(NamedCounter& counter, const std::string& id, const std::string& keepMs,
                                       std::chrono::nanoseconds held)
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
                    // an earlier try whose answer was lost may have released it
                    return how == 1 || (how == 0 && repeated) ? Unlocked::released : Unlocked::alreadyLost;
                },
            .afterwards = call->again(),
            .denied = Denied::goesOn,
            .tells = [self = counter.shared_from_this(), id,
                      held](Unlocked how, std::error_code /*ec*/) { self->tellReleased(id, how, held); },
            .known = Unlocked::unconfirmed};
}

CounterRequest<Unlocked> permitRelease(PermitHold& hold)
{
    NamedCounter& counter = *hold.counter;
    counter.remove(hold.id);
    return permitRelease(counter, hold.id, hold.open > 0 ? counter.recordTime() : "0",
                         counter.port->now() - hold.grantedAt);
}

/// For a permit that another client took, it is not known here whether copies of requests may still arrive.
CounterRequest<Unlocked> releaseById(NamedCounter& counter, const std::string& id)
{
    const auto hold = counter.find(id);
    return permitRelease(counter, id,
                         hold == nullptr   ? counter.tombstoneTime()
                         : hold->open == 0 ? "0"
                                           : counter.recordTime());
}

} // namespace redislock::detail
