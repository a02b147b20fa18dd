#include "runtime/counter/counter_flow.hpp"

#include "logic/call/event_of.hpp"

#include <utility>

namespace redislock::detail {

NamedCounter::Flow::Flow(NamedCounter& counter, CounterOrder order, AsyncWaiter* operation)
    : counter_(counter),
      engine_(*counter.engine),
      ending_{.order = std::move(order)},
      machine_(engine_.core_.settingsFor(ending_.order.wait, ending_.order.lease))
{
    waiter.permits = ending_.order.permits;
    waiter.operation = operation;
    if (engine_.closing_) {
        waiter.ended = Errc::shutdown; // too late to be told with the others
    }
    counter_.waiters_.join(waiter);
}

NamedCounter::Flow::~Flow()
{
    if (waiter.queued) { // out of memory half-way
        counter_.leave(waiter);
    }
    if (waiter.call && waiter.call->pending) {
        waiter.operation == nullptr ? engine_.leave(*waiter.call) : (void)withdraw();
    }
    ends();
}

// --- Stages ------------------------------------------------------------------------------------------------------------

WaitStep NamedCounter::Flow::look()
{
    switch (stage_) {
    case Stage::idle:
        return step(Start{BootClock::now()});
    case Stage::asking:
        return judgeAsking();
    case Stage::behindReleases:
        return judgeReleases();
    case Stage::sleeping:
        return judgeSleep();
    case Stage::done:
        break;
    }
    return {};
}

/// The client's end does not wait for a connection.
WaitStep NamedCounter::Flow::judgeAsking()
{
    if (waiter.ended && waiter.operation != nullptr && waiter.call->pending && engine_.withdraw(*waiter.call)) {
        return step(Failed{BootClock::now(), {Failure::fatal, *waiter.ended}});
    }
    return {.kind = WaitStep::Kind::awaitAnswer, .until = until_};
}

/// Asks again when nothing is being given back any more, if there is time to.
WaitStep NamedCounter::Flow::judgeReleases()
{
    stage_ = Stage::behindReleases;
    if (waiter.ended || BootClock::now() >= until_) {
        return step(*refusal_);
    }
    if (!counter_.releases_.underWay()) {
        return send();
    }
    return {.kind = WaitStep::Kind::sleep, .until = until_};
}

WaitStep NamedCounter::Flow::judgeSleep()
{
    stage_ = Stage::sleeping;
    const TimePoint now = BootClock::now();
    if (waiter.ended) {
        return step(Cancelled{now, *waiter.ended});
    }
    const bool mayBeFree = waiter.refusals.isOpen() && !counter_.releases_.underWay();
    if (std::exchange(waiter.notified, false) || mayBeFree) {
        return step(Notified{now});
    }
    if (now >= until_) {
        return step(TimerFired{now});
    }
    return {.kind = WaitStep::Kind::sleep, .until = until_};
}

/// Does what the machine asks for.
WaitStep NamedCounter::Flow::step(const Event& event)
{
    const auto action = machine_.resume(event, engine_.core_.random);
    if (const auto* done = std::get_if<Done<AcquireResult>>(&action)) {
        return finish(done->result);
    }
    if (const auto* ask = std::get_if<Send>(&action)) {
        until_ = ask->until;
        waiter.refusals.start();
        return send();
    }
    if (!machine_.mayBeHeld()) {
        ends(); // about to sleep: the client's end need not wait for it
    }
    counter_.refused(waiter);
    if (const auto* subscription = std::get_if<Subscribe>(&action)) {
        until_ = subscription->until;
        counter_.subscribe();
        waiter.notified = waiter.notified || counter_.confirmed_;
    } else {
        until_ = std::get<SleepUntil>(action).until;
    }
    return judgeSleep();
}

WaitStep NamedCounter::Flow::send()
{
    stage_ = Stage::asking;
    if (waiter.ended) {
        return step(Failed{BootClock::now(), {Failure::fatal, *waiter.ended}});
    }
    begins();
    const CounterOrder& order = ending_.order;
    const auto call = std::make_shared<ScriptCall>(*order.script, order.keys, order.arguments);
    call->hurried = order.wait.isOneAttempt();
    if (waiter.operation != nullptr) {
        call->mode = Call::Mode::detached;
        call->whenFinished = [operation = waiter.operation, asked = call.get()] { operation->answered(*asked); };
    }
    waiter.call = call;
    waiter.refusals.queued(counter_.releases_);
    if (!engine_.submit(waiter.operation == nullptr ? Lane::commands : Lane::background, call)) {
        return step(Failed{BootClock::now(), {Failure::fatal, Errc::shutdown}});
    }
    return {.kind = WaitStep::Kind::awaitAnswer, .until = until_};
}

WaitStep NamedCounter::Flow::answered(const Outcome& outcome)
{
    const auto event = eventOf(outcome);
    if (busyAnswer(event) == nullptr || !waiter.refusals.passesOver(counter_.releases_)) {
        return step(event);
    }
    refusal_ = event;
    return judgeReleases();
}

WaitStep NamedCounter::Flow::cancel()
{
    if (stage_ == Stage::done) {
        return {};
    }
    (void)withdraw();
    return stage_ == Stage::idle ? finish({.kind = AcquireResult::Kind::failed, .error = Errc::shutdown})
                                 : step(Cancelled{BootClock::now(), Errc::shutdown});
}

bool NamedCounter::Flow::withdraw()
{
    if (waiter.call == nullptr || !waiter.call->pending || engine_.withdraw(*waiter.call)) {
        return false;
    }
    waiter.call->mode = Call::Mode::abandoned;
    waiter.call->whenFinished = nullptr;
    return true;
}

WaitStep NamedCounter::Flow::finish(const AcquireResult& result) noexcept
{
    stage_ = Stage::done;
    ending_.result = result;
    ending_.outcome.granted = result.kind == AcquireResult::Kind::granted && !engine_.closing_;
    ending_.outcome.validUntil = result.validUntil;
    waiter.hinted = waiter.hinted && !ending_.outcome.granted;
    counter_.leave(waiter);
    return {};
}

NamedCounter::Ending NamedCounter::Flow::takeEnding() noexcept
{
    return std::move(ending_);
}

// --- What an answer means ----------------------------------------------------------------------------------------------

AcquireMachine::Event NamedCounter::Flow::eventOf(const Outcome& outcome)
{
    const TimePoint now = BootClock::now();
    const Reply& reply = waiter.call->reply;
    const auto answer = outcome.replied && !reply.isError() ? ending_.order.meaning(reply) : std::nullopt;
    if (answer) {
        return Replied<LockAnswer>{now, waiter.call->sentAt, *answer};
    }
    ending_.outcome.repeated = true;
    return Failed{now,
                  !outcome.replied  ? outcome.fault
                  : reply.isError() ? classify(reply.text)
                                    : Fault{Failure::fatal, Errc::badReply},
                  outcome.stood};
}

void NamedCounter::Flow::begins() noexcept
{
    if (ending_.order.undo && !std::exchange(underWay_, true)) {
        engine_.core_.begins();
    }
}

void NamedCounter::Flow::ends() noexcept
{
    if (std::exchange(underWay_, false)) {
        engine_.core_.ends();
    }
}

std::error_code NamedCounter::Ending::error() const noexcept
{
    using Kind = AcquireResult::Kind;
    if (outcome.granted || result.kind == Kind::contended) {
        return {};
    }
    return result.kind == Kind::granted ? Errc::shutdown : result.error;
}

void NamedCounter::conclude(const Ending& ending)
{
    const auto& [order, result, outcome] = ending;
    if (outcome.granted && !outcome.repeated) {
        settle({order.record});
    }
    if (ending.isOpen()) {
        const bool copies = result.kind != AcquireResult::Kind::granted || outcome.repeated;
        askUnawaited(order.undo(copies), copies ? std::string() : order.record);
    }
}

} // namespace redislock::detail
