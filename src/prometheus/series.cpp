#include "series.hpp"

namespace redislock::detail {

namespace {

constexpr auto outcome = "outcome";
constexpr auto granted = "acquired";
constexpr auto inVain = "contended";

/// Most calls need one or two attempts; a waiter behind a hold of its own client may need none.
prometheus::Histogram::BucketBoundaries attemptBuckets()
{
    return {0, 1, 2, 3, 5, 10, 20, 50, 100};
}

} // namespace

Series::Series(Families& f, const prometheus::Labels& of, const TimeBuckets& times)
    : labels(of),
      acquired(f.acquired.Add(of)),
      contended(f.contended.Add(of)),
      waitedForGrant(f.waits.Add(with(of, outcome, granted), times)),
      waitedInVain(f.waits.Add(with(of, outcome, inVain), times)),
      attemptsForGrant(f.attempts.Add(with(of, outcome, granted), attemptBuckets())),
      attemptsInVain(f.attempts.Add(with(of, outcome, inVain), attemptBuckets())),
      renewed(f.renewed.Add(of)),
      renewal(f.renewals.Add(of, times)),
      atRisk(f.atRisk, of, "reason"),
      lost(f.lost, of, "reason"),
      released(f.released, of, "result"),
      hold(f.holds.Add(of, times)),
      unconfirmed(f.unconfirmed.Add(of)),
      heldTooLong(f.heldTooLong.Add(of)),
      keysWithoutTtl(f.keysWithoutTtl.Add(of)),
      pushesMissed(f.pushesMissed.Add(of)),
      subscribesRefused(f.subscribesRefused.Add(of))
{
}

} // namespace redislock::detail
