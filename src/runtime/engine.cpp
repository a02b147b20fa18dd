#include "runtime/engine.hpp"

#include "redislock/error.hpp"
#include "runtime/counter.hpp"
#include "runtime/fresh_seed.hpp"
#include "runtime/process.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/uuid/random_generator.hpp>
#include <boost/uuid/uuid_io.hpp>

#include <algorithm>
#include <csignal>
#include <new>
#include <utility>

namespace redislock::detail {

namespace {

constexpr std::chrono::milliseconds sweepPause{2};
constexpr std::chrono::milliseconds heartbeat{2000};

/// Keeps all signals from the calling thread, and from those that it starts meanwhile.
class BlockedSignals {
public:
    BlockedSignals() noexcept
    {
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    BlockedSignals(const BlockedSignals&) = delete;
    BlockedSignals& operator=(const BlockedSignals&) = delete;
    ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
    sigset_t before_{};
};

Handshake handshakeOf(const Config& config)
{
    return {config.username, config.password, config.database, config.clientName};
}

} // namespace

Engine::Background::Background(Engine& engine)
    : connector(io, engine.config_.endpoint, handshakeOf(engine.config_), engine.config_.connectTimeout),
      renewals(io, connector, engine.renewalTimeout(), freshSeed(), engine.reporter("renewals")),
      subscriber(
          io, connector, engine.config_.commandTimeout, heartbeat, freshSeed(),
          [](const ChannelListener& listener, Subscriber<ChannelListener>::Kind kind, std::string_view text) {
              using Kind = Subscriber<ChannelListener>::Kind;
              if (const auto whose = listener.whose.lock()) {
                  const auto heard = kind == Kind::confirmed ? Notice::confirmed : Notice::refused;
                  listener.hear(whose.get(), listener.part, kind == Kind::message ? Notice::message : heard, text);
              }
          },
          engine.reporter("notifications")),
      random(freshSeed()),
      watchdog(io, engine)
{
}

std::shared_ptr<Engine> Engine::make(Config config)
{
    config.validate();
    return std::shared_ptr<Engine>(new Engine(std::move(config)));
}

Engine::Engine(Config config)
    : config_(std::move(config)),
      id_(to_string(boost::uuids::random_generator()())),
      generation_(forkGeneration()),
      random_(freshSeed()),
      background_(std::make_unique<Background>(*this))
{
    idleHolds_.reserve(maxIdle);
    idleCalls_.reserve(maxIdle);
    BlockingConnection::Background hooks;
    hooks.connect = [this](TimePoint notBefore) {
        background_->connector.connect(this, notBefore, config_.connectTimeout, [this](Connected result) {
            if (result.fault) {
                return commands_->connectFailed(*result.fault);
            }
            const auto address = result.stream.peer();
            commands_->connected(std::move(result.stream));
            background_->subscriber.follow(address);
        });
    };
    hooks.hurry = [this](TimePoint soonest) { background_->connector.hurry(this, soonest); };
    hooks.demoted = [this](std::string address) { background_->connector.demoted(std::move(address)); };
    hooks.sweepSoon = [this] { sweepSoon(); };
    background_->sweepTimer.onRing([this] {
        if (commands_->sweep()) {
            sweepSoon();
        }
    });
    hooks.report = reporter("commands");
    commands_ = std::make_unique<BlockingConnection>(std::move(hooks), config_.commandTimeout, freshSeed());
}

Engine::~Engine()
{
    if (isForked()) {
        // sockets, epoll and the thread belong to the parent: touching them here would disturb it
        (void)background_.release();
        (void)commands_.release();
    }
    if (thread_.joinable()) {
        thread_.detach(); // it has ended, or ends here
    }
}

bool Engine::isForked() const noexcept
{
    return forkGeneration() != generation_;
}

bool Engine::onOwnThread() const noexcept
{
    return ownThread_.load(std::memory_order_relaxed) == currentThread();
}

std::optional<Errc> Engine::refusal() const noexcept
{
    if (isForked()) {
        return Errc::forked;
    }
    if (closing_.load(std::memory_order_acquire)) {
        return Errc::shutdown;
    }
    return onOwnThread() ? std::optional(Errc::wouldDeadlock) : std::nullopt;
}

void Engine::start()
{
    if (started_.load(std::memory_order_acquire)) {
        return;
    }
    const std::lock_guard lock(threadMutex_);
    if (started_.load(std::memory_order_relaxed) || closing_.load(std::memory_order_acquire)) {
        return;
    }
    const BlockedSignals none; // as the thread inherits them: handlers are the program's, and its own threads'
    thread_ = std::thread([self = shared_from_this()] { self->run(); });
    threadRunning_ = true;
    started_.store(true, std::memory_order_release);
}

void Engine::run() noexcept
{
    ownThread_.store(currentThread(), std::memory_order_relaxed);
    for (bool failed = false;;) {
        try {
            if (failed) {
                recover();
                failed = false;
            }
            background_->io.run();
            break;
        } catch (const std::bad_alloc&) {
            failed = true;
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        } catch (...) { // a user's handler without an executor of its own: go on
        }
    }
    const std::lock_guard lock(threadMutex_);
    threadRunning_ = false;
    threadEnded_.notify_all();
}

/// After an exception on the background thread: whoever threw may not have waited again for what comes next.
void Engine::recover()
{
    background_->watchdog.recover();
    background_->renewals.recover();
    background_->subscriber.recover();
    background_->sweepTimer.wait();
    sweepSoon();
    sendOutbox();
}

void Engine::post(std::function<void()> what)
{
    boost::asio::post(background_->io, std::move(what));
}

/// Has something done on the background thread at that time; before, when the client ends. Any thread.
std::shared_ptr<Engine::Later> Engine::after(TimePoint when, std::function<void()> what)
{
    auto later = std::make_shared<Later>(Later{boost::asio::steady_timer(background_->io), std::move(what)});
    post([this, later, when] {
        if (background_->work.owns_work()) {
            background_->later.insert(later);
            later->timer.expires_after(when - BootClock::now());
        } // else the client has ended
        later->timer.async_wait([this, later](boost::system::error_code) {
            background_->later.erase(later);
            if (const auto due = std::exchange(later->what, nullptr)) {
                due();
            }
        });
    });
    return later;
}

bool Engine::submit(std::shared_ptr<HoldCall> call, std::shared_ptr<HoldCall> behind)
{
    const Lane lane = call->hold().lane;
    return submit(lane, std::move(call), std::move(behind));
}

/// Queues a request, and perhaps another right behind it, on a lane's connection; flush() of the commands must follow. Expects the
/// mutex. @return false after shutdown.
bool Engine::submit(Lane lane, std::shared_ptr<Call> call, std::shared_ptr<Call> behind)
{
    if (lane == Lane::commands) {
        return commands_->enqueue(std::move(call), std::move(behind));
    }
    if (outboxClosed_) {
        return false;
    }
    const bool first = outbox_.empty();
    for (auto* each : {&call, &behind}) {
        if (*each != nullptr) {
            (*each)->pending = true;
            outbox_.push_back(std::move(*each));
        }
    }
    if (first) {
        post([this] { sendOutbox(); });
    }
    return true;
}

void Engine::sendOutbox()
{
    Lock lock(mutex_);
    const auto calls = std::exchange(outbox_, {});
    lock.unlock();
    for (auto next = calls.begin(); next != calls.end(); ++next) {
        try {
            background_->renewals.enqueue(*next);
        } catch (...) { // out of memory: recover() sends them
            lock.lock();
            outbox_.insert(outbox_.begin(), next, calls.end());
            throw;
        }
    }
    background_->renewals.flush();
}

/// Takes back a request of the background lane that was not sent yet. Background thread. Expects the mutex.
bool Engine::withdraw(Call& call)
{
    const auto waits = [&call](const auto& other) { return other.get() == &call; };
    if (std::erase_if(outbox_, waits) == 0 && !background_->renewals.withdraw(call)) {
        return false;
    }
    call.pending = false;
    return true;
}

/// The background thread reads the replies that nobody waits for, a little later: then there are more of them.
void Engine::sweepSoon() noexcept
{
    background_->sweepTimer.set(BootClock::now() + sweepPause);
}

std::function<void(bool, Errc)> Engine::reporter(const char* purpose)
{
    if (!config_.observer) {
        return [](bool, Errc) {};
    }
    return [this, purpose](bool up, Errc error) {
        tell([purpose, up, error](Observer& observer) {
            up ? observer.connected(purpose) : observer.disconnected(purpose, error);
        });
    };
}

void Engine::tell(std::function<void(Observer&)> what)
{
    if (config_.observer) {
        post([this, what = std::move(what)] { what(*config_.observer); });
    }
}

/// The hold's name in Redis.
std::string Engine::holderText(const Hold& hold) const
{
    return (id_ + ":" + std::to_string(static_cast<std::uint64_t>(hold.id))).append(hold.lock->traits().holderSuffix);
}

void Engine::tellObserverOf(const Hold& hold, std::function<void(Observer&, const LockEvent&)> what)
{
    tell([what = std::move(what), name = hold.lock->name, holder = holderText(hold)](Observer& observer) {
        what(observer, LockEvent{name, holder});
    });
}

std::chrono::milliseconds Engine::leaseTime(Lease lease) const noexcept
{
    return lease.isRenewed() ? config_.watchdogTimeout : lease.fixed();
}

/// Short enough that a renewal has several tries before the lease is over.
std::chrono::milliseconds Engine::renewalTimeout() const noexcept
{
    return std::clamp<std::chrono::milliseconds>(config_.watchdogTimeout / 6, std::chrono::milliseconds(10),
                                                 config_.commandTimeout);
}

std::shared_ptr<NamedLock> Engine::named(LockKind kind, std::string name)
{
    auto fresh = std::make_shared<NamedLock>(shared_from_this(), kind, std::move(name));
    if (isForked()) {
        return fresh; // good for nothing but errors; the mutex may be locked by a thread that is not here
    }
    std::shared_ptr<NamedLock> known; // let go of after the mutex
    const Lock lock(mutex_);
    const auto found = names_.find(keyOf(*fresh));
    if (found != names_.end()) {
        known = (*found)->weak_from_this().lock(); // null while its destructor waits for the mutex
        if (known) {
            return known;
        }
        names_.erase(found);
    }
    joinOtherKinds(*fresh);
    names_.insert(fresh.get());
    return fresh;
}

void Engine::forgetName(NamedLock& named) noexcept
{
    if (isForked()) {
        return;
    }
    const Lock lock(mutex_);
    named.leaveOtherKinds();
    const auto found = names_.find(keyOf(named));
    if (found != names_.end() && *found == &named) {
        names_.erase(found);
    }
}

std::uint32_t Engine::holdCount(const NamedLock& named) noexcept
{
    if (isForked()) {
        return 0;
    }
    const Lock lock(mutex_);
    const Hold* hold = named.local.of(currentThread());
    return hold != nullptr && BootClock::now() < hold->validUntil() ? hold->levels.count() : 0;
}

std::chrono::milliseconds Engine::validFor(const NamedLock& named) noexcept
{
    if (isForked()) {
        return {};
    }
    const Lock lock(mutex_);
    const Hold* hold = named.local.of(currentThread());
    const auto left = hold == nullptr ? BootClock::duration{} : hold->validUntil() - BootClock::now();
    return std::max(std::chrono::milliseconds{}, std::chrono::floor<std::chrono::milliseconds>(left));
}

std::stop_token Engine::stopToken(const NamedLock& named, StopAt when)
{
    HoldRef hold;
    if (!isForked()) {
        const Lock lock(mutex_);
        hold = named.local.of(currentThread());
    }
    return stopToken(hold.get(), when);
}

std::stop_token Engine::stoppedToken()
{
    static const std::stop_token stopped = [] {
        std::stop_source source;
        source.request_stop();
        return source.get_token();
    }();
    return stopped;
}

std::stop_token Engine::stopToken(Hold* hold, StopAt when)
{
    if (hold == nullptr || isForked()) {
        return stoppedToken();
    }
    const Lock lock(mutex_);
    if (hold->phase != Hold::Phase::held || BootClock::now() >= hold->validUntil()) {
        return stoppedToken();
    }
    if (when == StopAt::atRisk && hold->atRiskTold) {
        return stoppedToken();
    }
    auto& source = when == StopAt::lost ? hold->stopLost : hold->stopAtRisk;
    if (!source.stop_possible()) {
        source = std::stop_source();
    }
    return source.get_token();
}

/// The final state of a hold that was not given up.
void Engine::lose(Hold& hold)
{
    hold.phase.store(Hold::Phase::lost, std::memory_order_release);
    NamedLock& named = *hold.lock;
    background_->watchdog.forget(hold);
    tellLoss(hold);
    auto removed = named.local.remove(hold); // perhaps the last reference: let go of outside the mutex
    post([removed = std::move(removed)]() mutable { removed.reset(); });
    wakeNext(named);
}

/// The outer levels of a hold were over before the inner one ended.
void Engine::loseRest(Hold& hold)
{
    if (hold.levels.count() > 0) {
        tellLoss(hold);
    }
}

/// Remembers the unlock() calls to come and stops the stop tokens, whose callbacks run on the background thread.
void Engine::tellLoss(Hold& hold)
{
    const auto unlocks = hold.levels.countOfThread();
    hold.lock->local.owe(hold.owner, unlocks);
    std::shared_ptr<NamedLock> forgotten;
    if (unlocks > 0 && !closing_) {
        lostNames_.push_back(hold.lock); // a late unlock() must still find the debt
        if (lostNames_.size() > maxLostNames) {
            forgotten = std::move(lostNames_.front());
            lostNames_.pop_front();
        }
    }
    tellOf(hold, [](Observer& observer, const LockEvent& event) { observer.lost(event); });
    post([atRisk = hold.stopAtRisk, lost = hold.stopLost, forgotten = std::move(forgotten)]() mutable {
        atRisk.request_stop();
        lost.request_stop();
    });
}

} // namespace redislock::detail
