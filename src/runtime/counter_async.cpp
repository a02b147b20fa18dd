#include "runtime/counter_async.hpp"

#include <boost/asio/error.hpp>

namespace redislock::detail {

NamedCounter::AsyncAttempt::AsyncAttempt(std::shared_ptr<NamedCounter> counter, CounterOrder order, End end)
    : attempt_(std::move(counter), std::move(order)),
      end_(std::move(end)),
      engine_(*attempt_.counter->engine),
      timer_(engine_.background_->io)
{
}

void NamedCounter::AsyncAttempt::begin()
{
    {
        const Lock lock(engine_.mutex_);
        attempt_.waiter.operation = this;
        attempt_.join();
    }
    if (cancelled_) {
        return finish({.kind = AcquireResult::Kind::failed, .error = Errc::shutdown});
    }
    step(Start{BootClock::now()});
}

/// Ends the operation as soon as it can be ended; what Redis may have granted is given back.
void NamedCounter::AsyncAttempt::cancel()
{
    if (stage_ == Stage::done) {
        return;
    }
    cancelled_ = true;
    if (stage_ != Stage::idle) {
        (void)withdraw();
        step(Cancelled{BootClock::now(), Errc::shutdown});
    }
}

void NamedCounter::AsyncAttempt::look() noexcept
{
    if (!std::exchange(looking_, true)) {
        engine_.post([self = shared_from_this()] {
            {
                const Lock lock(self->engine_.mutex_);
                self->looking_ = false;
            }
            self->judge();
        });
    }
}

/// Does what the machine asks for.
void NamedCounter::AsyncAttempt::step(const Event& event)
{
    const auto action = attempt_.resume(event, engine_.background_->random);
    if (const auto* done = std::get_if<Done<AcquireResult>>(&action)) {
        return finish(done->result);
    }
    if (const auto* next = std::get_if<Send>(&action)) {
        until_ = next->until;
        attempt_.waiter.refusals.start();
        return send();
    }
    if (!attempt_.machine.mayBeHeld()) {
        underway_.reset();
    }
    const auto* subscription = std::get_if<Subscribe>(&action);
    sleepUntil(subscription != nullptr ? subscription->until : std::get<SleepUntil>(action).until,
               subscription != nullptr);
}

void NamedCounter::AsyncAttempt::send()
{
    std::optional<Errc> ended;
    {
        const Lock lock(engine_.mutex_);
        ended = attempt_.waiter.ended;
        attempt_.waiter.refusals.queued(attempt_.counter->releases_);
        if (!ended && attempt_.order.undo && !underway_) {
            underway_.emplace(engine_);
        }
    }
    if (ended) {
        return step(Failed{BootClock::now(), {Failure::fatal, *ended}});
    }
    stage_ = Stage::asking;
    call_ = attempt_.call();
    call_->mode = Call::Mode::detached;
    call_->whenFinished = [weak = weak_from_this()] {
        if (const auto self = weak.lock()) {
            self->answered();
        }
    };
    wakeAt(until_);
    engine_.background_->renewals.enqueue(call_);
    engine_.background_->renewals.flush();
}

void NamedCounter::AsyncAttempt::answered()
{
    if (stage_ != Stage::asking) {
        return;
    }
    timer_.cancel();
    const auto event = attempt_.answered(*call_, call_->outcome, BootClock::now());
    bool passesOver = false;
    if (busyAnswer(event) != nullptr) {
        const Lock lock(engine_.mutex_);
        passesOver = attempt_.waiter.refusals.passesOver(attempt_.counter->releases_);
    }
    if (!passesOver) {
        return step(event);
    }
    refusal_ = event;
    stage_ = Stage::behindReleases;
    judgeReleases();
}

/// Asks again when nothing is being given back any more, if there is time to.
void NamedCounter::AsyncAttempt::judgeReleases()
{
    bool isOver = false;
    bool underWay = false;
    {
        const Lock lock(engine_.mutex_);
        isOver = attempt_.waiter.ended || BootClock::now() >= until_;
        underWay = attempt_.counter->releases_.underWay();
    }
    if (isOver) {
        return step(*refusal_);
    }
    underWay ? wakeAt(until_) : send();
}

void NamedCounter::AsyncAttempt::sleepUntil(TimePoint until, bool subscribes)
{
    stage_ = Stage::sleeping;
    until_ = until;
    {
        const Lock lock(engine_.mutex_);
        attempt_.counter->refused(attempt_.waiter);
        if (subscribes) {
            attempt_.counter->subscribe();
            attempt_.waiter.notified = attempt_.waiter.notified || attempt_.counter->confirmed_;
        }
    }
    judge();
}

/// The client's end does not wait for a connection.
void NamedCounter::AsyncAttempt::judgeAsking()
{
    std::optional<Errc> ended;
    {
        const Lock lock(engine_.mutex_);
        ended = attempt_.waiter.ended;
    }
    if (ended && call_->pending && engine_.background_->renewals.withdraw(*call_)) {
        timer_.cancel();
        step(Failed{BootClock::now(), {Failure::fatal, *ended}});
    }
}

/// Goes on if there is a reason to, otherwise sleeps on.
void NamedCounter::AsyncAttempt::judge()
{
    if (stage_ == Stage::asking) {
        return judgeAsking();
    }
    if (stage_ == Stage::behindReleases) {
        return judgeReleases();
    }
    if (stage_ != Stage::sleeping) {
        return;
    }
    const TimePoint now = BootClock::now();
    std::optional<Event> event;
    {
        const Lock lock(engine_.mutex_);
        CounterWaiter& waiter = attempt_.waiter;
        if (waiter.ended) {
            event = Cancelled{now, *waiter.ended};
        } else if (std::exchange(waiter.notified, false) ||
                   (waiter.refusals.isOpen() && !attempt_.counter->releases_.underWay())) {
            event = Notified{now};
        } else if (now >= until_) {
            event = TimerFired{now};
        }
    }
    event ? step(*event) : wakeAt(until_);
}

/// Nobody waits for the answer to the request under way any more. @return whether it may have been sent.
bool NamedCounter::AsyncAttempt::withdraw()
{
    if (stage_ != Stage::asking) {
        return false;
    }
    const bool sent = call_->pending && !engine_.background_->renewals.withdraw(*call_);
    call_->whenFinished = nullptr;
    return sent;
}

void NamedCounter::AsyncAttempt::timeOver()
{
    if (stage_ != Stage::asking) {
        return judge();
    }
    if (BootClock::now() < until_) {
        return wakeAt(until_); // the timer of the stage before went off together with its end
    }
    const Fault fault = engine_.background_->renewals.overdue(withdraw());
    attempt_.outcome.repeated = true;
    step(Failed{BootClock::now(), fault});
}

void NamedCounter::AsyncAttempt::wakeAt(TimePoint when)
{
    timer_.expires_after(when - BootClock::now());
    timer_.async_wait([self = shared_from_this()](boost::system::error_code ec) {
        if (!ec && self->stage_ != Stage::done) {
            self->timeOver();
        }
    });
}

void NamedCounter::AsyncAttempt::finish(const AcquireResult& result)
{
    const auto self = shared_from_this();
    stage_ = Stage::done;
    timer_.cancel();
    const auto error = attempt_.conclude(result);
    underway_.reset();
    boost::system::error_code ec = error;
    if (error && cancelled_) {
        ec = boost::asio::error::operation_aborted;
    }
    std::exchange(end_, nullptr)(ec, attempt_.outcome);
}

} // namespace redislock::detail
