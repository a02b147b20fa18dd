#include "simulation/counter_actor.hpp"

#include "core/counter/counter_requests.hpp"
#include "core/counter/permit_requests.hpp"
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
      longHold(oneOf(chance, {0.02, 0.05, 0.15})),
      calledOff(oneOf(chance, {0.0, 0.1, 0.4}))
{
    using enum CounterKind;
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

CounterActor::CounterActor(const World& world, SimClient& client, const CounterWorkload& workload, std::uint64_t number,
                           std::uint64_t seed)
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

void CounterActor::begin(std::unique_ptr<ThreadCall> operation, std::function<void()> then)
{
    thread_.run(std::move(operation), [this, then = std::move(then)] {
        ++world_.statistics.operations;
        waiting_ = nullptr;
        then();
        thread_.forget();
        pause(held_.empty() || chance_.unit() > workload_.longHold
                  ? around(held_.empty() ? workload_.meanThink : workload_.meanHold)
                  : around(std::chrono::seconds(10)));
    });
}

/// @param then is called with the result of an answered call.
template <class Result>
void CounterActor::ask(detail::CounterRequest<Result> request, std::function<void(const Result&)> then)
{
    if (request.refused) { // its client has ended
        return pause(around(workload_.meanThink));
    }
    auto operation = std::make_unique<CounterQuestion<Result>>(client_, counter_, std::move(request));
    begin(std::move(operation), [this, then = std::move(then)] {
        const auto& asked = static_cast<const CounterQuestion<Result>&>(*thread_.call());
        if (!asked.ended() && then) {
            then(asked.result());
        }
    });
}

void CounterActor::await(detail::CounterOrder order, std::function<void(const CounterWait&)> granted)
{
    auto operation = std::make_unique<CounterWait>(client_, counter_, std::move(order));
    waiting_ = operation.get();
    ++waits_;
    if (chance_.unit() < workload_.calledOff) {
        callOffSoon();
    }
    begin(std::move(operation), [this, granted = std::move(granted)] {
        if (const auto& wait = static_cast<const CounterWait&>(*thread_.call()); wait.end().granted) {
            granted(wait);
        }
    });
}

/// The wait may then be connecting, asking or sleeping, or it may have ended.
void CounterActor::callOffSoon()
{
    const auto after = chance_.unit() < 0.5 ? around(std::chrono::milliseconds(2)) : around(workload_.meanHold * 4);
    thread_.sleep(after, [this, number = waits_] {
        if (number == waits_ && waiting_ != nullptr) {
            world_.trace(client_.host().name(), "thread {} calls off", number_);
            waiting_->callOff();
        }
    });
}

std::string CounterActor::waitName() const
{
    return fmt::format("{}:{}.{}", client_.host().name(), number_, waits_);
}

void CounterActor::stop()
{
    stopping_ = true;
    if (waiting_ != nullptr) {
        waiting_->cancel();
    }
}

// --- Actions ---------------------------------------------------------------------------------------------------------

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

Lease CounterActor::drawLease()
{
    return chance_.unit() < workload_.nonExpiring
               ? nonExpiring
               : Lease(std::chrono::milliseconds(oneOf(chance_, {20, 100, 500, 2000, 10000})));
}

void CounterActor::use()
{
    const auto& subjects = workload_.subjects;
    const auto& subject = subjects[static_cast<std::size_t>(chance_.unit() * static_cast<double>(subjects.size()))];
    counter_ = client_.counter(subject.kind, subject.name());
    if (chance_.unit() < workload_.question) {
        return ask<std::int64_t>(counter_->kind == CounterKind::permitExpirableSemaphore
                                     ? detail::countRequest(*counter_, 1, 0)
                                     : detail::getRequest(*counter_),
                                 nullptr);
    }
    if (subject.kind == CounterKind::countDownLatch) {
        return useLatch(subject.size);
    }
    if (!made_.contains(counter_.get())) {
        return make(subject.size);
    }
    subject.kind == CounterKind::semaphore ? useSemaphore(subject.size) : usePermits();
}

void CounterActor::make(std::int64_t size)
{
    const bool isLatch = counter_->kind == CounterKind::countDownLatch;
    ask<bool>(isLatch ? detail::newCountRequest(*counter_, size)
                      : detail::trySetRequest(*counter_, size, std::chrono::milliseconds::zero(), size),
              [this](bool) { made_.insert(counter_.get()); });
}

void CounterActor::useSemaphore(std::int64_t size)
{
    if (chance_.unit() < 0.05) {
        return ask<std::int64_t>(detail::drainRequest(*counter_), [this](std::int64_t permits) {
            if (permits > 0) {
                hold({counter_, nextGrant(), permits});
            }
        });
    }
    const auto permits = 1 + static_cast<std::int64_t>(chance_.unit() * static_cast<double>(size));
    await(detail::permitsOrder(*counter_, permits, drawWait()), [this, permits](const CounterWait&) {
        hold({counter_, nextGrant(), permits});
    });
}

void CounterActor::usePermits()
{
    const auto own = std::ranges::find_if(held_, [&](const Held& held) { return held.counter == counter_; });
    if (own != held_.end() && chance_.unit() < 0.5) {
        return changeLease(*own);
    }
    const auto id = permitId(client_.host().name(), client_.nextRequest());
    const Lease lease = drawLease();
    await(detail::permitOrder(*counter_, hexOf(id), drawWait(), lease), [this, id, lease](const CounterWait& wait) {
        hold({counter_, id, 1, detail::grantedPermit(*counter_, hexOf(id), lease, wait.end())});
    });
}

void CounterActor::changeLease(const Held& held)
{
    auto request = detail::updateRequest(*counter_, hexOf(held.who), drawLease());
    believe(held); // from here on it may have either lease
    ask<bool>(std::move(request), [this, who = held.who](bool isKnown) {
        const auto own = std::ranges::find_if(held_, [&](const Held& each) { return each.who == who; });
        isKnown ? believe(*own) : forget(*own);
    });
}

void CounterActor::useLatch(std::int64_t size)
{
    const double choice = chance_.unit();
    if (choice < 0.15) {
        return make(size);
    }
    if (choice < 0.6) {
        world_.latches.counts(counter_->name);
        return ask<std::int64_t>(detail::countDownRequest(*counter_),
                                 [this](std::int64_t) { world_.latches.counted(counter_->name); });
    }
    await(detail::waitOrder(*counter_, drawWait()), [this](const CounterWait& wait) {
        world_.latches.passed(counter_->name, client_.host().trueTime(wait.began()));
    });
}

void CounterActor::giveBack()
{
    const auto index = static_cast<std::size_t>(chance_.unit() * static_cast<double>(held_.size()));
    const Held held = held_[index];
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(index));
    forget(held);
    counter_ = held.counter;
    if (held.hold == nullptr) {
        return ask<bool>(detail::releaseRequest(*counter_, held.permits, detail::AddTo::anyCounter), nullptr);
    }
    auto release = detail::permitRelease(*held.hold);
    if (chance_.unit() < 0.3) { // as the end of its guard
        counter_->askUnawaited(std::move(release.call));
        ++world_.statistics.operations;
        return pause(around(workload_.meanThink));
    }
    ask<Unlocked>(std::move(release), nullptr);
}

// --- Possessions -----------------------------------------------------------------------------------------------------

std::string CounterActor::nextGrant()
{
    return fmt::format("{}:{}.{}", client_.host().name(), number_, ++grants_);
}

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
    const auto until = held.hold != nullptr ? held.hold->validUntil() : TimePoint::max();
    world_.permits.believes(held.counter->name, held.who, held.permits, world_.scheduler.now(),
                            client_.host().trueTime(until));
}

void CounterActor::forget(const Held& held)
{
    world_.permits.ends(held.counter->name, held.who);
}

} // namespace redislock::simulation
