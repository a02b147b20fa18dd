#include "runtime/engine/engine.hpp"

#include "redislock/error.hpp"
#include "runtime/base/fresh_seed.hpp"
#include "runtime/base/process.hpp"
#include "runtime/counter/counter.hpp"

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
              detail::tell(listener, kind, text);
          },
          engine.reporter("notifications")),
      random(freshSeed())
{
}

std::shared_ptr<Engine> Engine::make(Config config)
{
    config.validate();
    return std::shared_ptr<Engine>(new Engine(std::move(config)));
}

Engine::Engine(Config config)
    : config_(std::move(config)),
      generation_(forkGeneration()),
      core_(*this, config_, to_string(boost::uuids::random_generator()()), freshSeed()),
      background_(std::make_unique<Background>(*this))
{
    background_->renewalTimer.onRing([this] { ring(); });
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
    {
        const Lock lock(mutex_);
        core_.renewing.recover();
    }
    background_->renewalTimer.wait();
    background_->renewals.recover();
    background_->subscriber.recover();
    background_->sweepTimer.wait();
    sweepSoon();
    sendOutbox();
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

/// Short enough that a renewal has several tries before the lease is over.
std::chrono::milliseconds Engine::renewalTimeout() const noexcept
{
    return std::clamp<std::chrono::milliseconds>(config_.watchdogTimeout / 6, std::chrono::milliseconds(10),
                                                 config_.commandTimeout);
}

std::shared_ptr<NamedLock> Engine::named(LockKind kind, std::string name)
{
    auto fresh = std::make_shared<NamedLock>(shared_from_this(), core_, kind, std::move(name));
    if (isForked()) {
        return fresh; // good for nothing but errors; the mutex may be locked by a thread that is not here
    }
    std::shared_ptr<NamedLock> known; // let go of after the mutex
    const Lock lock(mutex_);
    known = core_.knownOrAdd(*fresh);
    return known ? known : fresh;
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
    return Core::stoppedToken();
}

std::stop_token Engine::stopToken(Hold* hold, StopAt when)
{
    if (hold == nullptr || isForked()) {
        return stoppedToken();
    }
    const Lock lock(mutex_);
    return core_.stopToken(*hold, when);
}

} // namespace redislock::detail
