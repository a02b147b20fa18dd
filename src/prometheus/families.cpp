#include "families.hpp"

namespace redislock::detail {

namespace {

auto& counters(prometheus::Registry& registry, const char* name, const char* help)
{
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}

auto& histograms(prometheus::Registry& registry, const char* name, const char* help)
{
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
}

} // namespace

Families::Families(prometheus::Registry& r)
    : acquired(counters(r, "redislock_acquired_total", "Locks and permits acquired, latches found open")),
      contended(counters(r, "redislock_contended_total", "Calls that ended without it because others held it")),
      waits(histograms(r, "redislock_wait_seconds", "Time from the call to its end, granted or not")),
      attempts(histograms(r, "redislock_attempts", "Requests to Redis in a call; of a group, rounds at its members")),
      renewed(counters(r, "redislock_renewed_total", "Leases that the watchdog renewed")),
      renewals(histograms(r, "redislock_renewal_seconds", "Time from sending a renewal to its answer")),
      renewalFailures(counters(r, "redislock_renewal_failures_total", "Renewals that failed and are tried again")),
      atRisk(counters(r, "redislock_at_risk_total", "Holds that would end soon without another renewal")),
      lost(counters(r, "redislock_lost_total", "Holds that were lost")),
      released(counters(r, "redislock_released_total", "Holds and permits that were released")),
      holds(histograms(r, "redislock_hold_seconds", "Time from the grant of a hold to its release")),
      unconfirmed(counters(r, "redislock_unconfirmed_total", "Releases that got no answer while their lease lasted")),
      heldTooLong(counters(r, "redislock_held_too_long_total", "Holds that reached maxHold and are not renewed")),
      keysWithoutTtl(counters(r, "redislock_keys_without_ttl_total", "Waiters that met a key without a time to live")),
      pushesMissed(counters(r, "redislock_pushes_missed_total", "Grants found by polling: notifications missed")),
      subscribesRefused(
          counters(r, "redislock_subscribes_refused_total", "Subscriptions for notifications that were refused")),
      connected(counters(r, "redislock_connected_total", "Connections to the server that became usable")),
      disconnected(counters(r, "redislock_disconnected_total", "Connections that ended or could not be made"))
{
}

} // namespace redislock::detail
