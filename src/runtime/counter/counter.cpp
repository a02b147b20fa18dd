// Semaphores and latches: what their kinds share, and waiting on the calling thread.
#include "runtime/counter/counter.hpp"

#include "redislock/detail/protocol/key_schema.hpp"
#include "runtime/counter/counter_flow.hpp"
#include "runtime/counter/permit_hold.hpp"
#include "runtime/engine/async_query.hpp"
#include "runtime/engine/drive.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/engine/underway.hpp"

#include <charconv>
#include <limits>
#include <utility>

namespace redislock::detail {

NamedCounter::NamedCounter(std::shared_ptr<Engine> e, CounterKind k, std::string n)
    : engine(std::move(e)), kind(k), name(std::move(n))
{
}

NamedCounter::~NamedCounter()
{
    if (!isForked()) {
        const Lock lock(engine->mutex_);
        const auto found = engine->counters_.find(keyOf(kind, name));
        if (found != engine->counters_.end() && found->second == this) {
            engine->counters_.erase(found);
        }
    }
}

std::string NamedCounter::keyOf(CounterKind kind, const std::string& name)
{
    return static_cast<char>(kind) + name;
}

std::shared_ptr<NamedCounter> NamedCounter::of(const std::shared_ptr<Engine>& engine, CounterKind kind,
                                               std::string name)
{
    auto fresh = std::make_shared<NamedCounter>(engine, kind, std::move(name));
    if (engine->isForked()) {
        return fresh; // good for nothing but errors; the mutex may be locked by a thread that is not here
    }
    std::shared_ptr<NamedCounter> known; // let go of after the mutex
    const Lock lock(engine->mutex_);
    auto& entry = engine->counters_[keyOf(kind, fresh->name)];
    if (entry != nullptr) {
        known = entry->weak_from_this().lock(); // null while its destructor waits for the mutex
        if (known) {
            return known;
        }
    }
    entry = fresh.get();
    return fresh;
}

void NamedCounter::end(Engine& engine)
{
    forgetRecords(engine);
    for (const auto& [key, counter] : engine.counters_) {
        counter->waiters_.forEach([&engine](CounterWaiter& waiter) {
            waiter.ended = Errc::shutdown;
            if (waiter.operation == nullptr) {
                engine.commands_->withdraw(waiter.call, Errc::shutdown);
            }
            waiter.look();
        });
    }
}

bool NamedCounter::isForked() const noexcept
{
    return engine->isForked();
}

std::string NamedCounter::channel() const
{
    return kind == CounterKind::countDownLatch ? latchChannel(name) : semaphoreChannel(name);
}

std::error_code NamedCounter::drive(const std::shared_ptr<ScriptCall>& call, bool& repeated)
{
    if (call == nullptr) {
        return {};
    }
    QueryMachine machine(engine->config().unreachableAfter);
    const auto error = engine->query(call, machine);
    repeated = machine.repeated();
    return error;
}

/// Whether a request that ended with it may have been executed, or may be executed later.
bool NamedCounter::isOpen(std::error_code ec) noexcept
{
    return ec == Errc::unreachable || ec == Errc::serverRefused || ec == Errc::badReply ||
           ec == std::make_error_code(std::errc::operation_canceled);
}

std::error_code NamedCounter::goOn(const std::shared_ptr<ScriptCall>& call, Denied denied, std::error_code ec,
                                   bool repeated, TimePoint begin)
{
    const bool wasDenied = ec == Errc::authFailed || ec == Errc::permissionDenied || ec == Errc::noSuchDatabase ||
                           ec == Errc::notRedis || ec == Errc::unsupported;
    if (call != nullptr && (isOpen(ec) || (wasDenied && (repeated || denied == Denied::goesOn)))) {
        repeatUnawaited(call, begin);
    }
    return call != nullptr && wasDenied && repeated ? Errc::unreachable : ec;
}

void NamedCounter::repeatUnawaited(std::shared_ptr<ScriptCall> call, TimePoint begin) noexcept
{
    askUnawaited(std::move(call), {}, saturatingAdd(begin, leastRecordTime));
}

void NamedCounter::askUnawaited(std::shared_ptr<ScriptCall> call, std::string record, TimePoint limit) noexcept
{
    if (isForked()) {
        return;
    }
    try {
        const auto giving = std::make_shared<Giving>(shared_from_this());
        std::shared_ptr<Engine::AsyncQuery> query; // these are let go of after the mutex
        std::shared_ptr<Underway> underway;
        const Lock lock(engine->mutex_);
        if (engine->outboxClosed_) {
            return; // the thread ends, and would keep the client for ever
        }
        underway = std::make_shared<Underway>(*engine);
        query = std::make_shared<Engine::AsyncQuery>(
            *engine, std::move(call),
            [self = shared_from_this(), record = std::move(record), giving,
             underway](std::error_code ec, const QueryMachine& machine, const Reply&) {
                if (!ec && !machine.repeated()) {
                    self->settle({record});
                }
            },
            leastRecordTime, limit, Asker::background);
        engine->post([query] { query->begin(); });
    } catch (...) { // out of memory: what has a lease ends with it
    }
}

std::error_code NamedCounter::acquire(const CounterOrder& order, CounterOutcome& outcome)
{
    if (const auto refused = engine->refusal()) {
        return *refused;
    }
    engine->start();
    Ending ending;
    std::optional<Underway> underway;
    {
        Lock lock(engine->mutex_);
        Flow flow(*this, order, nullptr);
        engine->drive(lock, flow);
        ending = flow.takeEnding();
        if (ending.isOpen()) {
            underway.emplace(*engine); // until that is under way in its turn
        }
    }
    conclude(ending);
    outcome = ending.outcome;
    return ending.error();
}

ChannelListener NamedCounter::listener()
{
    return {weak_from_this(), 0, [](void* whose, std::uint64_t /*part*/, Notice notice, std::string_view text) {
                static_cast<NamedCounter*>(whose)->hear(notice, text);
            }};
}

/// Expects the engine's mutex.
void NamedCounter::subscribe()
{
    if (!std::exchange(subscribed_, true)) {
        engine->post([e = engine.get(), channel = channel(), listener = listener()] {
            e->background_->subscriber.want(channel, listener);
        });
    }
}

/// What a waiter was woken for is not enough for it, but may be for one that wants less. Expects the engine's mutex.
void NamedCounter::refused(CounterWaiter& waiter) noexcept
{
    if (!waiter.notified && std::exchange(waiter.hinted, false)) {
        wakeFor(waiter.permits - 1);
    }
}

/// Expects the engine's mutex.
void NamedCounter::leave(CounterWaiter& waiter) noexcept
{
    waiters_.leave(waiter);
    if (waiter.permits > 0 && (waiter.notified || waiter.hinted)) {
        wakeFor(waiter.permits); // what it was told of, it has not looked for
    }
    if (waiters_.empty() && std::exchange(subscribed_, false)) {
        confirmed_ = false;
        engine->post([e = engine.get(), channel = channel(), listener = listener()] {
            e->background_->subscriber.drop(channel, listener);
        });
    }
}

/// A message, or a subscription that was confirmed or refused. Background thread.
void NamedCounter::hear(Notice notice, std::string_view text)
{
    constexpr auto everybody = std::numeric_limits<std::int64_t>::max();
    if (notice == Notice::refused) {
        engine->tell([keep = shared_from_this()](Observer& observer) { observer.subscribeRefused({keep->name, {}}); });
        return; // the poll goes on
    }
    std::int64_t permits = everybody;
    if (notice == Notice::message) { // whatever is no number: a hint all the same
        std::from_chars(text.data(), text.data() + text.size(), permits);
    }
    const Lock lock(engine->mutex_);
    confirmed_ = confirmed_ || (notice == Notice::confirmed && subscribed_);
    wakeFor(kind == CounterKind::countDownLatch ? everybody : permits);
}

/// Wakes, first come first served, those who can have what they want out of so many permits. Expects the engine's mutex.
void NamedCounter::wakeFor(std::int64_t permits) noexcept
{
    waiters_.forEach([&permits](CounterWaiter& waiter) {
        if (waiter.permits <= permits) {
            permits -= waiter.permits;
            waiter.wake();
        }
    });
}

void NamedCounter::add(const std::shared_ptr<PermitHold>& permit)
{
    const Lock lock(engine->mutex_);
    permits_[permit->id] = permit;
}

void NamedCounter::remove(const std::string& id) noexcept
{
    const Lock lock(engine->mutex_);
    permits_.erase(id);
}

std::shared_ptr<PermitHold> NamedCounter::find(const std::string& id)
{
    const Lock lock(engine->mutex_);
    const auto found = permits_.find(id);
    return found == permits_.end() ? nullptr : found->second.lock();
}

} // namespace redislock::detail
