#include "runtime/async_acquire.hpp"

#include "redislock/lock_guard.hpp"
#include "runtime/event_of.hpp"

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
    if (engine_.closing_) {
        attempt_->waiter.ended = Errc::shutdown; // too late to be told with the others
    }
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
    leaveReleases();
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
    if (waiter.ended) {
        return machine_ ? step(Cancelled{now, *waiter.ended})
                        : finish({.kind = AcquireResult::Kind::failed, .error = *waiter.ended});
    }
    const bool first = named_->waiters.head() == &waiter;
    const TimePoint heldUntil = named_->local.validUntil();
    const bool alone = attempt_->isOneAttempt || named_->traits().asking != Asking::first;
    if (alone || waiter.submitted || (first && now >= heldUntil)) {
        waiter.parked = false;
        if (machine_) {
            return send();
        }
        machine_.emplace(engine_.settingsOf(*attempt_, now));
        return step(Start{now});
    }
    if (now >= attempt_->deadline) {
        auto over =
            machine_ ? std::get<Done<AcquireResult>>(machine_->resume(Cancelled{now, Errc::shutdown}, engine_.random_))
                           .result
                     : AcquireResult{};
        over.kind = AcquireResult::Kind::contended;
        return finish(over);
    }
    waiter.parked = true;
    wakeAt(first ? std::min(attempt_->deadline, heldUntil) : attempt_->deadline);
}

void Engine::AsyncAcquire::judgeSleep()
{
    stage_ = Stage::sleeping;
    Waiter& waiter = attempt_->waiter;
    const TimePoint now = BootClock::now();
    waiter.parked = false;
    if (waiter.submitted) {
        return step(Notified{now});
    }
    if (waiter.ended) {
        return step(Cancelled{now, *waiter.ended});
    }
    if (std::exchange(waiter.notified, false)) {
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
    const Waiter& waiter = attempt_->waiter;
    if (named_->unansweredReleases > 0 && !waiter.submitted && !waiter.ended && BootClock::now() < until_) {
        return wakeAt(until_);
    }
    leaveReleases();
    if (!waiter.submitted && (named_->unansweredReleases > 0 || waiter.ended)) {
        return step(*std::exchange(refusal_, std::nullopt));
    }
    send();
}

void Engine::AsyncAcquire::leaveReleases() noexcept
{
    if (stage_ == Stage::behindReleases) {
        --named_->releaseWatchers;
        attempt_->waiter.parked = false;
        stage_ = Stage::asking;
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
        tries_ = 0;
        return judgeTurn();
    }
    if (const auto* subscription = std::get_if<Subscribe>(&action)) {
        engine_.subscribe(*named_, attempt_->waiter);
        until_ = subscription->until;
    } else {
        until_ = std::get<SleepUntil>(action).until;
    }
    judgeSleep();
}

/// Sends the acquire, unless somebody did already.
void Engine::AsyncAcquire::send()
{
    stage_ = Stage::asking;
    ++tries_;
    HoldCall& call = *attempt_->waiter.call;
    if (!std::exchange(attempt_->waiter.submitted, false)) {
        call.prepare(HoldCall::Verb::lock, attempt_->waiter.lease, 1, Call::Mode::detached);
        if (!engine_.submit(attempt_->waiter.call)) {
            return step(Failed{BootClock::now(), {Failure::fatal, Errc::shutdown}});
        }
    }
    wakeAt(until_);
}

void Engine::AsyncAcquire::answered(HoldCall& call)
{
    constexpr int triesBehindReleases = 3;
    const auto self = shared_from_this();
    const Lock lock(engine_.mutex_);
    if (attempt_ && attempt_->waiter.submitted && call.mode != Call::Mode::abandoned) {
        judge(); // the answer to a request that somebody else queued may come before look()
    }
    if (stage_ != Stage::asking || call.mode == Call::Mode::abandoned) {
        return;
    }
    timer_.cancel();
    const auto event = eventOf<Event, LockAnswer>(call, call.outcome, BootClock::now());
    const LockAnswer* busy = busyAnswer(event);
    if (busy != nullptr && !busy->timeToLive) {
        engine_.tellOf(*hold_, [](Observer& observer, const LockEvent& e) { observer.keyWithoutTtl(e); });
    }
    if (busy == nullptr || named_->unansweredReleases == 0 || tries_ >= triesBehindReleases) {
        return step(event);
    }
    refusal_ = event;
    stage_ = Stage::behindReleases;
    attempt_->waiter.parked = true;
    ++named_->releaseWatchers;
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
    step(Failed{BootClock::now(), {sent ? Failure::lostReply : Failure::notConnected, Errc::unreachable}});
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
