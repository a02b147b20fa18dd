#include "objects.hpp"

#include "repeat.hpp"
#include "support/raw_redis.hpp"

#include <fmt/format.h>

#include <concepts>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace redislock::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using Outcome = std::optional<std::string>;

Outcome yes(bool is = true)
{
    return is ? Outcome("") : std::nullopt;
}

Outcome told(auto number)
{
    return fmt::format("{}", number);
}

milliseconds time(const Words& arguments, std::size_t index)
{
    return milliseconds(std::stol(arguments.at(index)));
}

// As in Java: no word, or -1, means the watchdog's lease.
Lease lease(const Words& arguments, std::size_t index)
{
    return index < arguments.size() && arguments[index] != "-1" ? Lease(time(arguments, index)) : keepRenewing;
}

[[noreturn]] void unknown(const std::string& what)
{
    throw std::invalid_argument("unknown: " + what);
}

// Java throws if a lock was lost before its unlock.
Outcome ended(Unlocked how)
{
    if (how == Unlocked::alreadyLost || how == Unlocked::unconfirmed) {
        throw std::runtime_error(how == Unlocked::alreadyLost ? "alreadyLost" : "unconfirmed");
    }
    return yes();
}

} // namespace

// --- Locks
// -------------------------------------------------------------------------------------------------------------

struct Objects::Shared {
    std::mutex mutex;
    std::map<std::string, AnyLock> locks;  // a group's holds are those of one object
    std::map<std::string, Permit> permits; // that were not released
};

Objects::Objects(const std::vector<std::string>& urls, milliseconds watchdog, milliseconds place, milliseconds patience,
                 std::shared_ptr<Observer> observer)
    : shared_(std::make_unique<Shared>())
{
    for (const auto& url : urls) {
        auto config = Config::fromUrl(url);
        config.watchdogTimeout = watchdog;
        config.pollInterval = place / 5;
        config.observer = observer;
        if (patience > 0ms) {
            config.connectTimeout = patience;
            config.commandTimeout = patience;
        }
        servers_.emplace_back(std::move(config));
    }
    std::error_code failed;
    servers_.front().connect(failed);
    for (int attempt = 1; failed && attempt < 10; ++attempt) { // on a busy machine
        servers_.front().connect(failed);
    }
    if (failed) {
        throw LockError(failed, "the first connection", {});
    }
}

Objects::Objects(Objects&&) noexcept = default;
Objects::~Objects() = default;

Outcome Objects::run(const std::string& kind, const std::string& operation, const std::string& name,
                     const Words& arguments)
{
    const auto& client = servers_.front();
    if (kind == "semaphore") {
        return onSemaphore(client.getSemaphore(name), operation, arguments);
    }
    if (kind == "permitExpirableSemaphore") {
        return onPermits(client.getPermitExpirableSemaphore(name), operation, arguments);
    }
    if (kind == "countDownLatch") {
        return onLatch(client.getCountDownLatch(name), operation, arguments);
    }
    return std::visit([&](const auto& lock) { return onLock(lock, operation, arguments); }, lock(kind, name));
}

Turnstile Objects::turnstile(const std::string& kind, const std::string& name, bool fresh)
{
    const auto& client = servers_.front();
    if (kind == "semaphore") {
        const auto semaphore = client.getSemaphore(name);
        return {[semaphore] { semaphore.acquire(); }, [semaphore] { semaphore.release(); }};
    }
    if (kind == "permitExpirableSemaphore") {
        const auto semaphore = client.getPermitExpirableSemaphore(name);
        const auto permit = std::make_shared<Permit>();
        const auto lease = client.config().watchdogTimeout;
        return {[=] { *permit = semaphore.acquire(lease); }, [=] { (void)ended(permit->release()); }};
    }
    const auto any = fresh ? makeLock(kind, name) : lock(kind, name);
    return {[any] { std::visit([](const auto& lock) { lock.lock(); }, any); },
            [any] { std::visit([](const auto& lock) { (void)ended(lock.unlock()); }, any); }};
}

Objects::AnyLock Objects::lock(const std::string& kind, const std::string& name)
{
    const std::lock_guard guard(shared_->mutex);
    const auto key = kind + ' ' + name;
    if (const auto found = shared_->locks.find(key); found != shared_->locks.end()) {
        return found->second;
    }
    return shared_->locks.emplace(key, makeLock(kind, name)).first->second;
}

Objects::AnyLock Objects::makeLock(const std::string& kind, const std::string& name) const
{
    const auto& client = servers_.front();
    const std::map<std::string, std::function<AnyLock()>> kinds{
        {"lock", [&] { return client.getLock(name); }},
        {"spinLock", [&] { return client.getSpinLock(name); }},
        {"nonReentrant", [&] { return client.getNonReentrantLock(name); }},
        {"fairLock", [&] { return client.getFairLock(name); }},
        {"readLock", [&] { return client.getReadWriteLock(name).readLock(); }},
        {"writeLock", [&] { return client.getReadWriteLock(name).writeLock(); }},
        {"fencedLock", [&] { return client.getFencedLock(name); }},
        {"multiLock", [&] { return MultiLock(members(name)); }},
        {"redLock", [&] { return RedLock(members(name)); }},
    };
    const auto found = kinds.find(kind);
    return found == kinds.end() ? throw std::invalid_argument("no kind " + kind) : found->second();
}

// a,b@1: the lock a on the first server, b on the second
std::vector<Lock> Objects::members(const std::string& names) const
{
    std::vector<Lock> locks;
    std::istringstream list(names);
    for (std::string name; std::getline(list, name, ',');) {
        const auto at = name.find('@');
        const auto server = at == std::string::npos ? 0 : std::stoul(name.substr(at + 1));
        locks.push_back(servers_.at(server).getLock(name.substr(0, at)));
    }
    return locks;
}

template <class AnyOfThem>
Outcome Objects::onLock(const AnyOfThem& lock, const std::string& operation, const Words& arguments)
{
    if (operation == "lock") {
        lock.lock(lease(arguments, 0));
        return yes();
    }
    if (operation == "tryLock") {
        return yes(arguments.empty() ? lock.tryLock() : lock.tryLock(time(arguments, 0), lease(arguments, 1)));
    }
    if (operation == "unlock") {
        return ended(lock.unlock());
    }
    if (operation == "isHeld") {
        return yes(lock.isHeldByCurrentThread());
    }
    if (repeats(operation)) {
        return repeat(
            operation, arguments.at(0), [&] { lock.lock(); }, [&] { (void)ended(lock.unlock()); });
    }
    if constexpr (std::derived_from<AnyOfThem, Lock>) {
        if (operation == "forceUnlock") {
            return yes(lock.forceUnlock());
        }
        if (operation == "isLocked") {
            return yes(lock.isLocked());
        }
        if (operation == "holdCount") {
            return told(lock.holdCount());
        }
        if (operation == "ttl") {
            const auto left = lock.remainingTimeToLive();
            return told(left ? left->count() : -2);
        }
    }
    if constexpr (std::same_as<AnyOfThem, FencedLock>) {
        if (operation == "lockAndGetToken") {
            return told(static_cast<std::uint64_t>(lock.lockAndGetToken()));
        }
        if (operation == "countTokens") {
            const auto& server = servers_.front().config().endpoint;
            RawRedis redis(server.host, server.port);
            const auto enter = [&] {
                const auto token = fmt::format("{}", static_cast<std::uint64_t>(lock.lockAndGetToken()));
                redis.command({"RPUSH", arguments.at(0) + ":tokens", token});
            };
            return repeat("count", arguments.at(0), enter, [&] { (void)ended(lock.unlock()); });
        }
        if (operation == "tryLockAndGetToken") {
            const auto token = lock.tryLockAndGetToken(time(arguments, 0), lease(arguments, 1));
            return token ? told(static_cast<std::uint64_t>(*token)) : std::nullopt;
        }
    }
    unknown(operation);
}

// --- Semaphores and the latch
// ------------------------------------------------------------------------------------------

Outcome Objects::onSemaphore(const Semaphore& semaphore, const std::string& operation, const Words& arguments)
{
    const auto number = [&] { return std::stol(arguments.at(0)); };
    if (operation == "trySetPermits") {
        return yes(semaphore.trySetPermits(number()));
    }
    if (operation == "acquire") {
        semaphore.acquire(number());
        return yes();
    }
    if (operation == "tryAcquire") {
        return yes(semaphore.tryAcquire(number(), time(arguments, 1)));
    }
    if (operation == "release") {
        semaphore.release(number());
        return yes();
    }
    if (operation == "available") {
        return told(semaphore.availablePermits());
    }
    if (repeats(operation)) {
        return repeat(
            operation, arguments.at(0), [&] { semaphore.acquire(); }, [&] { semaphore.release(); });
    }
    unknown(operation);
}

Outcome Objects::onPermits(const PermitExpirableSemaphore& semaphore, const std::string& operation,
                           const Words& arguments)
{
    const auto keep = [&](Permit permit) -> Outcome {
        if (!permit) {
            return std::nullopt;
        }
        const std::lock_guard guard(shared_->mutex);
        auto id = permit.id();
        shared_->permits[id] = std::move(permit);
        return id;
    };
    if (operation == "trySetPermits") {
        return yes(semaphore.trySetPermits(std::stol(arguments.at(0))));
    }
    if (operation == "acquire") {
        return keep(semaphore.acquire(arguments.empty() ? nonExpiring : lease(arguments, 0)));
    }
    if (operation == "tryAcquire") {
        return keep(semaphore.tryAcquire(time(arguments, 0), lease(arguments, 1)));
    }
    if (operation == "release") {
        std::unique_lock guard(shared_->mutex);
        auto mine = shared_->permits.extract(arguments.at(0));
        guard.unlock();
        return ended(mine ? mine.mapped().release() : semaphore.release(arguments.at(0)));
    }
    if (operation == "available") {
        return told(semaphore.availablePermits());
    }
    if (repeats(operation)) {
        Permit permit;
        return repeat(
            operation, arguments.at(0), [&] { permit = semaphore.acquire(nonExpiring); },
            [&] { (void)ended(permit.release()); });
    }
    unknown(operation);
}

Outcome Objects::onLatch(const CountDownLatch& latch, const std::string& operation, const Words& arguments)
{
    if (operation == "trySetCount") {
        return yes(latch.trySetCount(std::stol(arguments.at(0))));
    }
    if (operation == "countDown") {
        latch.countDown();
        return yes();
    }
    if (operation == "getCount") {
        return told(latch.getCount());
    }
    if (operation == "await") {
        return yes(latch.wait(arguments.empty() ? waitForever : Wait(time(arguments, 0))));
    }
    unknown(operation);
}

Outcome Objects::repeat(const std::string& what, const std::string& key, const std::function<void()>& enter,
                        const std::function<void()>& leave) const
{
    return told(test::repeat(servers_.front().config().endpoint, what, key, enter, leave));
}

} // namespace redislock::test
