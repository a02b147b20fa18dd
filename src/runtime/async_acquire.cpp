#include "runtime/async_acquire.hpp"

#include "redislock/lock_guard.hpp"
#include "runtime/policy.hpp"

#include <boost/asio/error.hpp>

#include <algorithm>
#include <utility>

namespace redislock::detail {

Engine::AsyncAcquire::AsyncAcquire(Engine& engine, std::shared_ptr<NamedLock> named, AcquireOrder order,
                                   Completion<LockGuard> completion)
    : engine_(engine),
      named_(std::move(named)),
      order_(std::move(order)),
      completion_(std::move(completion)),
      timer_(engine.background_->io)
{
}

Engine::AsyncAcquire::~AsyncAcquire() = default;

void Engine::AsyncAcquire::cancelWhenToldTo()
{
    completion_.onCancellation([weak = weak_from_this()] {
        if (const auto self = weak.lock()) {
            self->engine_.post([self] { self->cancel(); });
        }
    });
}

/// Joins the queue. Background thread.
void Engine::AsyncAcquire::begin()
{
    const Lock lock(engine_.mutex_);
    hold_ = engine_.takeHold(*named_);
    hold_->owner = 0;
    hold_->lane = Lane::background;
    attempt_.emplace(engine_, *named_, hold_, order_);
    attempt_->waiter.operation = this;
    attempt_->waiter.call->asker = this;
    attempt_->level = hold_->levels.add(order_.lease, order_.endedBy);
    engine_.acquiring_.insert(shared_from_this());
    if (cancelled_) {
        return finish({.kind = AcquireResult::Kind::failed, .error = Errc::shutdown});
    }
    judgeTurn();
}

/// Ends the operation as soon as it can be ended; what Redis may have granted is given back. Background thread.
void Engine::AsyncAcquire::cancel()
{
    const Lock lock(engine_.mutex_);
    cancelled_ = true;
    if (stage_ == Stage::done || !attempt_) {
        return;
    }
    if (attempt_->waiter.submitted) {
        judge(); // its request is under way, though it did not send it itself
        if (stage_ == Stage::done) {
            return;
        }
    }
    (void)withdraw();
    if (!machine_) {
        return finish({.kind = AcquireResult::Kind::failed, .error = Errc::shutdown});
    }
    step(Cancelled{BootClock::now(), Errc::shutdown});
}

void Engine::AsyncAcquire::look() noexcept
{
    if (!std::exchange(looking_, true)) {
        engine_.post([self = shared_from_this()] {
            const Lock lock(self->engine_.mutex_);
            self->looking_ = false;
            self->judge();
        });
    }
}

void Engine::AsyncAcquire::judge()
{
    switch (stage_) {
    case Stage::awaitingTurn:
        return judgeTurn();
    case Stage::behindReleases:
        return judgeReleases();
    case Stage::sleeping:
        return judgeSleep();
    case Stage::asking:
        return judgeAsking();
    case Stage::choosing:
    case Stage::done:
        return;
    }
}

/// Goes on when this waiter is the first and no hold of this client keeps it from asking.
void Engine::AsyncAcquire::judgeTurn()
{
    stage_ = Stage::awaitingTurn;
    Waiter& waiter = attempt_->waiter;
    const TimePoint now = BootClock::now();
    if (waiter.ended && !waiter.submitted) {
        return machine_ ? step(Failed{now, {Failure::fatal, *waiter.ended}}) // and was not sent
                        : finish({.kind = AcquireResult::Kind::failed, .error = *waiter.ended});
    }
    const bool first = named_->waiters.head() == &waiter;
    const TimePoint heldUntil = named_->local.validUntil();
    const bool alone = attempt_->asksForItself || named_->traits().asking != Asking::first;
    if (alone || waiter.submitted || (first && now >= heldUntil)) {
        waiter.parked = false;
        if (machine_) {
            return send();
        }
        machine_.emplace(engine_.settingsOf(*attempt_, now));
        return step(Start{now});
    }
    if (now >= attempt_->deadline) {
        const auto over =
            machine_ ? std::get<Done<AcquireResult>>(machine_->resume(Cancelled{now, Errc::shutdown}, engine_.random_))
                           .result
                     : AcquireResult{};
        return finish(withoutTurn(*named_, waiter, over));
    }
    waiter.parked = true;
    wakeAt(first ? std::min(attempt_->deadline, heldUntil) : attempt_->deadline);
}

/// The client's end does not wait for a connection.
void Engine::AsyncAcquire::judgeAsking()
{
    const Waiter& waiter = attempt_->waiter;
    if (waiter.ended && waiter.call->pending && engine_.withdraw(*waiter.call)) {
        timer_.cancel();
        step(Failed{BootClock::now(), {Failure::fatal, *waiter.ended}});
    }
}

void Engine::AsyncAcquire::judgeSleep()
{
    stage_ = Stage::sleeping;
    Waiter& waiter = attempt_->waiter;
    const TimePoint now = BootClock::now();
    waiter.parked = false;
    const bool watches = waiter.refusals.isOpen();
    watchReleases(watches);
    if (waiter.submitted) {
        return step(Notified{now});
    }
    if (waiter.ended) {
        return step(Cancelled{now, *waiter.ended});
    }
    if (std::exchange(waiter.notified, false) || (watches && !named_->releases.underWay())) {
        return step(Notified{now});
    }
    if (now >= until_) {
        return step(TimerFired{now});
    }
    waiter.parked = true;
    wakeAt(until_);
}

void Engine::AsyncAcquire::judgeReleases()
{
    stage_ = Stage::behindReleases;
    Waiter& waiter = attempt_->waiter;
    waiter.parked = false;
    if (waiter.submitted) {
        return send();
    }
    if (waiter.ended || BootClock::now() >= until_) {
        return step(*refusal_);
    }
    if (!named_->releases.underWay()) {
        return send();
    }
    watchReleases(true);
    waiter.parked = true;
    wakeAt(until_);
}

/// Whether the end of the last release under way has it judge again.
void Engine::AsyncAcquire::watchReleases(bool watches) noexcept
{
    if (std::exchange(watchesReleases_, watches) != watches) {
        watches ? ++named_->releaseWatchers : --named_->releaseWatchers;
    }
}

/// Does what the machine asks for.
void Engine::AsyncAcquire::step(const Event& event)
{
    const auto action = machine_->resume(event, engine_.random_);
    if (const auto* done = std::get_if<Done<AcquireResult>>(&action)) {
        return finish(engine_.noteSilence(*named_, *machine_, done->result));
    }
    if (const auto* send = std::get_if<Send>(&action)) {
        until_ = send->until;
        attempt_->waiter.refusals.start();
        return judgeTurn();
    }
    engine_.settle(*attempt_, *machine_);
    if (const auto* subscription = std::get_if<Subscribe>(&action)) {
        engine_.subscribe(*named_, attempt_->waiter);
        until_ = subscription->until;
    } else if (const auto* policy = std::get_if<AskPolicy>(&action)) {
        stage_ = Stage::choosing;
        return engine_.post([self = shared_from_this(), refusals = policy->attempt] { self->askPolicy(refusals); });
    } else {
        until_ = std::get<SleepUntil>(action).until;
    }
    judgeSleep();
}

/// Asks the policy. Background thread, without the mutex.
void Engine::AsyncAcquire::askPolicy(std::uint32_t refusals)
{
    const auto answer = pauseOf(*order_.retry, refusals, engine_.background_->random);
    const Lock lock(engine_.mutex_);
    if (stage_ == Stage::choosing) { // not cancelled meanwhile
        std::visit([this](const auto& event) { step(event); }, answer);
    }
}

/// Sends the acquire, unless somebody did already.
void Engine::AsyncAcquire::send()
{
    stage_ = Stage::asking;
    watchReleases(false);
    Waiter& waiter = attempt_->waiter;
    engine_.begins(waiter);
    if (!std::exchange(waiter.submitted, false)) {
        waiter.call->prepare(HoldCall::Verb::lock, waiter.lease, 1, Call::Mode::detached);
        waiter.refusals.queued(named_->releases);
        if (!engine_.submit(waiter.call)) {
            return step(Failed{BootClock::now(), {Failure::fatal, Errc::shutdown}});
        }
    }
    wakeAt(until_);
}

void Engine::AsyncAcquire::answered(HoldCall& call)
{
    const auto self = shared_from_this();
    const Lock lock(engine_.mutex_);
    if (attempt_ && attempt_->waiter.submitted && call.mode != Call::Mode::abandoned) {
        judge(); // the answer to a request that somebody else queued may come before look()
    }
    if (stage_ != Stage::asking || call.mode == Call::Mode::abandoned) {
        return;
    }
    timer_.cancel();
    const auto event = lockEventOf(call, call.outcome, BootClock::now());
    noteAnswer(*named_, attempt_->waiter, event);
    const LockAnswer* busy = busyAnswer(event);
    if (busy != nullptr && !busy->timeToLive) {
        engine_.tellOf(*hold_, [](Observer& observer, const LockEvent& e) { observer.keyWithoutTtl(e); });
    }
    if (busy == nullptr || !attempt_->waiter.refusals.passesOver(named_->releases)) {
        return step(event);
    }
    refusal_ = event;
    judgeReleases();
}

/// Nobody waits for the answer to the request under way any more. @return whether it may have been sent.
bool Engine::AsyncAcquire::withdraw()
{
    HoldCall& call = *attempt_->waiter.call;
    if (!call.pending || engine_.withdraw(call)) {
        return false;
    }
    call.mode = Call::Mode::abandoned;
    return true;
}

void Engine::AsyncAcquire::timeOver()
{
    if (stage_ != Stage::asking) {
        return judge();
    }
    if (BootClock::now() < until_) {
        return wakeAt(until_); // the timer of the stage before went off together with its end
    }
    const bool sent = withdraw();
    step(Failed{BootClock::now(), engine_.background_->renewals.overdue(sent)});
}

void Engine::AsyncAcquire::wakeAt(TimePoint when)
{
    if (when == TimePoint::max()) {
        return;
    }
    timer_.expires_after(when - BootClock::now());
    timer_.async_wait([self = shared_from_this()](boost::system::error_code ec) {
        if (ec) {
            return;
        }
        const Lock lock(self->engine_.mutex_);
        if (self->stage_ != Stage::done) {
            self->timeOver();
        }
    });
}

void Engine::AsyncAcquire::finish(const AcquireResult& result)
{
    stage_ = Stage::done;
    timer_.cancel();
    watchReleases(false);
    attempt_->waiter.call->asker = nullptr;
    Acquired acquired;
    std::error_code error = engine_.conclude(*named_, *attempt_, result, acquired);
    attempt_.reset();
    boost::system::error_code ec = error;
    if (error && cancelled_) {
        ec = boost::asio::error::operation_aborted;
    }
    std::shared_ptr<NamedLock> rest;
    if (acquired.hold == nullptr) {
        rest = engine_.recycle(std::move(hold_));
    }
    // told, and let go of, outside the mutex
    engine_.post([self = shared_from_this(), rest = std::move(rest), ec,
                  guard = std::make_shared<LockGuard>(LockGuard(std::move(acquired)))]() mutable {
        self->completion_(ec, std::move(*guard));
    });
    engine_.acquiring_.erase(shared_from_this());
}

} // namespace redislock::detail
