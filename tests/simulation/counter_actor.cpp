#include "simulation/counter_actor.hpp"

#include "redislock/detail/logic/lease.hpp"
#include "simulation/one_of.hpp"
#include "simulation/safety_checker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace redislock::simulation {

namespace {

constexpr std::size_t mostHeld = 3;

} // namespace

std::string CounterWorkload::Subject::name() const
{
    return fmt::format("{}:{}", stem, generation);
}

CounterWorkload::CounterWorkload(Random& chance)
    : meanThink(oneOf(chance, {1, 5, 30, 200})),
      meanHold(oneOf(chance, {1, 5, 20, 80})),
      question(oneOf(chance, {0.02, 0.05, 0.2})),
      nonExpiring(oneOf(chance, {0.0, 0.1, 0.5})),
      longHold(oneOf(chance, {0.02, 0.05, 0.15}))
{
    using enum Counter::Kind;
    const auto semaphores = oneOf(chance, {0U, 1U, 1U, 2U});
    const auto leased = oneOf(chance, {0U, 1U, 1U, 2U});
    const auto latches = oneOf(chance, {0U, 1U, 1U, 2U});
    for (std::size_t i = 0; i < semaphores; ++i) {
        subjects.push_back({semaphore, oneOf(chance, {1, 2, 3, 5}), fmt::format("tickets{}", i)});
    }
    for (std::size_t i = 0; i < leased; ++i) {
        subjects.push_back({permitExpirableSemaphore, oneOf(chance, {1, 2, 3, 5}), fmt::format("rooms{}", i)});
    }
    for (std::size_t i = 0; i < latches || subjects.empty(); ++i) {
        subjects.push_back({countDownLatch, oneOf(chance, {1, 2, 5, 20}), fmt::format("gate{}", i)});
    }
}

CounterActor::CounterActor(const World& world, CounterClient& client, const CounterWorkload& workload,
                           std::uint64_t number, std::uint64_t seed)
    : world_(world), client_(client), workload_(workload), number_(number), chance_(seed), thread_(client.host())
{
    pause(around(workload_.meanThink));
}

/// A process that is gone believes nothing.
CounterActor::~CounterActor()
{
    for (const auto& held : held_) {
        forget(held);
    }
}

std::chrono::nanoseconds CounterActor::around(std::chrono::milliseconds mean)
{
    return std::chrono::nanoseconds(
        1 + static_cast<std::int64_t>(static_cast<double>(mean.count()) * 2e6 * chance_.unit()));
}

// --- Calls -----------------------------------------------------------------------------------------------------------

void CounterActor::pause(std::chrono::nanoseconds span)
{
    thread_.sleep(span, [this] { decide(); });
}

void CounterActor::begin(std::unique_ptr<Awaiting> operation, Next next)
{
    thread_.run(std::move(operation), [this, next] {
        ++world_.statistics.operations;
        waiting_ = nullptr;
        (this->*next)();
        thread_.forget();
        pause(held_.empty() || chance_.unit() > workload_.longHold
                  ? around(held_.empty() ? workload_.meanThink : workload_.meanHold)
                  : around(std::chrono::seconds(10)));
    });
}

void CounterActor::ask(const CounterScript& script, Next next)
{
    begin(std::make_unique<CounterQuestion>(client_, *counter_, script), next);
}

void CounterActor::askRecorded(const RecordedScript& script, Next next, std::optional<CounterScript> afterwards,
                               Situation asking)
{
    begin(std::make_unique<CounterQuestion>(client_, *counter_, script.script, script.record, std::move(afterwards),
                                            asking),
          next);
}

void CounterActor::await(CounterOrder order, Next next)
{
    auto operation = std::make_unique<CounterWait>(client_, *counter_, std::move(order));
    waiting_ = operation.get();
    begin(std::move(operation), next);
}

void CounterActor::stop()
{
    stopping_ = true;
    if (waiting_ != nullptr) {
        waiting_->cancel();
    }
}

// --- What it does ----------------------------------------------------------------------------------------------------

void CounterActor::decide()
{
    if (!held_.empty() && (stopping_ || held_.size() == mostHeld || chance_.unit() < 0.6)) {
        return giveBack();
    }
    if (!stopping_) {
        use();
    }
}

Wait CounterActor::drawWait()
{
    const double choice = chance_.unit();
    if (choice < 0.2) {
        return Wait(std::chrono::milliseconds(0));
    }
    if (choice < 0.4 && held_.empty()) {
        return waitForever;
    }
    return std::chrono::milliseconds(static_cast<int>(1 + chance_.unit() * 3000));
}

PermitLease CounterActor::drawLease()
{
    return chance_.unit() < workload_.nonExpiring
               ? PermitLease()
               : std::chrono::milliseconds(oneOf(chance_, {20, 100, 500, 2000, 10000}));
}

void CounterActor::use()
{
    const auto& subjects = workload_.subjects;
    const auto& subject = subjects[static_cast<std::size_t>(chance_.unit() * static_cast<double>(subjects.size()))];
    counter_ = &client_.counter(subject.kind, subject.name());
    if (chance_.unit() < workload_.question) {
        return ask(counter_->kind == Counter::Kind::permitExpirableSemaphore ? countPermits(*counter_) : get(),
                   &CounterActor::asked);
    }
    if (subject.kind == Counter::Kind::countDownLatch) {
        return useLatch(subject.size);
    }
    if (!made_.contains(counter_)) {
        return askRecorded(trySet(client_, *counter_, subject.size), &CounterActor::made);
    }
    subject.kind == Counter::Kind::semaphore ? useSemaphore(subject.size) : usePermits();
}

void CounterActor::useSemaphore(std::int64_t size)
{
    if (chance_.unit() < 0.05) {
        const auto drain = drainPermits(client_, *counter_);
        return askRecorded(drain, &CounterActor::drained, withdrawal(client_, *counter_, drain.record));
    }
    permits_ = 1 + static_cast<std::int64_t>(chance_.unit() * static_cast<double>(size));
    await(acquirePermits(client_, *counter_, permits_, drawWait()), &CounterActor::acquired);
}

void CounterActor::usePermits()
{
    const auto own = std::ranges::find_if(held_, [&](const Held& held) { return held.counter == counter_; });
    if (own != held_.end() && chance_.unit() < 0.5) {
        return changeLease(*own);
    }
    id_ = client_.newPermitId();
    lease_ = drawLease();
    await(acquirePermit(client_, *counter_, id_, drawWait(), lease_), &CounterActor::permitAcquired);
}

void CounterActor::changeLease(Held& held)
{
    lease_ = drawLease();
    id_ = held.who;
    held.until = std::min(held.until, validUntil(lease_, client_.host().now())); // from here on it may be either
    believe(held);
    const auto keep = keepFor(held.open++);
    ask(simulation::changeLease(*counter_, id_, lease_, ++held.changes, keep), &CounterActor::leaseChanged);
}

/// How long copies of requests for a permit may still arrive.
std::string CounterActor::keepFor(std::uint32_t open) const
{
    return open > 0 ? client_.recordTime() : "0";
}

void CounterActor::useLatch(std::int64_t size)
{
    const double choice = chance_.unit();
    if (choice < 0.15) {
        return askRecorded(trySet(client_, *counter_, size), &CounterActor::made);
    }
    if (choice < 0.6) {
        const auto request = countDown(client_, *counter_);
        world_.latches.counts(counter_->name);
        return askRecorded(request, &CounterActor::countedDown, request.script, Situation::releaseAsking);
    }
    await(waitForLatch(drawWait()), &CounterActor::passed);
}

void CounterActor::giveBack()
{
    const auto index = static_cast<std::size_t>(chance_.unit() * static_cast<double>(held_.size()));
    const Held held = held_[index];
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(index));
    forget(held);
    counter_ = held.counter;
    if (counter_->kind == Counter::Kind::semaphore) {
        const auto request = releasePermits(client_, *counter_, held.permits);
        return askRecorded(request, &CounterActor::released, request.script, Situation::releaseAsking);
    }
    const auto release = releasePermit(*counter_, held.who, keepFor(held.open));
    if (chance_.unit() < 0.3) { // its guard ends
        client_.askUnawaited(*counter_, release);
        ++world_.statistics.operations;
        return pause(around(workload_.meanThink));
    }
    askRecorded({release, {}}, &CounterActor::released, release, Situation::releaseAsking);
}

// --- What comes of it ------------------------------------------------------------------------------------------------

void CounterActor::hold(Held held)
{
    ++world_.statistics.grants;
    world_.trace(client_.host().name(), "thread {} has {} of {} as {}", number_, held.permits, held.counter->name,
                 held.who);
    believe(held);
    held_.push_back(std::move(held));
}

void CounterActor::believe(const Held& held)
{
    world_.permits.believes(held.counter->name, held.who, held.permits, world_.scheduler.now(),
                            client_.host().trueTime(held.until));
}

void CounterActor::forget(const Held& held)
{
    world_.permits.ends(held.counter->name, held.who);
}

void CounterActor::made()
{
    if (!question().error()) {
        made_.insert(counter_);
    }
}

void CounterActor::acquired()
{
    if (wait().granted()) {
        hold({counter_, fmt::format("{}:{}.{}", client_.host().name(), number_, ++grants_), permits_});
    }
}

void CounterActor::permitAcquired()
{
    if (wait().granted()) {
        hold(
            {counter_, id_, 1, lease_ ? wait().result().validUntil : TimePoint::max(), 0, wait().repeated() ? 1U : 0U});
    }
}

void CounterActor::drained()
{
    if (!question().error() && question().reply().integer > 0) {
        hold(
            {counter_, fmt::format("{}:{}.{}", client_.host().name(), number_, ++grants_), question().reply().integer});
    }
}

void CounterActor::leaseChanged()
{
    const auto own = std::ranges::find_if(held_, [&](const Held& held) { return held.who == id_; });
    if (own == held_.end() || question().error()) {
        return;
    }
    const bool known = question().reply().kind != Reply::Kind::nil;
    own->open -= question().repeated() ? 0 : 1;
    const auto left = question().reply().integer;
    own->until = known ? validUntil(left < 0 ? PermitLease() : std::chrono::milliseconds(left), question().sentAt())
                       : TimePoint{};
    known ? believe(*own) : forget(*own);
}

void CounterActor::countedDown()
{
    if (!question().error()) {
        world_.latches.counted(counter_->name);
    }
}

void CounterActor::passed()
{
    if (wait().granted()) {
        world_.latches.passed(counter_->name, client_.host().trueTime(wait().began()));
    }
}

void CounterActor::released() {}

void CounterActor::asked() {}

} // namespace redislock::simulation
