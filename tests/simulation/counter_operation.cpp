// Waiting and asking on the calling thread, as in src/runtime/counter/counter.cpp.
#include "simulation/counter_operation.hpp"

#include "logic/call/event_of.hpp"
#include "simulation/safety_checker.hpp"

#include <utility>

namespace redislock::simulation {

using detail::AcquireMachine;
using detail::AcquireResult;
using detail::LockAnswer;
using detail::QueryMachine;
using detail::Replied;

namespace {

AcquireMachine::Settings settingsOf(const Config& config, const CounterOrder& order)
{
    AcquireMachine::Settings settings;
    settings.lease = order.lease;
    settings.wait = order.wait;
    settings.pollInterval = config.pollInterval;
    settings.commandTimeout = config.commandTimeout;
    settings.unreachableAfter = config.unreachableAfter;
    return settings;
}

/// Whether a request that ended with it may have been executed, or may be executed later.
bool isOpen(std::optional<Errc> error)
{
    return error == Errc::unreachable || error == Errc::serverRefused || error == Errc::badReply;
}

} // namespace

CounterWait::CounterWait(CounterClient& client, Counter& counter, CounterOrder order)
    : Awaiting(client.host(), client.commands()),
      client_(client),
      counter_(counter),
      order_(std::move(order)),
      machine_(settingsOf(client.config(), order_)),
      event_(detail::Start{now()}),
      began_(now())
{
    waiter_.permits = order_.permits;
    waiter_.look = [this] { wake(); };
    client_.join(counter_, waiter_);
}

CounterWait::~CounterWait()
{
    if (waiter_.queued) { // the process is gone
        counter_.waiters.leave(waiter_);
    }
}

std::optional<Situation> CounterWait::situation() const
{
    switch (machine_.state()) {
    case AcquireMachine::State::asking:
        return Situation::acquireAsking;
    case AcquireMachine::State::waiting:
        return Situation::acquireWaiting;
    case AcquireMachine::State::backingOff:
        return Situation::acquireBackingOff;
    default:
        return std::nullopt;
    }
}

void CounterWait::cancel()
{
    waiter_.ended = Errc::shutdown;
    waiter_.look();
}

void CounterWait::advance()
{
    while (!isDone()) {
        auto event = event_ ? std::exchange(event_, std::nullopt) : nextEvent();
        if (!event) {
            return;
        }
        const auto action = machine_.resume(*event, client_.random());
        if (const auto* done = std::get_if<detail::Done<AcquireResult>>(&action)) {
            conclude(done->result);
        } else if (const auto* request = std::get_if<detail::Send>(&action)) {
            call_ = client_.call(counter_, order_.script, Situation::acquireAsking);
            call_->whenFinished = [this] { wake(); };
            awaitAnswer(*call_, request->until);
            commands_.enqueue(call_);
        } else {
            CounterClient::refused(counter_, waiter_);
            if (const auto* subscription = std::get_if<detail::Subscribe>(&action)) {
                client_.subscribe(counter_);
                waiter_.notified = waiter_.notified || counter_.confirmed;
                sleepUntil_ = subscription->until;
            } else {
                sleepUntil_ = std::get<detail::SleepUntil>(action).until;
            }
        }
    }
}

/// What it was waiting for; nothing yet.
std::optional<AcquireMachine::Event> CounterWait::nextEvent()
{
    if (machine_.state() == AcquireMachine::State::asking) {
        const auto answer = outcome();
        return answer ? std::optional(eventOf(*answer)) : std::nullopt;
    }
    if (waiter_.ended) {
        return detail::Cancelled{now(), *waiter_.ended};
    }
    if (std::exchange(waiter_.notified, false)) {
        return detail::Notified{now()};
    }
    if (now() >= sleepUntil_) {
        return detail::TimerFired{now()};
    }
    alarm(sleepUntil_);
    return std::nullopt;
}

AcquireMachine::Event CounterWait::eventOf(const detail::Outcome& outcome)
{
    const detail::Reply& reply = call_->reply;
    const auto answer = outcome.replied && !reply.isError() ? order_.meaning(reply) : std::nullopt;
    if (answer) {
        return Replied<LockAnswer>{now(), call_->sentAt, *answer};
    }
    repeated_ = true;
    if (outcome.replied && !reply.isError()) {
        throw Violation("replies", "a script gave an answer that it cannot give");
    }
    return detail::Failed{now(), outcome.replied ? detail::classify(reply.text) : outcome.fault};
}

void CounterWait::conclude(const AcquireResult& result)
{
    result_ = result;
    waiter_.hinted = waiter_.hinted && !granted();
    client_.leave(counter_, waiter_);
    if (granted() && !repeated_) {
        CounterClient::settle(counter_, order_.record);
    }
    if (!granted() && order_.undo && result.mayBeHeld) {
        client_.askUnawaited(counter_, *order_.undo);
    }
    finishOperation();
}

// --- Asking ----------------------------------------------------------------------------------------------------------

CounterQuestion::CounterQuestion(CounterClient& client, Counter& counter, const CounterScript& script,
                                 std::string record, std::optional<CounterScript> afterwards, Situation asking)
    : Awaiting(client.host(), client.commands()),
      client_(client),
      counter_(counter),
      record_(std::move(record)),
      afterwards_(std::move(afterwards)),
      began_(now()),
      command_(client.call(counter, script, asking)),
      machine_(client.config().unreachableAfter),
      event_(detail::Start{now()})
{
}

std::optional<Situation> CounterQuestion::situation() const
{
    const bool releases = command_->situation == Situation::releaseAsking;
    switch (machine_.state()) {
    case QueryMachine::State::asking:
        return command_->situation;
    case QueryMachine::State::backingOff:
        return releases ? Situation::releaseBackingOff : Situation::queryBackingOff;
    default:
        return std::nullopt;
    }
}

void CounterQuestion::advance()
{
    while (!isDone()) {
        if (!event_) {
            if (machine_.state() != QueryMachine::State::asking) {
                if (now() < sleepUntil_) {
                    return alarm(sleepUntil_);
                }
                event_ = detail::TimerFired{now()};
            } else if (const auto answer = outcome()) {
                event_ = detail::eventOf<QueryMachine::Event, detail::Answered>(*command_, *answer, now());
            } else {
                return;
            }
        }
        const auto action = machine_.resume(*std::exchange(event_, std::nullopt), client_.random());
        if (const auto* done = std::get_if<detail::Done<std::optional<Errc>>>(&action)) {
            conclude(done->result);
        } else if (const auto* request = std::get_if<detail::Send>(&action)) {
            command_->whenFinished = [this] { wake(); };
            awaitAnswer(*command_, request->until);
            commands_.enqueue(command_);
        } else {
            sleepUntil_ = std::get<detail::SleepUntil>(action).until;
        }
    }
}

void CounterQuestion::conclude(std::optional<Errc> error)
{
    error_ = error;
    if (!error && !machine_.repeated()) {
        CounterClient::settle(counter_, record_);
    }
    if (afterwards_ && isOpen(error)) {
        client_.repeatUnawaited(counter_, *afterwards_, began_);
    }
    finishOperation();
}

} // namespace redislock::simulation
