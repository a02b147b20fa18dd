// Semaphores and latches: what their kinds share.
#include "core/counter/counter.hpp"

#include "core/counter/permit_requests.hpp"
#include "core/operation/query_flow.hpp"
#include "link/request/calls.hpp"
#include "wire/key_schema.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

namespace redislock::detail {

NamedCounter::NamedCounter(std::shared_ptr<Port> p, Core& c, CounterKind k, std::string n)
    : port(std::move(p)), core(c), kind(k), name(std::move(n))
{
}

NamedCounter::~NamedCounter()
{
    if (!port->isForked()) {
        const Inside lock(*port);
        core.counters.forget(*this);
    }
}

std::shared_ptr<NamedCounter> NamedCounter::of(const std::shared_ptr<Port>& port, Core& core, CounterKind kind,
                                               std::string name)
{
    auto fresh = std::make_shared<NamedCounter>(port, core, kind, std::move(name));
    if (port->isForked()) {
        return fresh; // can only give errors; the mutex may be locked by a thread of the parent process
    }
    std::shared_ptr<NamedCounter> known; // destroyed after the mutex is unlocked
    const Inside lock(*port);
    known = core.counters.knownOrAdd(*fresh);
    return known ? known : fresh;
}

std::string NamedCounter::channel() const
{
    const auto plain = kind == CounterKind::countDownLatch ? latchChannel(name) : semaphoreChannel(name);
    return std::string(core.channelMark).append(plain);
}

// --- Requests -------------------------------------------------------------------------------------------------------

/// Whether a request that ended with this error may have been executed, or may still be.
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
        // only for as long as its answer is surely kept, even if this process stood still in between: sent later, the
        // request would count again
        askUnawaited(call, {}, saturatingAdd(begin, leastRecordTime), nullptr);
    }
    return call != nullptr && wasDenied && repeated ? Errc::unreachable : ec;
}

/// A request that nobody waits for, repeated until it is answered.
class NamedCounter::Unawaited final : public BackgroundRun, public std::enable_shared_from_this<Unawaited> {
public:
    Unawaited(std::shared_ptr<NamedCounter> counter, std::shared_ptr<ScriptCall> call, std::string record,
              TimePoint limit, WhenOver whenOver)
        : BackgroundRun(counter->core),
          counter_(std::move(counter)),
          record_(std::move(record)),
          whenOver_(std::move(whenOver)),
          flow_(std::in_place, core_, std::move(call), this, QueryMachine(leastRecordTime, limit, Asker::background))
    {
    }

    std::shared_ptr<BackgroundRun> keep() override { return shared_from_this(); }

    /// Expects the mutex.
    void start()
    {
        self_ = shared_from_this();
        counter_->beginsUnawaitedRelease();
        core_.begins();
        begin();
    }

private:
    Operation* operation() noexcept override { return flow_ ? &*flow_ : nullptr; }

    /// The client's end waits until the record is settled, too.
    Rest finish() override
    {
        const auto failed = flow_->error();
        const bool repeated = flow_->repeated();
        flow_.reset();
        counter_->endsUnawaitedRelease();
        bool isSettling = false;
        try {
            if (whenOver_) {
                whenOver_(failed, repeated);
            }
            if (!failed && !repeated && !record_.empty()) {
                core_.port.post([counter = counter_, record = record_] {
                    counter->discardRecords({&record, 1});
                    const Inside lock(*counter->port);
                    counter->core.ends();
                });
                isSettling = true;
            }
        } catch (const std::bad_alloc&) { // the record ends with its time to live
        }
        if (!isSettling) {
            core_.ends();
        }
        return {.self = std::move(self_)};
    }
    Rest failed() noexcept override { return flow_ ? finish() : Rest{}; }

    const std::shared_ptr<NamedCounter> counter_;
    const std::string record_;
    const WhenOver whenOver_;
    std::optional<QueryFlow> flow_;
    std::shared_ptr<Unawaited> self_; ///< until the end
};

void NamedCounter::askUnawaited(const CounterRequest<Unlocked>& request)
{
    WhenOver tell;
    if (request.tells) {
        tell = [request](std::error_code failed, bool repeated) {
            std::error_code ec;
            const Unlocked how = failed ? request.known : request.meaning(*request.call, repeated, ec);
            request.tells(how, ec);
        };
    }
    askUnawaited(request.call, {}, TimePoint::max(), std::move(tell));
}

void NamedCounter::askUnawaited(std::shared_ptr<ScriptCall> call, std::string record, TimePoint limit,
                                WhenOver whenOver) noexcept
{
    if (port->isForked()) {
        return;
    }
    try {
        // only for as long as its answer is surely kept: sent later, the request would count again
        const TimePoint end = std::min(limit, saturatingAdd(port->now(), leastRecordTime));
        call->wantedUntil = end;
        const auto asking = std::make_shared<Unawaited>(shared_from_this(), std::move(call), std::move(record), end,
                                                        std::move(whenOver));
        const Inside lock(*port);
        asking->start();
    } catch (...) { // out of memory: a lease ends by itself
        return;
    }
}

std::error_code CounterEnding::error() const noexcept
{
    using Kind = AcquireResult::Kind;
    if (outcome.granted || result.kind == Kind::contended) {
        return {};
    }
    return result.kind == Kind::granted ? Errc::shutdown : result.error;
}

void NamedCounter::tellReleased(const std::string& holder, Unlocked how, std::chrono::nanoseconds held)
{
    tellOf(holder, [how, held](Observer& observer, const LockEvent& event) {
        observer.released(event, how, held);
        if (how == Unlocked::unconfirmed) {
            observer.unconfirmed(event);
        }
    });
}

void NamedCounter::tellOf(const CounterEnding& ending)
{
    const TimePoint now = port->now();
    const auto waited = now - ending.began;
    const auto attempts = ending.result.attempts;
    if (ending.outcome.granted) {
        tellOf(ending.order.holder, [waited, attempts](Observer& observer, const LockEvent& event) {
            observer.acquired(event, waited, attempts);
        });
    } else if (ending.result.kind == AcquireResult::Kind::contended) {
        tellOf({},
               [left = leftUntil(ending.blockedUntil, now), waited, attempts](
                   Observer& observer, const LockEvent& event) { observer.contended(event, left, waited, attempts); });
    }
}

void NamedCounter::conclude(const CounterEnding& ending)
{
    tellOf(ending);
    const auto& order = ending.order;
    const auto& result = ending.result;
    const auto& outcome = ending.outcome;
    if (outcome.granted && !outcome.repeated) {
        discardRecords({&order.record, 1});
    }
    if (ending.isOpen()) {
        const bool copies = result.kind != AcquireResult::Kind::granted || outcome.repeated;
        askUnawaited(order.undo(copies), copies ? std::string() : order.record, ending.rememberedUntil, nullptr);
    }
}

// --- Waiting --------------------------------------------------------------------------------------------------------

ChannelListener NamedCounter::listener()
{
    return {weak_from_this(), 0, [](void* whose, std::uint64_t /*part*/, Notice notice, std::string_view text) {
                static_cast<NamedCounter*>(whose)->hear(notice, text);
            }};
}

void NamedCounter::subscribe(CounterWaiter& waiter)
{
    if (listening_ == Listening::no) {
        port->want(patiently([this] { return channel(); }), listener());
        listening_ = Listening::asked;
    }
    waiter.notified = waiter.notified || listening_ == Listening::confirmed;
}

void NamedCounter::refused(CounterWaiter& waiter) noexcept
{
    if (!waiter.notified && std::exchange(waiter.hinted, false)) {
        wakeFor(waiter.permits - 1);
    }
}

void NamedCounter::leave(CounterWaiter& waiter) noexcept
{
    waiters_.leave(waiter);
    if (waiter.permits > 0 && (waiter.notified || waiter.hinted)) {
        wakeFor(waiter.permits); // others may use what it was woken for, and has not tried to take
    }
    if (waiters_.empty() && std::exchange(listening_, Listening::no) != Listening::no) {
        port->drop(patiently([this] { return channel(); }), listener());
    }
}

void NamedCounter::endsUnawaitedRelease() noexcept
{
    releases_.end();
    waiters_.forEach([](CounterWaiter& waiter) {
        if (waiter.refusals.isOpen()) {
            waiter.look();
        }
    });
}

void NamedCounter::end()
{
    waiters_.forEach([this](CounterWaiter& waiter) {
        waiter.ended = Errc::shutdown;
        if (waiter.run == nullptr) {
            port->fail(waiter.call, Errc::shutdown);
        }
        waiter.look();
    });
}

/// A message came, or a subscription was confirmed or refused.
void NamedCounter::hear(Notice notice, std::string_view text)
{
    constexpr auto everybody = std::numeric_limits<std::int64_t>::max();
    if (notice == Notice::refused) {
        tellOf({}, [](Observer& observer, const LockEvent& event) { observer.subscribeRefused(event); });
    }
    std::int64_t permits = everybody;
    if (notice == Notice::message) { // a text that is no number is a hint all the same
        std::from_chars(text.data(), text.data() + text.size(), permits);
    }
    const Inside lock(*port);
    if (notice != Notice::message && listening_ != Listening::no) {
        listening_ = notice == Notice::confirmed ? Listening::confirmed : Listening::refused;
    }
    if (notice == Notice::refused) {
        return waiters_.forEach([](CounterWaiter& waiter) { waiter.look(); }); // they poll
    }
    wakeFor(kind == CounterKind::countDownLatch ? everybody : permits);
}

/// Wakes the waiters for which so many permits are enough, first come first served.
void NamedCounter::wakeFor(std::int64_t permits) noexcept
{
    waiters_.forEach([&permits](CounterWaiter& waiter) {
        if (waiter.permits <= permits) {
            permits -= waiter.permits;
            waiter.wake();
        }
    });
}

// --- Permits --------------------------------------------------------------------------------------------------------

void NamedCounter::add(const std::shared_ptr<PermitHold>& permit)
{
    const Inside lock(*port);
    permits_[permit->id] = permit;
}

void NamedCounter::remove(const std::string& id) noexcept
{
    const Inside lock(*port);
    permits_.erase(id);
}

std::shared_ptr<PermitHold> NamedCounter::find(const std::string& id)
{
    const Inside lock(*port);
    const auto found = permits_.find(id);
    return found == permits_.end() ? nullptr : found->second.lock();
}

} // namespace redislock::detail
