#include "core/renewal_call.hpp"

#include "core/core.hpp"
#include "wire/command.hpp"
#include "wire/key_schema.hpp"

#include <algorithm>

namespace redislock::detail {

namespace {

/// Not one that has ended; but one whose caller does not know of it yet.
bool isAlive(const RenewalCall::Item& item) noexcept
{
    const auto phase = item.hold->phase.load(std::memory_order_acquire);
    return phase == Hold::Phase::held || phase == Hold::Phase::acquiring;
}

/// The reader's hold key of the first level, which is there as long as the hold is.
std::string holdKey(const Hold& hold)
{
    return suffixed(hold.lock->name, hold.lock->core->holderText(hold) + ":rwlock_timeout:1");
}

} // namespace

void RenewalCall::encode(std::string& out, Form by)
{
    std::size_t count = 0;
    for (auto& item : items_) {
        item.asked = isAlive(item);
        count += item.asked ? 1 : 0;
    }
    if (count == 0) { // all have ended, but the request must name one: it prolongs nothing
        items_.front().asked = true;
        items_.front().lease = minLease;
        count = 1;
    }
    const std::size_t keys = use_.withCompanions ? 2 : 1;
    appendScript(out, *use_.script, by, count * keys, 2 * count);
    for (const auto& item : items_) {
        if (item.asked) {
            const NamedLock& named = *item.hold->lock;
            appendArgument(out, std::string_view(named.name));
            if (use_.withCompanions) {
                appendArgument(out, holdKey(*item.hold));
            }
        }
    }
    for (const auto& item : items_) {
        if (item.asked) {
            appendHolder(out, *item.hold);
            appendArgument(out, std::int64_t{item.lease.count()});
        }
    }
}

Call::Subject RenewalCall::subject() const
{
    Subject subject{use_.script};
    for (const auto& item : items_) {
        if (item.asked) {
            subject.keys.push_back(item.hold->lock->name);
            if (use_.withCompanions) {
                subject.keys.push_back(keyPatterns({item.hold->lock->name, holdKey(*item.hold)}).back());
            }
        }
    }
    return subject;
}

bool RenewalCall::isWanted(TimePoint /*now*/) const noexcept
{
    return std::ranges::any_of(items_, isAlive);
}

void RenewalCall::finished() noexcept
{
    items_.front().hold->lock->core->renewing.finished(*this);
}

} // namespace redislock::detail
