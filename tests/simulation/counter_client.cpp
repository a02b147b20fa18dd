// Names, who waits for them, and requests that nobody waits for, as in src/runtime/counter/counter.cpp.
#include "simulation/counter_client.hpp"

#include "logic/call/event_of.hpp"
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
      commands_(network, host_, Purpose::commands, config.commandTimeout, config.connectTimeout, random_, lastRequest_),
      background_(network, host_, Purpose::renewals, config.commandTimeout, config.connectTimeout, random_,
                  lastRequest_),
      subscriber_(network, host_, config.commandTimeout, config.commandTimeout, random_)
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
    counters_.push_back(std::make_shared<Counter>());
    Counter& fresh = *counters_.back();
    fresh.kind = kind;
    fresh.name = name;
    fresh.channel = channel;
    fresh.client = this;
    return fresh;
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

std::shared_ptr<RequestCall> CounterClient::call(const Counter& counter, const CounterScript& script,
                                                 Situation situation)
{
    Request request;
    request.script = script.script;
    request.name = counter.name;
    request.otherKeys = script.otherKeys;
    request.arguments = script.arguments;
    return std::make_shared<RequestCall>(std::move(request), situation);
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
    query->call->whenFinished = [this, query] {
        step(query,
             detail::eventOf<QueryMachine::Event, detail::Answered>(*query->call, query->call->outcome, host_->now()));
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
        host_->post(
            [this, counter = counter.shared_from_this()] { subscriber_.want(counter->channel, listenerOf(counter)); });
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
        host_->post(
            [this, counter = counter.shared_from_this()] { subscriber_.drop(counter->channel, listenerOf(counter)); });
    }
}

detail::ChannelListener CounterClient::listenerOf(const std::shared_ptr<Counter>& counter)
{
    return {counter, 0, [](void* whose, std::uint64_t /*part*/, detail::Notice notice, std::string_view text) {
                auto& heard = *static_cast<Counter*>(whose);
                heard.client->hear(heard, notice, text);
            }};
}

void CounterClient::hear(Counter& counter, detail::Notice notice, std::string_view text)
{
    using detail::Notice;
    constexpr auto everybody = std::numeric_limits<std::int64_t>::max();
    if (notice == Notice::refused) {
        return;
    }
    std::int64_t permits = everybody;
    if (notice == Notice::message) {
        std::from_chars(text.data(), text.data() + text.size(), permits);
    }
    counter.confirmed = counter.confirmed || (notice == Notice::confirmed && counter.subscribed);
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
