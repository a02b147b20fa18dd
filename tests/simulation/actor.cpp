#include "simulation/actor.hpp"

#include "core/name_call.hpp"
#include "simulation/loss_checker.hpp"
#include "simulation/one_of.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace redislock::simulation {

using namespace std::chrono_literals;
using detail::EndedBy;
using detail::KindTraits;

namespace {

constexpr std::size_t mostLevels = 4;

using detail::LockKind;

/// Some names, each with a lock of some kind, or with both halves of a read/write lock.
std::vector<View> drawViews(Random& chance)
{
    std::vector<View> views;
    const auto names = oneOf(chance, {1U, 1U, 2U, 3U});
    for (unsigned i = 0; i < names; ++i) {
        const auto kind = oneOf(chance, {LockKind::redisLock, LockKind::redisLock, LockKind::nonReentrantLock,
                                         LockKind::spinLock, LockKind::fencedLock, LockKind::fairLock,
                                         LockKind::fairLock, LockKind::readLock, LockKind::readLock});
        views.push_back({fmt::format("stock:{}", i), kind});
        if (kind == LockKind::readLock) {
            views.push_back({views.back().name, LockKind::writeLock});
        }
    }
    return views;
}

/// A policy by which a thread asks again for a lock whose release publishes nothing.
std::shared_ptr<const RetryPolicy> drawPolicy(Random& chance)
{
    return std::make_shared<const RetryPolicy>(oneOf(
        chance, {RetryPolicy::exponential(1ms, 128ms), RetryPolicy::fixed(64ms), RetryPolicy::spinThenSleep(3, 20ms)}));
}

/// Whether threads may also use policies with a lock of that kind.
bool mayHavePolicies(LockKind kind)
{
    return kind == LockKind::redisLock || kind == LockKind::nonReentrantLock || kind == LockKind::fencedLock;
}

} // namespace

Workload::Workload(Random& chance)
    : views(drawViews(chance)),
      meanThink(oneOf(chance, {1, 5, 30, 200})),
      meanHold(oneOf(chance, {1, 5, 20, 80})),
      longHold(oneOf(chance, {0.02, 0.05, 0.15})),
      nested(oneOf(chance, {0.0, 0.2, 0.5, 0.8})),
      guard(oneOf(chance, {0.0, 0.3, 0.8})),
      fixedLease(oneOf(chance, {0.0, 0.3, 0.8})),
      question(oneOf(chance, {0.0, 0.05, 0.2})),
      forceUnlock(oneOf(chance, {0.0, 0.0, 0.2})),
      started(oneOf(chance, {0.0, 0.2, 0.6})),
      policy(oneOf(chance, {0.0, 0.0, 0.1})),
      calledOff(oneOf(chance, {0.0, 0.1, 0.4}))
{
}

std::vector<std::string> Workload::names() const
{
    std::vector<std::string> all;
    for (const View& view : views) {
        if (all.empty() || all.back() != view.name) {
            all.push_back(view.name);
        }
    }
    return all;
}

bool Workload::keepsPlaces() const noexcept
{
    return std::any_of(views.begin(), views.end(),
                       [](const View& view) { return KindTraits::of(view.kind).keepsPlace; });
}

Actor::Actor(SimClient& client, const Workload& workload, std::uint64_t number, std::uint64_t seed,
             Statistics& statistics)
    : client_(client),
      workload_(workload),
      number_(number),
      chance_(seed),
      statistics_(statistics),
      thread_(client.host())
{
    pause(thinkTime());
}

std::chrono::nanoseconds Actor::around(std::chrono::milliseconds mean)
{
    return std::chrono::nanoseconds(
        1 + static_cast<std::int64_t>(static_cast<double>(mean.count()) * 2e6 * chance_.unit()));
}

std::chrono::nanoseconds Actor::thinkTime()
{
    return std::chrono::duration_cast<std::chrono::nanoseconds>(around(workload_.meanThink) * workload_.pace);
}

/// Mostly short; sometimes so long that a renewed hold needs renewals and a fixed lease ends.
std::chrono::nanoseconds Actor::holdTime()
{
    if (!stopping_ && chance_.unit() < workload_.longHold) {
        return around(std::min(client_.config().watchdogTimeout, std::chrono::milliseconds(10'000)));
    }
    constexpr double atOnce = 0.2; // two steps in one packet
    return chance_.unit() < atOnce ? std::chrono::nanoseconds(1) : around(workload_.meanHold);
}

void Actor::pause(std::chrono::nanoseconds span)
{
    thread_.sleep(span, [this] { decide(); });
}

void Actor::begin(std::unique_ptr<ThreadCall> operation, Next next)
{
    thread_.run(std::move(operation), [this, next] {
        ++statistics_.operations;
        (this->*next)();
    });
}

void Actor::decide()
{
    check();
    if (levels_.empty()) {
        if (stopping_) {
            return;
        }
        view_ = static_cast<std::size_t>(chance_.unit() * static_cast<double>(workload_.views.size()));
        return chance_.unit() < workload_.question ? ask() : acquire(view_);
    }
    const double choice = chance_.unit();
    const bool isOwn = !levels_.front().isStarted; // otherwise it would wait for its own guard
    if (!stopping_ && isOwn && levels_.size() < mostLevels && choice < workload_.nested) {
        return acquire(oneOfName());
    }
    return !stopping_ && chance_.unit() < workload_.question ? ask() : endLevel();
}

/// A lock of the name that the thread works with.
std::size_t Actor::oneOfName()
{
    const auto halves =
        std::count_if(workload_.views.begin(), workload_.views.end(), [&](const View& v) { return v.name == name(); });
    const auto first =
        std::find_if(workload_.views.begin(), workload_.views.end(), [&](const View& v) { return v.name == name(); });
    const auto half = halves == 1 ? 0 : static_cast<std::ptrdiff_t>(chance_.unit() * static_cast<double>(halves));
    return static_cast<std::size_t>(first - workload_.views.begin() + half);
}

void Actor::acquire(std::size_t view)
{
    view_ = view;
    const double choice = chance_.unit();
    const Wait wait = choice < 0.5   ? waitForever
                      : choice < 0.8 ? Wait(std::chrono::milliseconds(static_cast<int>(1 + chance_.unit() * 3000)))
                                     : Wait(std::chrono::milliseconds(0));
    const Lease lease = chance_.unit() < workload_.fixedLease
                            ? Lease(std::chrono::milliseconds(oneOf(chance_, {20, 100, 500, 2000, 10000})))
                            : keepRenewing;
    isStarted_ = levels_.empty() && chance_.unit() < workload_.started;
    endedBy_ = isStarted_ || chance_.unit() < workload_.guard ? EndedBy::guard : EndedBy::thread;
    const detail::AcquireOrder order{wait, lease, endedBy_, drawPolicy(), nullptr, drawDurability(lease)};
    if (isStarted_) {
        return beginAcquire<StartedAcquire>(&Actor::acquired, order);
    }
    beginAcquire<Acquire>(&Actor::acquired, number_, order);
    if (acquiring_ != nullptr && chance_.unit() < workload_.calledOff) {
        callOffSoon();
    }
}

/// The call may then be connecting, asking or sleeping, or it may have ended.
void Actor::callOffSoon()
{
    const auto after = chance_.unit() < 0.5 ? around(2ms) : around(workload_.meanHold * 4);
    thread_.sleep(after, [this, number = acquires_] {
        if (number == acquires_ && acquiring_ != nullptr) {
            client_.trace()(client_.host().name(), "thread {} calls off", number_);
            thread_.call()->callOff();
        }
    });
}

/// @param next is called when the operation has ended.
template <class Call, class... Arguments>
void Actor::beginAcquire(Next next, Arguments&&... arguments)
{
    auto operation = std::make_unique<Call>(client_, named(), std::forward<Arguments>(arguments)...);
    acquiring_ = operation.get();
    ++acquires_;
    begin(std::move(operation), next);
}

/// Null: the thread waits for a message.
std::shared_ptr<const RetryPolicy> Actor::drawPolicy()
{
    if (named().kind == LockKind::spinLock) {
        return simulation::drawPolicy(chance_);
    }
    const bool asksSeldom = mayHavePolicies(named().kind) && chance_.unit() < workload_.policy;
    return asksSeldom ? std::make_shared<const RetryPolicy>(RetryPolicy::fixed(5s)) : nullptr;
}

Durability Actor::drawDurability(Lease lease)
{
    if (workload_.durable == 0 || chance_.unit() >= workload_.durable) {
        return {};
    }
    const auto count = oneOf(chance_, {1U, workload_.replicas, workload_.replicas});
    const auto most = detail::leaseTime(client_.config(), lease);
    return Durability::replicas(count, std::min(most, oneOf(chance_, {20ms, 200ms, 1000ms})));
}

void Actor::acquired()
{
    const bool isNested = acquiring_->isNested();
    const bool isGranted = note();
    if (isGranted && isNested && named().kind == LockKind::nonReentrantLock) {
        throw Violation("S6 exact hold count", "a lock that is not re-entrant was nested");
    }
    if (isGranted && !isNested) {
        ++statistics_.grants;
        ++statistics_.held[static_cast<std::size_t>(named().kind)];
    }
    pause(levels_.empty() ? thinkTime() : holdTime());
}

/// The end of an acquire. @return whether it was granted
bool Actor::note()
{
    const auto& end = *std::exchange(acquiring_, nullptr);
    const auto& [hold, level, token] = end.acquired();
    client_.trace()(client_.host().name(), "thread {} acquire of {}: {}{}", number_, named().name,
                    hold          ? "granted to "
                    : end.error() ? end.error().message()
                                  : "contended",
                    hold ? client_.holderOf(*hold) : "");
    const bool isGranted = hold != nullptr;
    if (end.error() == Errc::notDurable) {
        ++statistics_.replicas[static_cast<std::size_t>(ReplicaEvent::notDurable)];
    }
    if (isGranted) {
        levels_.push_back({hold, level, endedBy_, isStarted_});
    }
    thread_.forget();
    check();
    return isGranted;
}

void Actor::endLevel()
{
    const auto level = chance_.unit() < 0.85
                           ? levels_.size() - 1
                           : static_cast<std::size_t>(chance_.unit() * static_cast<double>(levels_.size()));
    levels_[level].endedBy == EndedBy::guard ? endGuard(level) : unlock(*levels_[level].hold->lock);
}

/// unlock(): ends the innermost level of this thread, or counts as one of those that were lost.
void Actor::unlock(NamedLock& named)
{
    bool owed = false;
    const auto innermost = client_.core().innermostOf(named, number_, owed);
    const auto* own = innermost.hold.get();
    client_.observe();
    if (own == nullptr && !owed) {
        throw Violation("S6 exact hold count",
                        fmt::format("thread {} unlocked a lost level and was told that it has none", number_));
    }
    const auto entry = std::find_if(levels_.rbegin(), levels_.rend(), [&](const Level& level) {
        return level.endedBy == EndedBy::thread && level.hold->lock.get() == &named &&
               (own == nullptr ? level.hold->phase != Hold::Phase::held
                               : level.hold.get() == own && level.id == innermost.level);
    });
    if (entry == levels_.rend()) {
        throw Violation("S6 exact hold count", fmt::format("thread {} has a level too many", number_));
    }
    levels_.erase(std::next(entry).base());
    if (own == nullptr) {
        client_.trace()(client_.host().name(), "thread {} unlock: lost before", number_);
        return pause(holdTime());
    }
    begin(std::make_unique<AwaitedRelease>(client_, innermost), &Actor::released);
}

void Actor::endGuard(std::size_t index)
{
    const Level level = levels_[index];
    levels_.erase(levels_.begin() + static_cast<std::ptrdiff_t>(index));
    const detail::Acquired acquired{level.hold, level.id, 0};
    const bool isHeld = client_.core().isHeld(acquired);
    client_.observe();
    if (!isHeld) {
        return pause(holdTime());
    }
    if (chance_.unit() < 0.3) {
        return begin(std::make_unique<AwaitedRelease>(client_, acquired), &Actor::released);
    }
    client_.trace()(client_.host().name(), "thread {} guard of {} ends", number_, client_.holderOf(*level.hold));
    const auto how = client_.core().releasing.endLevel(*level.hold, level.id);
    statistics_.passings += how == Unlocked::passedOn ? 1U : 0U;
    client_.observe();
    ++statistics_.operations;
    pause(levels_.empty() ? thinkTime() : holdTime());
}

void Actor::released()
{
    static constexpr const char* results[] = {"released", "still held", "lost before", "unconfirmed", "passed on"};
    const Unlocked how = static_cast<AwaitedRelease&>(*thread_.call()).how();
    client_.trace()(client_.host().name(), "thread {} unlock: {}", number_, results[static_cast<std::size_t>(how)]);
    statistics_.passings += how == Unlocked::passedOn ? 1U : 0U;
    thread_.forget();
    if (std::exchange(probing_, false) && how != Unlocked::released) {
        throw Violation("T9 recovery", "a lock that was taken after all faults could not be released");
    }
    pause(levels_.empty() ? thinkTime() : holdTime());
}

void Actor::ask()
{
    if (levels_.empty() && chance_.unit() < workload_.forceUnlock) {
        return begin(std::make_unique<Forcing>(client_, named().shared_from_this()), &Actor::forced);
    }
    begin(std::make_unique<Question>(client_, detail::nameCall(named(), named().traits().pttl)), &Actor::asked);
}

/// A holder of this client knows of the forced release at once.
void Actor::forced()
{
    const auto& end = static_cast<Forcing&>(*thread_.call()).flow();
    if (end.wasFreed()) {
        for (const auto& hold : named().local.holds()) {
            if (client_.holderOf(*hold) == end.holder()) {
                throw Violation("S9 lost is final", end.holder() + " holds on to what its own client ended by force");
            }
        }
    }
    asked();
}

void Actor::asked()
{
    thread_.forget();
    pause(levels_.empty() ? thinkTime() : holdTime());
}

void Actor::probe(std::size_t view)
{
    view_ = view;
    probing_ = true;
    endedBy_ = EndedBy::thread;
    isStarted_ = false;
    const auto policy = named().kind == LockKind::spinLock ? simulation::drawPolicy(chance_) : nullptr;
    beginAcquire<Acquire>(&Actor::probed, number_,
                          detail::AcquireOrder{waitForever, keepRenewing, endedBy_, policy, nullptr,
                                               workload_.durable > 0 ? Durability::replicas(workload_.replicas, 400ms)
                                                                     : Durability::none()});
}

void Actor::probed()
{
    if (!note()) {
        throw Violation("T9 recovery", "a lock could not be taken after all faults");
    }
    unlock(named());
}

/// Checks that the thread and the client count the same levels.
void Actor::check()
{
    for (const auto& level : levels_) {
        const Hold& hold = *level.hold;
        if (hold.phase != Hold::Phase::held) {
            continue;
        }
        if (hold.owner != (level.isStarted ? 0 : number_)) {
            throw Violation("S1 mutual exclusion",
                            fmt::format("thread {} has {}, which was passed on", number_, client_.holderOf(hold)));
        }
        expectLossTold(client_.holderOf(hold), hold.validUntil(), client_.host(), client_.trueTime());
        const auto count =
            std::count_if(levels_.begin(), levels_.end(), [&](const Level& l) { return l.hold == level.hold; });
        if (hold.levels.count() != count) {
            throw Violation("S6 exact hold count", fmt::format("{} has {} levels and counts {}", client_.holderOf(hold),
                                                               count, hold.levels.count()));
        }
    }
}

} // namespace redislock::simulation
