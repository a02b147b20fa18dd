// Names, who waits for them, and requests that nobody waits for, as in src/runtime/counter.cpp.
#include "simulation/counter_client.hpp"

#include "redislock/detail/protocol/key_schema.hpp"
#include "simulation/counter_ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

namespace redislock::simulation {

using detail::QueryMachine;

namespace {

constexpr std::chrono::milliseconds leastRecordTime{60'000};

} // namespace

CounterClient::CounterClient(Network& network, std::shared_ptr<Host> host, const Config& config, std::uint64_t seed)
    : host_(std::move(host)),
      config_(config),
      random_(seed),
      commands_(network, host_, Purpose::commands, config.commandTimeout, config.connectTimeout, random_),
      background_(network, host_, Purpose::renewals, config.commandTimeout, config.connectTimeout, random_),
      subscriber_(network, host_, config.commandTimeout, config.commandTimeout, random_,
                  [this](Listener listener, SimSubscriber::Table::Incoming::Kind kind, std::string_view text) {
                      hear(listener.index, kind, text);
                  })
{
}

Counter& CounterClient::counter(Counter::Kind kind, const std::string& name)
{
    for (const auto& counter : counters_) {
        if (counter->kind == kind && counter->name == name) {
            return *counter;
        }
    }
    const auto channel =
        kind == Counter::Kind::countDownLatch ? detail::latchChannel(name) : detail::semaphoreChannel(name);
    counters_.push_back(std::make_unique<Counter>(Counter{kind, name, channel, counters_.size()}));
    return *counters_.back();
}

std::string CounterClient::newRecord(const Counter& counter)
{
    return detail::requestKey(counter.name, fmt::format("{}:{}", host_->name(), ++lastRecord_));
}

std::string CounterClient::newPermitId()
{
    return permitId(host_->name(), ++lastPermit_);
}

std::string CounterClient::recordTime() const
{
    return std::to_string((leastRecordTime + 2 * config_.unreachableAfter).count());
}

std::vector<std::string> CounterClient::keysWith(Counter& counter, const std::string& record)
{
    constexpr std::size_t most = 8;
    std::vector<std::string> keys{record};
    for (std::size_t i = 0; i < most && !counter.settled.empty(); ++i) {
        keys.push_back(std::move(counter.settled.back()));
        counter.settled.pop_back();
    }
    return keys;
}

void CounterClient::settle(Counter& counter, const std::string& record)
{
    constexpr std::size_t most = 128;
    if (!record.empty() && counter.settled.size() < most) {
        counter.settled.push_back(record);
    }
}

std::shared_ptr<Call> CounterClient::call(const Counter& counter, const CounterScript& script, Situation situation)
{
    auto call = std::make_shared<Call>();
    call->request.script = script.script;
    call->request.name = counter.name;
    call->request.otherKeys = script.otherKeys;
    call->request.arguments = script.arguments;
    call->request.number = ++lastRequest_;
    call->situation = situation;
    return call;
}

void CounterClient::repeatUnawaited(const Counter& counter, const CounterScript& script, TimePoint begin)
{
    askUnawaited(counter, script, saturatingAdd(begin, leastRecordTime));
}

void CounterClient::askUnawaited(const Counter& counter, const CounterScript& script, TimePoint limit)
{
    unawaited_.push_back({QueryMachine(leastRecordTime, limit, detail::Asker::background),
                          call(counter, script, Situation::releaseAsking)});
    const auto query = std::prev(unawaited_.end());
    query->call->finished = [this, query](Call& call) {
        step(query, eventOf<QueryMachine::Event>(call, host_->now(), [&](const Reply&) -> QueryMachine::Event {
                 return detail::Replied<detail::Answered>{host_->now(), call.sentAt, {}};
             }));
    };
    host_->post([this, query] { step(query, detail::Start{host_->now()}); });
}

/// One step of a request that nobody waits for.
void CounterClient::step(std::list<Unawaited>::iterator query, const QueryMachine::Event& event)
{
    const auto action = query->machine.resume(event, random_);
    if (std::holds_alternative<detail::Send>(action)) {
        background_.enqueue(query->call);
    } else if (const auto* sleep = std::get_if<detail::SleepUntil>(&action)) {
        host_->at(sleep->until, [this, query] { step(query, detail::TimerFired{host_->now()}); });
    } else {
        if (std::get<detail::Done<std::optional<Errc>>>(action).result) {
            gaveUp();
        }
        unawaited_.erase(query);
    }
}

// --- Waking ----------------------------------------------------------------------------------------------------------

void CounterClient::join(Counter& counter, CounterWaiter& waiter)
{
    waiter.number = ++lastWaiter_;
    counter.waiters.join(waiter);
}

void CounterClient::subscribe(Counter& counter)
{
    if (!std::exchange(counter.subscribed, true)) {
        host_->post([this, &counter] { subscriber_.want(counter.channel, {counter.index}); });
    }
}

void CounterClient::refused(Counter& counter, CounterWaiter& waiter)
{
    if (!waiter.notified && std::exchange(waiter.hinted, false)) {
        wakeFor(counter, waiter.permits - 1);
    }
}

void CounterClient::leave(Counter& counter, CounterWaiter& waiter)
{
    counter.waiters.leave(waiter);
    if (waiter.permits > 0 && (waiter.notified || waiter.hinted)) {
        wakeFor(counter, waiter.permits);
    }
    if (counter.waiters.empty() && std::exchange(counter.subscribed, false)) {
        counter.confirmed = false;
        host_->post([this, &counter] { subscriber_.drop(counter.channel, {counter.index}); });
    }
}

void CounterClient::hear(std::size_t index, SimSubscriber::Table::Incoming::Kind kind, std::string_view text)
{
    using Kind = SimSubscriber::Table::Incoming::Kind;
    constexpr auto everybody = std::numeric_limits<std::int64_t>::max();
    Counter& counter = *counters_[index];
    if (kind == Kind::refused) {
        return;
    }
    std::int64_t permits = everybody;
    if (kind == Kind::message) {
        std::from_chars(text.data(), text.data() + text.size(), permits);
    }
    counter.confirmed = counter.confirmed || (kind == Kind::confirmed && counter.subscribed);
    wakeFor(counter, counter.kind == Counter::Kind::countDownLatch ? everybody : permits);
}

void CounterClient::wakeFor(Counter& counter, std::int64_t permits)
{
    counter.waiters.forEach([&permits](CounterWaiter& waiter) {
        if (waiter.permits <= permits) {
            permits -= waiter.permits;
            waiter.wake();
        }
    });
}

void CounterClient::forEachSituation(const std::function<void(Situation)>& tell) const
{
    for (const auto& query : unawaited_) {
        if (query.machine.state() == QueryMachine::State::asking) {
            tell(Situation::releaseAsking);
        } else if (query.machine.state() == QueryMachine::State::backingOff) {
            tell(Situation::releaseBackingOff);
        }
    }
}

std::string CounterClient::residue() const
{
    std::string left;
    for (const auto& counter : counters_) {
        if (!counter->waiters.empty() || counter->subscribed) {
            left += fmt::format(" {}: {} waiters;", counter->name, counter->waiters.size());
        }
    }
    if (!unawaited_.empty() || subscriber_.channels() != 0 || !commands_.idle() || !background_.idle()) {
        left += fmt::format(" {} requests, {} channels", unawaited_.size(), subscriber_.channels());
    }
    return left;
}

} // namespace redislock::simulation
