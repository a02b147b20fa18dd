#include "simulation/mixed_queue_world.hpp"

#include "core/share/handoff.hpp"
#include "simulation/one_of.hpp"
#include "simulation/safety_checker.hpp"
#include "wire/key_schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace redislock::simulation {

using namespace std::chrono_literals;
using detail::KindTraits;
using detail::LockKind;
using test::RedissonFairLock;

namespace {

constexpr VirtualTime longestRun = 300s; ///< the longest time of a run
constexpr std::uint64_t requestsOfARun = 500;
constexpr VirtualTime longestHold = 61s;
constexpr std::int64_t pollMs = 1000;
constexpr std::int64_t placeMs = 5 * pollMs;
constexpr std::int64_t clocksMs = 30'000;
constexpr std::int64_t leaseMs = 30'000;
constexpr std::int64_t renewedEachMs = 10'000;
constexpr std::int64_t latestMessageMs = 20;

const std::string lockName = "stock:42";
const KindTraits& fair = KindTraits::of(LockKind::fairLock);

/// The beginning of the names of waiters' channels.
const std::string channels = detail::prefixed(fair.channelPrefix, lockName) + ":";
const std::string ourClient = "6f1c0f9e";
const std::string grants = std::string(detail::lockChannelPrefix) + ":" + ourClient;

std::string companion(std::size_t which)
{
    return detail::prefixed(fair.companions[which], lockName);
}

} // namespace

MixedQueueWorld::MixedQueueWorld(LuaRuntime& lua, std::uint64_t seed, bool traced)
    : lua_(lua),
      chance_(seed),
      trace_(scheduler_, traced),
      redissons_(lockName,
                 [this](const std::vector<std::string>& words) -> std::optional<std::string> {
                     const Reply reply = keyspace_.execute(words);
                     if (reply.isError()) {
                         throw std::logic_error(words[0] + ": " + reply.text);
                     }
                     switch (reply.kind) {
                     case Reply::Kind::nil:
                         return std::nullopt;
                     case Reply::Kind::integer:
                         return std::to_string(reply.integer);
                     default:
                         return reply.text;
                     }
                 }),
      meanThinkMs_(oneOf(chance_, {10, 300, 3000})),
      meanHoldMs_(oneOf(chance_, {5, 100, 2000})),
      longHold_(oneOf(chance_, {0.0, 0.01, 0.05})),
      dies_(oneOf(chance_, {0.0, 0.0, 0.01, 0.03})),
      givesUp_(oneOf(chance_, {0.0, 0.1, 0.5})),
      waitsDiffer_(chance_.unit() < 0.3),
      listens_(chance_.unit() < 0.8),
      messageLost_(oneOf(chance_, {0.0, 0.0, 0.05})),
      standsStill_(oneOf(chance_, {0.0, 0.0, 0.001}))
{
    keyspace_.publish = [this](const std::string& channel, const std::string& message) {
        return told(channel, message);
    };
    const bool clockIsSetBack = chance_.unit() < 0.25;
    const auto ours = oneOf(chance_, {1, 2, 3, 4});
    const auto redissons = oneOf(chance_, {1, 2, 4, 6});
    for (int i = 0; i < ours + redissons; ++i) {
        auto thread = std::make_unique<Thread>();
        thread->isOurs = i < ours;
        // If the server's clock jumps, the clocks of all other machines are off by this jump at once.
        thread->clockIsAheadMs = thread->isOurs || clockIsSetBack ? 0 : oneOf(chance_, {0, 0, 500, 29'000, -29'000});
        threads_.push_back(std::move(thread));
        born(*threads_.back());
    }
    if (clockIsSetBack) {
        scheduler_.at(std::chrono::duration_cast<VirtualTime>(longestRun * chance_.unit()), [this] {
            serverIsAheadMs_ -= oneOf(chance_, {1000, 30'000, 60'000});
            ++statistics_.faults;
            freeSinceMs_.reset();
            trace_("server", "its clock is set: {} ms", serverIsAheadMs_);
        });
    }
}

void MixedQueueWorld::run()
{
    while (statistics_.operations < requestsOfARun && scheduler_.step(longestRun)) {
        ++statistics_.events;
        checkFree();
    }
    isOver_ = true;
    for (const auto& thread : threads_) {
        if (thread->state == State::waiting) {
            plan(*thread, drawn(5000), &MixedQueueWorld::giveUp);
        }
    }
    const auto end = scheduler_.now() + longestHold;
    while (scheduler_.step(end)) {
        checkFree();
    }
    checkResidue();
}

// --- Time ------------------------------------------------------------------------------------------------------------

std::int64_t MixedQueueWorld::trueMs() const noexcept
{
    return millisecondOf(scheduler_.now()) + 100'000; // so that no clock shows a negative time
}

std::int64_t MixedQueueWorld::clockOf(const Thread& thread) const noexcept
{
    return Keyspace::epochMs + serverMs() + thread.clockIsAheadMs;
}

void MixedQueueWorld::plan(Thread& thread, std::int64_t inMs, Plan what)
{
    const bool asks = what == &MixedQueueWorld::ask;
    const auto asking = asks ? ++thread.asking : 0;
    scheduler_.at(scheduler_.now() + std::chrono::milliseconds(inMs), [=, this, &thread, step = thread.step] {
        if (thread.step == step && (!asks || thread.asking == asking)) {
            keyspace_.beginScript(serverMs());
            (this->*what)(thread);
        }
    });
}

std::int64_t MixedQueueWorld::drawn(std::int64_t meanMs)
{
    return 1 + static_cast<std::int64_t>(2 * chance_.unit() * static_cast<double>(meanMs));
}

// --- Threads ---------------------------------------------------------------------------------------------------------

/// A thread begins, or a new one in the place of a dead thread: no holder comes twice.
void MixedQueueWorld::born(Thread& thread)
{
    thread.holder = fmt::format("{}:{}", thread.isOurs ? ourClient : "0d7c1be2", ++born_);
    thread.requests = 0;
    thread.state = State::idle;
    plan(thread, drawn(meanThinkMs_), &MixedQueueWorld::begin);
}

void MixedQueueWorld::begin(Thread& thread)
{
    if (isOver_) {
        return;
    }
    thread.state = State::waiting;
    thread.wasSlow = false;
    thread.lastAskedMs = trueMs();
    if (thread.allowanceMs == 0 || waitsDiffer_) {
        thread.allowanceMs =
            chance_.unit() < givesUp_ ? oneOf(chance_, {500, 2000, 10'000, 60'000}) : RedissonFairLock::usualMs;
    }
    ++thread.step;
    if (thread.allowanceMs != RedissonFairLock::usualMs) {
        plan(thread, thread.allowanceMs, &MixedQueueWorld::giveUp);
    }
    ask(thread);
}

void MixedQueueWorld::ask(Thread& thread)
{
    ++statistics_.operations;
    thread.isOurs ? askOurs(thread) : askRedissons(thread);
}

void MixedQueueWorld::askOurs(Thread& thread)
{
    thread.wasSlow = thread.wasSlow || trueMs() - thread.lastAskedMs >= placeMs;
    thread.lastAskedMs = trueMs();
    thread.mayBeOut = false;
    const auto before = timesOfRedissons();
    const Reply reply =
        runScript(&KindTraits::lock, {thread.holder, std::to_string(leaseMs), "1", std::to_string(placeMs), channels,
                                      std::to_string(listens_ ? ++thread.requests : 0)});
    for (const auto& [holder, until] : timesOfRedissons()) {
        if (before.at(holder) != until) {
            throw Violation("S5 no foreign release or renewal",
                            fmt::format("{} moved the time of {}", thread.holder, holder));
        }
    }
    if (reply.kind == Reply::Kind::nil) {
        return granted(thread);
    }
    const auto refused = detail::LockAnswer::refusal(reply);
    if (!refused) {
        throw Violation("S8 honest answers", thread.holder + " was answered " + reply.text);
    }
    if (std::find(arrived_.begin(), arrived_.end(), &thread) == arrived_.end()) {
        arrived_.push_back(&thread);
    }
    checkTimeOf(thread);
    if (chance_.unit() < standsStill_) {
        ++statistics_.faults;
        freeSinceMs_.reset();
        return plan(thread, drawn(20'000), &MixedQueueWorld::ask);
    }
    const auto told = refused->timeToLive ? refused->timeToLive->count() : pollMs;
    plan(thread, std::clamp<std::int64_t>(told, 1, pollMs), &MixedQueueWorld::ask);
}

void MixedQueueWorld::askRedissons(Thread& thread)
{
    const bool hadPlace = redissons_.time(thread.holder).has_value();
    const auto wait = redissons_.acquire(thread.holder, thread.allowanceMs, clockOf(thread));
    trace_(thread.holder, "asks: {}", wait ? std::to_string(*wait) : "has it");
    if (!wait) {
        leaves(thread);
        return granted(thread);
    }
    if (!hadPlace) { // a new waiter, or its time was over: then it is last
        std::erase(arrived_, &thread);
        arrived_.push_back(&thread);
    }
    constexpr std::int64_t leastMs = 50; // it would ask without a pause if this were zero
    plan(thread, std::max(*wait, leastMs), &MixedQueueWorld::ask);
}

void MixedQueueWorld::giveUp(Thread& thread)
{
    if (thread.isOurs) {
        runScript(&KindTraits::unlock, {thread.holder, "0", "1", channels});
    } else {
        redissons_.giveUp(thread.holder, thread.allowanceMs);
        leaves(thread);
    }
    trace_(thread.holder, "gives up");
    rest(thread);
}

void MixedQueueWorld::leaves(const Thread& redissons)
{
    const auto* record = recordOf(redissons.holder);
    if (record != nullptr && record->ends_with(" about")) {
        for (Thread* waiter : arrived_) {
            waiter->mayBeOut = waiter->isOurs;
        }
    }
}

void MixedQueueWorld::granted(Thread& thread)
{
    for (const auto& other : threads_) {
        if (other.get() != &thread && other->state == State::holding) {
            throw Violation("S1 mutual exclusion", fmt::format("{} and {}", thread.holder, other->holder));
        }
    }
    for (const Thread* earlier : arrived_) {
        if (earlier == &thread) {
            break;
        }
        const bool isOut = earlier->mayBeOut && !thread.isOurs && !redissons_.time(earlier->holder);
        if (earlier->isOurs && !earlier->wasSlow && !waitsDiffer_ && !isOut &&
            trueMs() - earlier->lastAskedMs < placeMs) {
            throw Violation("T6 order of asking",
                            fmt::format("{} is let in before {}", thread.holder, earlier->holder));
        }
    }
    std::erase(arrived_, &thread);
    thread.state = State::holding;
    ++thread.step;
    ++statistics_.grants;
    ++statistics_.held[static_cast<std::size_t>(LockKind::fairLock)];
    statistics_.handOvers += lastHolder_ == thread.holder ? 0 : 1;
    lastHolder_ = thread.holder;
    plan(thread, chance_.unit() < longHold_ ? drawn(30'000) : drawn(meanHoldMs_), &MixedQueueWorld::release);
    plan(thread, renewedEachMs, &MixedQueueWorld::renew);
    if (chance_.unit() < dies_) {
        plan(thread, 1, &MixedQueueWorld::die);
    }
}

void MixedQueueWorld::renew(Thread& thread)
{
    if (thread.isOurs) {
        runScript(&KindTraits::renew, {thread.holder, std::to_string(leaseMs)});
    } else {
        redissons_.renew();
    }
    plan(thread, renewedEachMs, &MixedQueueWorld::renew);
}

void MixedQueueWorld::release(Thread& thread)
{
    ++statistics_.operations;
    if (thread.isOurs) {
        runScript(&KindTraits::unlock, {thread.holder, "0", "1", channels});
    } else {
        redissons_.release(thread.holder, clockOf(thread));
    }
    trace_(thread.holder, "releases");
    rest(thread);
}

/// Its process is killed, and the server does not learn of it. Another process is started.
void MixedQueueWorld::die(Thread& thread)
{
    trace_(thread.holder, "dies");
    ++statistics_.faults;
    freeSinceMs_.reset();
    ++thread.step;
    auto dead = std::make_unique<Thread>(thread);
    dead->state = State::dead;
    std::erase(arrived_, &thread);
    threads_.push_back(std::move(dead));
    thread.state = State::idle;
    plan(thread, drawn(10'000), &MixedQueueWorld::born);
}

void MixedQueueWorld::rest(Thread& thread)
{
    std::erase(arrived_, &thread);
    thread.state = State::idle;
    ++thread.step;
    plan(thread, drawn(meanThinkMs_), &MixedQueueWorld::begin);
}

/// A message came for a waiter, or for our client: it says that one of the client's waiters has the lock, or may ask.
std::int64_t MixedQueueWorld::told(const std::string& channel, const std::string& message)
{
    const auto grant = channel == grants ? detail::GrantMessage::from(message) : std::nullopt;
    const auto holder =
        grant ? fmt::format("{}:{}", ourClient, static_cast<std::uint64_t>(grant->holder)) : std::string();
    for (const auto& thread : threads_) {
        const bool isMeant = grant ? thread->holder == holder : channel == channels + thread->holder;
        if (thread->state == State::waiting && isMeant) {
            const bool isLast = grant && grant->request == thread->requests && grant->lasts.count() > 0;
            return tell(*thread, isLast ? &MixedQueueWorld::take : &MixedQueueWorld::ask);
        }
    }
    return 0;
}

/// Passes a message on, unless it is lost. Its receiver may also die at that moment.
std::int64_t MixedQueueWorld::tell(Thread& thread, Plan what)
{
    if (chance_.unit() < messageLost_) {
        ++statistics_.faults;
    } else {
        plan(thread, 1 + static_cast<std::int64_t>(chance_.unit() * latestMessageMs),
             chance_.unit() < dies_ ? &MixedQueueWorld::die : what);
    }
    return 1;
}

/// A release granted the lock to the thread, which has not asked since: nobody else can have the lock.
void MixedQueueWorld::take(Thread& thread)
{
    const auto* key = keyspace_.find(lockName, serverMs());
    if (key == nullptr || key->find(thread.holder) == nullptr) {
        throw Violation("S2 belief is true", thread.holder + " was granted the lock, and does not have it");
    }
    granted(thread);
    runScript(&KindTraits::renew, {thread.holder, std::to_string(leaseMs)});
}

Reply MixedQueueWorld::runScript(detail::ScriptUse KindTraits::*use, std::vector<std::string> arguments)
{
    Request request;
    request.run(fair, use, lockName, std::move(arguments));
    std::vector<std::string> keys{lockName};
    keys.insert(keys.end(), request.otherKeys.begin(), request.otherKeys.end());
    const bool hadTimes = !lacksTime(0) && !lacksTime(1);
    const auto* held = keyspace_.find(lockName, serverMs());
    const bool hadIt = held != nullptr && held->find(request.arguments[0]) != nullptr;
    const Reply reply = lua_.run(*request.script, keyspace_, keys, request.arguments);
    trace_(request.arguments[0], "{}: {} {}", request.script->name, reply.kind == Reply::Kind::nil ? "nil" : reply.text,
           reply.integer);
    if (trace_.isOn()) {
        for (const auto& waiter : redissons_.waiting()) {
            const auto* record = recordOf(waiter);
            trace_("", "  {} {}; {}", waiter, aheadMs(waiter), record == nullptr ? "unknown" : *record);
        }
    }
    if (use != &KindTraits::renew && !(use == &KindTraits::lock && hadIt)) { // these requests do not look at the queue
        checkTimesToLive(hadTimes || (use == &KindTraits::lock && detail::LockAnswer::refusal(reply)));
    }
    wasMixed_ = lacksTime(0);
    return reply;
}

// --- Judgements ------------------------------------------------------------------------------------------------------

const MixedQueueWorld::Thread* MixedQueueWorld::threadOf(const std::string& holder) const
{
    const auto found =
        std::find_if(threads_.begin(), threads_.end(), [&](const auto& t) { return t->holder == holder; });
    return found == threads_.end() ? nullptr : found->get();
}

/// What our scripts know of a waiter; null: nothing.
const std::string* MixedQueueWorld::recordOf(const std::string& waiter) const
{
    const auto* known = keyspace_.find(companion(2), serverMs());
    return known == nullptr ? nullptr : known->find(waiter);
}

/// How far the time of a waiter is ahead of the server's clock.
std::int64_t MixedQueueWorld::aheadMs(const std::string& waiter) const
{
    return redissons_.time(waiter).value_or(0) - Keyspace::epochMs - serverMs();
}

/// For how long a dead waiter of Redisson's keeps ours from a free lock once it is the first: for what our scripts take
/// for its allowance, which may have a part of ours that are gone, and 30 s more if that is a conclusion; or until its
/// time, if that is sooner.
std::int64_t MixedQueueWorld::longestTurnMs(const std::string& redissons) const
{
    const std::int64_t leftMs = std::max<std::int64_t>(0, aheadMs(redissons));
    std::int64_t turnMs = leftMs;
    if (const auto* record = recordOf(redissons)) {
        std::string word;
        std::istringstream words(*record);
        words >> word >> word >> turnMs;
        turnMs += words >> word ? clocksMs : 0;
    }
    return std::min(turnMs, leftMs);
}

std::map<std::string, std::int64_t> MixedQueueWorld::timesOfRedissons() const
{
    std::map<std::string, std::int64_t> times;
    for (const auto& waiter : redissons_.waiting()) {
        if (!threadOf(waiter)->isOurs) {
            times[waiter] = redissons_.time(waiter).value_or(0);
        }
    }
    return times;
}

bool MixedQueueWorld::lacksTime(std::size_t which) const
{
    const auto* key = keyspace_.find(companion(which), serverMs());
    return key != nullptr && !key->expiresAtMs;
}

/// Called after each script of ours. A waiter of ours beside Redisson's may find out, when it asks, that none of
/// Redisson's is queued any more: only then must Redisson's keys have times to live again.
/// @param isDue whether there must be times to live, unless a waiter of Redisson's is queued.
void MixedQueueWorld::checkTimesToLive(bool isDue) const
{
    const bool isMixed = !timesOfRedissons().empty();
    for (const std::size_t i : {0U, 1U}) {
        if (keyspace_.find(companion(i), serverMs()) != nullptr && (isMixed || isDue) && lacksTime(i) != isMixed) {
            throw Violation("R4 no key without time to live",
                            fmt::format("{} {} one while {} of Redisson's is queued", companion(i),
                                        isMixed ? "has" : "lacks", isMixed ? "one" : "none"));
        }
    }
    if (lacksTime(2)) {
        throw Violation("R4 no key without time to live", companion(2) + " has none");
    }
}

/// Checks the time of a waiter of ours that has just asked: a waiter of Redisson's ahead counts for the usual allowance
/// at most, or for one that is concluded from two times, each of which is as wrong as the clocks are, or from the end
/// of a hold that was renewed.
void MixedQueueWorld::checkTimeOf(const Thread& thread) const
{
    const auto waiters = redissons_.waiting();
    std::int64_t most = placeMs + clocksMs;
    for (auto i = waiters.begin(); i != waiters.end() && *i != thread.holder; ++i) {
        if (!threadOf(*i)->isOurs) {
            most += RedissonFairLock::usualMs + leaseMs + 2 * clocksMs;
        }
    }
    const auto ahead = aheadMs(thread.holder);
    if (ahead < placeMs + clocksMs || ahead > most) {
        throw Violation("T6 order of asking",
                        fmt::format("the time of {} is {} ms ahead, at most {} are due", thread.holder, ahead, most));
    }
}

/// If a waiter of ours waits, a free lock must be taken in time after the last fault; each dead waiter of Redisson's
/// costs its turn more.
void MixedQueueWorld::checkFree()
{
    const bool isAwaited = std::any_of(arrived_.begin(), arrived_.end(), [&](const Thread* t) {
        return t->isOurs && !t->wasSlow && trueMs() - t->lastAskedMs < placeMs;
    });
    keyspace_.beginScript(serverMs());
    if (!isAwaited || keyspace_.find(lockName, serverMs()) != nullptr) {
        mostFreeMs_ = placeMs + 2 * pollMs;
        return freeSinceMs_.reset();
    }
    if (!freeSinceMs_) {
        freeSinceMs_ = trueMs();
        mostFreeMs_ = placeMs + 2 * pollMs;
        for (const auto& thread : threads_) {
            if (thread->state == State::dead && !thread->isOurs && redissons_.time(thread->holder)) {
                mostFreeMs_ += longestTurnMs(thread->holder) + placeMs;
            }
        }
    }
    if (trueMs() - *freeSinceMs_ > mostFreeMs_) {
        throw Violation("T4 no lost wake-up",
                        fmt::format("the lock has been free for {} ms", trueMs() - *freeSinceMs_));
    }
}

/// All threads rest. The queue has no time to live if a dead waiter of Redisson's is queued, or if one was queued when
/// our last script ran.
void MixedQueueWorld::checkResidue()
{
    keyspace_.beginScript(serverMs());
    const bool isEndless = wasMixed_ || !timesOfRedissons().empty();
    const auto later = serverMs() + 1'000'000;
    for (const auto& [key, value] : keyspace_.keys()) {
        const bool isQueue = key == companion(0) || key == companion(1);
        if (keyspace_.find(key, later) != nullptr && !(isEndless && isQueue)) {
            throw Violation("R1 nothing is left", key + " is left");
        }
    }
}

} // namespace redislock::simulation
