#include "redislock/client.hpp"

#include "client/async_calls.hpp"
#include "client/engine.hpp"
#include "client/lock/thread_calls.hpp"
#include "client/lock/throwing.hpp"
#include "core/counter/counter.hpp"
#include "redislock/error.hpp"
#include "values/durability_text.hpp"
#include "values/printable.hpp"
#include "wire/key_schema.hpp"
#include "wire/slot.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace redislock {

namespace {

constexpr std::size_t maxNameBytes = 1024;

std::string checked(std::string name)
{
    if (name.empty() || name.size() > maxNameBytes) {
        throw LockError(Errc::invalidArgument, "the name \"" + detail::printable(name) + "\" has " +
                                                   std::to_string(name.size()) + " bytes, but must have 1 to " +
                                                   std::to_string(maxNameBytes));
    }
    return name;
}

/// In a cluster all keys and channels of a name must be in one slot. Their names have it in braces, unless it contains
/// a brace itself.
std::string checked(const detail::Engine& engine, std::string name, bool isLatch = false)
{
    name = checked(std::move(name));
    if (engine.config().cluster.empty()) {
        return name;
    }
    const auto channel = isLatch ? detail::latchChannel(name) : detail::lockChannel(name);
    for (const auto& other :
         {channel, detail::prefixed(detail::tokenPrefix, name), detail::suffixed(name, "timeout")}) {
        if (detail::slotOf(other) != detail::slotOf(name)) {
            throw LockError(Errc::invalidArgument,
                            "the name \"" + detail::printable(name) + "\" is in slot " +
                                std::to_string(detail::slotOf(name)) + ", but \"" + detail::printable(other) +
                                "\" in slot " + std::to_string(detail::slotOf(other)) +
                                ": in a cluster a name has no braces, or exactly one pair with something between them" +
                                (isLatch ? "; that of a latch has none" : ""));
        }
    }
    return name;
}

std::shared_ptr<detail::NamedLock> stateOf(const std::shared_ptr<detail::Engine>& engine,
                                           const detail::KindTraits& kind, std::string name)
{
    return engine->named(kind, checked(*engine, std::move(name)));
}

/// @param durability nothing: that of the configuration
Durability durabilityOf(const detail::Engine& engine, const std::optional<Durability>& durability)
{
    if (durability && !detail::isInRange(*durability)) {
        throw LockError(Errc::invalidArgument, "the durability is " + detail::inWords(*durability) + ", but it " +
                                                   std::string(detail::durabilityRange));
    }
    return durability.value_or(engine.config().durability);
}

std::shared_ptr<detail::NamedCounter> stateOf(const std::shared_ptr<detail::Engine>& engine, detail::CounterKind kind,
                                              std::string name)
{
    return engine->counter(kind, checked(*engine, std::move(name), kind == detail::CounterKind::countDownLatch));
}

} // namespace

template <>
void detail::programAndLibraryHaveTheSameAsioOptions<detail::asioOptions()>() noexcept
{
}

Client::Client(std::string_view url) : Client(Config::fromUrl(url)) {}

Client::Client(Config config) : engine_(detail::Engine::make(std::move(config))) {}

Client::Client(Client&& other) noexcept : engine_(other.engine_), isOwner_(std::exchange(other.isOwner_, false)) {}

Client& Client::operator=(Client&& other) noexcept
{
    if (this != &other) {
        if (isOwner_) {
            shutdown();
        }
        engine_ = other.engine_;
        isOwner_ = std::exchange(other.isOwner_, false);
    }
    return *this;
}

Client::~Client()
{
    if (isOwner_) {
        shutdown();
    }
}

RedisLock Client::getLock(std::string name, std::optional<Durability> durability) const
{
    return {stateOf(engine_, detail::KindTraits::redisLock, std::move(name)), durabilityOf(*engine_, durability)};
}

NonReentrantLock Client::getNonReentrantLock(std::string name, std::optional<Durability> durability) const
{
    return {stateOf(engine_, detail::KindTraits::nonReentrantLock, std::move(name)),
            durabilityOf(*engine_, durability)};
}

SpinLock Client::getSpinLock(std::string name, RetryPolicy retry, std::optional<Durability> durability) const
{
    return {stateOf(engine_, detail::KindTraits::spinLock, std::move(name)), durabilityOf(*engine_, durability),
            std::make_shared<const RetryPolicy>(std::move(retry))};
}

FairLock Client::getFairLock(std::string name, std::optional<Durability> durability) const
{
    return {stateOf(engine_, detail::KindTraits::fairLock, std::move(name)), durabilityOf(*engine_, durability)};
}

FencedLock Client::getFencedLock(std::string name, std::optional<Durability> durability) const
{
    return {stateOf(engine_, detail::KindTraits::fencedLock, std::move(name)), durabilityOf(*engine_, durability)};
}

ReadWriteLock Client::getReadWriteLock(std::string name, std::optional<Durability> durability) const
{
    const auto both = durabilityOf(*engine_, durability);
    WriteLock write(stateOf(engine_, detail::KindTraits::writeLock, name), both);
    return {ReadLock(stateOf(engine_, detail::KindTraits::readLock, std::move(name)), both), std::move(write)};
}

Semaphore Client::getSemaphore(std::string name) const
{
    return Semaphore(stateOf(engine_, detail::CounterKind::semaphore, std::move(name)));
}

PermitExpirableSemaphore Client::getPermitExpirableSemaphore(std::string name) const
{
    return PermitExpirableSemaphore(stateOf(engine_, detail::CounterKind::permitExpirableSemaphore, std::move(name)));
}

CountDownLatch Client::getCountDownLatch(std::string name) const
{
    return CountDownLatch(stateOf(engine_, detail::CounterKind::countDownLatch, std::move(name)));
}

SegmentedLock Client::getSegmentedLock(std::string name, std::size_t segments,
                                       std::optional<Durability> durability) const
{
    if (segments == 0 || segments > SegmentedLock::maxSegments) {
        throw LockError(Errc::invalidArgument, "the segmented lock \"" + detail::printable(name) + "\" has " +
                                                   std::to_string(segments) + " segments, but must have 1 to " +
                                                   std::to_string(SegmentedLock::maxSegments));
    }
    if (name.empty()) {
        throw LockError(Errc::invalidArgument, "a segmented lock needs a name");
    }
    std::vector<RedisLock> locks;
    locks.reserve(segments);
    for (std::size_t i = 0; i < segments; ++i) {
        locks.push_back(getLock(name + ":" + std::to_string(i), durability));
    }
    return {std::move(name), std::move(locks)};
}

std::function<RedisLock(std::string)> Client::locks() const
{
    return [engine = engine_](std::string name) {
        return RedisLock(stateOf(engine, detail::KindTraits::redisLock, std::move(name)), engine->config().durability);
    };
}

void Client::connect() const
{
    std::error_code ec;
    connect(ec);
    if (ec) {
        const detail::LastErrors& lastErrors = engine_->lastErrors();
        throw LockError(ec, "connect to " + lastErrors.server(), lastErrors.about(ec).text);
    }
}

std::string Client::describe(const std::error_code& ec, std::string_view call) const
{
    const detail::LastErrors& lastErrors = engine_->lastErrors();
    if (call.empty()) {
        return detail::LastErrors::isOfServer(ec) ? lastErrors.sentence(ec) : ec.message();
    }
    return detail::failedCallAt(lastErrors, std::string(call), ec).error(ec).what();
}

void Client::connect(std::error_code& ec) const
{
    detail::ThreadCalls::connect(*engine_, ec);
}

bool Client::shutdown(std::chrono::milliseconds timeout) noexcept
{
    return engine_->shutdown(timeout);
}

void Client::startConnect(const State& engine, detail::FlagHandler handler)
{
    detail::AsyncCalls::connect(*engine, std::move(handler));
}

void Client::startShutdown(const State& engine, std::chrono::milliseconds timeout, detail::FlagHandler handler)
{
    detail::AsyncCalls::shutdown(*engine, timeout, std::move(handler));
}

const std::string& Client::id() const noexcept
{
    return engine_->id();
}

const Config& Client::config() const noexcept
{
    return engine_->config();
}

} // namespace redislock
