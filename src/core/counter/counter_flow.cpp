#include "core/counter/counter_flow.hpp"

#include "link/request/calls.hpp"

#include <algorithm>
#include <utility>

namespace redislock::detail {

CounterFlow::CounterFlow(NamedCounter& counter, CounterOrder order, BackgroundRun* run)
    : Operation(counter.core, run),
      counter_(counter),
      ending_{.order = std::move(order)},
      machine_(core_.settingsFor(ending_.order.wait, ending_.order.lease))
{
    ending_.began = core_.port.now();
    waiter.permits = ending_.order.permits;
    waiter.run = run;
    waiter.port = counter.port.get();
    if (core_.isClosing()) {
        waiter.ended = Errc::shutdown; // too late to be ended with the other waiters
    }
    counter_.join(waiter);
}

CounterFlow::~CounterFlow()
{
    if (waiter.queued) { // out of memory half-way
        counter_.leave(waiter);
    }
    if (waiter.call != nullptr) {
        (void)takesBack();
    }
    ends();
}

// --- Stages ---------------------------------------------------------------------------------------------------------

WaitStep CounterFlow::look()
{
    switch (stage_) {
    case Stage::idle:
        return step(Start{core_.port.now()});
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

WaitStep CounterFlow::judgeAsking()
{
    if (takesBackUnsent(waiter.ended)) {
        return step(Failed{core_.port.now(), {Failure::fatal, *waiter.ended}});
    }
    return awaitAnswer(until_);
}

/// Asks again when the client's own releases are over, if there is time to.
WaitStep CounterFlow::judgeReleases()
{
    stage_ = Stage::behindReleases;
    if (waiter.ended || core_.port.now() >= until_) {
        return step(*refusal_);
    }
    if (!counter_.releases().underWay()) {
        return send();
    }
    return sleep(until_);
}

WaitStep CounterFlow::judgeSleep()
{
    stage_ = Stage::sleeping;
    const TimePoint now = core_.port.now();
    if (waiter.ended) {
        return step(Cancelled{now, *waiter.ended});
    }
    const bool mayBeFree = waiter.refusals.isOpen() && !counter_.releases().underWay();
    if (std::exchange(waiter.notified, false) || mayBeFree) {
        return step(Notified{now});
    }
    const bool isDeaf = isUnheard(counter_.listening(), machine_.attempts());
    const TimePoint until = isDeaf ? std::min(until_, unheardUntil_) : until_;
    if (now >= until) {
        return step(TimerFired{now});
    }
    return sleep(until);
}

/// Does what the machine asks for.
WaitStep CounterFlow::step(const Event& event)
{
    const auto action = machine_.resume(event, core_.random);
    if (const auto* done = std::get_if<Done<AcquireResult>>(&action)) {
        return finish(done->result);
    }
    if (const auto* ask = std::get_if<Send>(&action)) {
        if (core_.port.now() >= ending_.rememberedUntil) { // this process stood still
            return finish({.kind = AcquireResult::Kind::failed, .error = Errc::unreachable, .mayBeHeld = true});
        }
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
        counter_.subscribe(waiter);
    } else {
        until_ = std::get<SleepUntil>(action).until;
    }
    unheardUntil_ = machine_.state() == AcquireMachine::State::waiting
                        ? core_.port.now() + pollPause(machine_.attempts(), core_.random)
                        : TimePoint::max();
    return judgeSleep();
}

WaitStep CounterFlow::send()
{
    stage_ = Stage::asking;
    if (waiter.ended) {
        return step(Failed{core_.port.now(), {Failure::fatal, *waiter.ended}});
    }
    begins();
    const CounterOrder& order = ending_.order;
    if (!order.record.empty() && ending_.rememberedUntil == TimePoint::max()) {
        ending_.rememberedUntil = saturatingAdd(core_.port.now(), counter_.surelyRecorded());
    }
    const auto call = std::make_shared<ScriptCall>(*order.script, order.keys, order.arguments);
    call->isHurried = isHurried(core_.config, order.wait);
    waiter.call = call;
    waiter.refusals.queued(counter_.releases());
    if (!submit(call)) {
        return step(Failed{core_.port.now(), {Failure::fatal, Errc::shutdown}});
    }
    return awaitAnswer(until_);
}

WaitStep CounterFlow::answered(const Outcome& outcome)
{
    const auto event = noting(core_.port, eventOf(outcome), waiter.call->reply);
    const LockAnswer* busy = busyAnswer(event);
    if (busy != nullptr) {
        ending_.rememberedUntil = TimePoint::max();
        ending_.blockedUntil = busy->timeToLive ? saturatingAdd(core_.port.now(), *busy->timeToLive) : TimePoint{};
    }
    if (busy == nullptr || !waiter.refusals.passesOver(counter_.releases())) {
        return step(event);
    }
    refusal_ = event;
    return judgeReleases();
}

WaitStep CounterFlow::cancel()
{
    if (stage_ == Stage::done) {
        return {};
    }
    const bool unsent = waiter.call != nullptr && takesBack();
    if (stage_ == Stage::idle) {
        return finish({.kind = AcquireResult::Kind::failed, .error = Errc::shutdown});
    }
    const TimePoint now = core_.port.now();
    return unsent ? step(Failed{now, {Failure::fatal, Errc::shutdown}}) : step(Cancelled{now, Errc::shutdown});
}

WaitStep CounterFlow::finish(const AcquireResult& result) noexcept
{
    stage_ = Stage::done;
    ending_.result = result;
    ending_.outcome.granted = result.kind == AcquireResult::Kind::granted && !core_.isClosing();
    ending_.outcome.validUntil = result.validUntil;
    waiter.hinted = waiter.hinted && !ending_.outcome.granted;
    counter_.leave(waiter);
    return {};
}

CounterEnding CounterFlow::takeEnding() noexcept
{
    return std::move(ending_);
}

// --- What an answer means -------------------------------------------------------------------------------------------

AcquireMachine::Event CounterFlow::eventOf(const Outcome& outcome)
{
    const TimePoint now = core_.port.now();
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

void CounterFlow::begins() noexcept
{
    if (ending_.order.undo && !std::exchange(underWay_, true)) {
        core_.begins();
    }
}

void CounterFlow::ends() noexcept
{
    if (std::exchange(underWay_, false)) {
        core_.ends();
    }
}

} // namespace redislock::detail
