#include "holding.hpp"

#include <fmt/format.h>

#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <future>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <utility>

namespace redislock::tool {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds silentWait{1000}; ///< after that it says for whom it waits

/// Has those who wait for signals look again. For other threads.
void wake() noexcept
{
    ::kill(::getpid(), SIGCHLD);
}

class HeldLock final : public Holding {
public:
    explicit HeldLock(LockGuard guard)
        : guard_(std::move(guard)), atRisk_(guard_.stopToken(StopAt::atRisk), wake), lost_(guard_.stopToken(), wake)
    {
    }

    [[nodiscard]] milliseconds validFor() const override { return guard_.validFor(); }
    [[nodiscard]] bool isAtRisk() const override { return guard_.stopToken(StopAt::atRisk).stop_requested(); }
    [[nodiscard]] std::optional<FencingToken> token() const override { return guard_.token(); }
    Unlocked release(std::error_code& ec) override { return guard_.release(ec); }

private:
    LockGuard guard_;
    std::stop_callback<void (*)()> atRisk_;
    std::stop_callback<void (*)()> lost_;
};

/// A permit is not renewed by the library, so that is done here.
class HeldPermit final : public Holding {
public:
    /// @param renewed whether the lease is
    HeldPermit(PermitExpirableSemaphore semaphore, Permit permit, milliseconds lease, bool renewed)
        : semaphore_(std::move(semaphore)), permit_(std::move(permit)), lease_(lease), isRenewed_(renewed)
    {
        thread_ = std::jthread([this](const std::stop_token& stop) { keep(stop); });
    }

    [[nodiscard]] milliseconds validFor() const override { return isGone_ ? milliseconds(0) : permit_.validFor(); }
    [[nodiscard]] bool isAtRisk() const override { return validFor() <= (isRenewed_ ? lease_ / 2 : lease_ / 3); }
    Unlocked release(std::error_code& ec) override
    {
        thread_.request_stop();
        thread_.join();
        return permit_.release(ec);
    }

private:
    void keep(const std::stop_token& stop)
    {
        std::mutex mutex;
        std::condition_variable_any ended;
        std::unique_lock lock(mutex);
        while (!stop.stop_requested() && validFor().count() > 0) {
            const auto left = validFor();
            const auto due = isRenewed_ ? lease_ * 2 / 3 : lease_ / 3;
            const auto pause = left > due ? left - due : std::min(lease_ / 10, milliseconds(1000));
            ended.wait_for(lock, stop, pause + milliseconds(1), [] { return false; });
            std::error_code ec;
            if (isRenewed_ && !stop.stop_requested()) {
                isGone_ = !semaphore_.updateLeaseTime(permit_.id(), lease_, ec) && !ec;
            }
            if (isAtRisk()) {
                wake();
            }
        }
        wake();
    }

    PermitExpirableSemaphore semaphore_;
    Permit permit_;
    const milliseconds lease_;
    const bool isRenewed_;
    std::atomic<bool> isGone_{false};
    std::jthread thread_;
};

Lock lockOf(const Client& client, const Settings& settings)
{
    switch (settings.hold) {
    case Hold::shared:
        return client.getReadWriteLock(settings.name).readLock();
    case Hold::writing:
        return client.getReadWriteLock(settings.name).writeLock();
    default:
        return client.getFencedLock(settings.name);
    }
}

std::unique_ptr<Holding> acquirePermit(const Client& client, const Settings& settings, const std::stop_token& stop)
{
    const auto semaphore = client.getPermitExpirableSemaphore(settings.name);
    const auto permits = semaphore.trySetPermits(settings.holders) ? settings.holders : semaphore.getPermits();
    if (permits != settings.holders) {
        throw std::runtime_error(
            fmt::format("semaphore {} has {} permits, not {}: all who use it must name the same number",
                        inQuotes(settings.name), permits, settings.holders));
    }
    const auto lease = settings.lease.value_or(client.config().watchdogTimeout);
    auto permit = semaphore.tryAcquire(settings.wait ? Wait(*settings.wait) : waitForever, lease, stop);
    return permit ? std::make_unique<HeldPermit>(semaphore, std::move(permit), lease, !settings.lease) : nullptr;
}

std::unique_ptr<Holding> acquire(const Client& client, const Settings& settings, std::stop_token stop)
{
    if (settings.hold == Hold::permit) {
        return acquirePermit(client, settings, stop);
    }
    LockGuard guard(lockOf(client, settings), settings.wait ? Wait(*settings.wait) : waitForever,
                    settings.lease ? Lease(*settings.lease) : keepRenewing, std::move(stop));
    return guard ? std::make_unique<HeldLock>(std::move(guard)) : nullptr;
}

/// Who keeps others from having it, as far as that can be found out.
std::string whoHolds(const Settings& settings)
{
    try {
        Config config = Config::fromUrl(settings.url);
        config.commandTimeout = std::min<milliseconds>(config.commandTimeout, silentWait);
        if (settings.hold == Hold::permit) {
            return fmt::format("all {} permits are taken", settings.holders);
        }
        const auto lock = LockMonitor(config).find(settings.name);
        return lock ? heldBy(*lock) : "free again now";
    } catch (const std::exception&) { // a right is missing, or there is no server
        return "held by others";
    }
}

/// Writes a line to standard error without waiting for those who read it.
void write(const std::string& words)
{
    const auto line = "redislock: " + words + "\n";
    pollfd error{STDERR_FILENO, POLLOUT, 0};
    if (::poll(&error, 1, 0) == 1 && (error.revents & POLLOUT) != 0) {
        (void)!::write(STDERR_FILENO, line.data(), line.size());
    }
}

std::string thing(const Settings& settings)
{
    return (settings.hold == Hold::permit ? "semaphore " : "lock ") + inQuotes(settings.name);
}

using Future = std::future<std::unique_ptr<Holding>>;

/// Says after a second who holds it. @return the signal that ended the wait; 0: none did
int waitUntilReady(const Future& obtained, const Settings& settings, const Signals& signals)
{
    const auto until = steady_clock::now() + silentWait;
    std::optional<std::jthread> asking;
    while (obtained.wait_for(milliseconds(0)) != std::future_status::ready) {
        const auto silent = std::chrono::ceil<milliseconds>(until - steady_clock::now()).count();
        pollfd event{signals.handle(), POLLIN, 0};
        if (::poll(&event, 1, asking || settings.isQuiet ? -1 : std::max(static_cast<int>(silent), 0)) == 0) {
            asking.emplace([&settings](const std::stop_token& stop) {
                const auto who = whoHolds(settings);
                if (!stop.stop_requested()) {
                    write("waiting for " + thing(settings) + ": " + who);
                }
            });
        }
        const auto come = signals.next();
        if (come.signal == SIGTSTP) {
            stopByTerminal();
        } else if (come.signal != 0 && !come.isIgnored && come.signal != SIGCONT && come.signal != SIGCHLD) {
            return come.signal;
        }
    }
    return 0;
}

std::unique_ptr<Holding> resultOf(Future& obtained)
{
    try {
        return obtained.get();
    } catch (const LockError& error) {
        if (error.code() != Errc::wrongType) {
            throw;
        }
        throw std::runtime_error(std::string(error.what()) +
                                 ". --shared and --exclusive take one kind of lock, --holders another, and run without "
                                 "them a third: each kind needs names of its own");
    }
}

} // namespace

Deadline::Deadline()
    : handle_(madeHandle(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK), "timerfd_create"))
{
}

Deadline::~Deadline()
{
    ::close(handle_);
}

void Deadline::set(milliseconds fromNow) const noexcept
{
    itimerspec time{};
    time.it_value.tv_sec = static_cast<std::time_t>(fromNow.count() / 1000);
    time.it_value.tv_nsec = static_cast<long>(fromNow.count() % 1000) * 1'000'000 + 1; // zero would disarm it
    ::timerfd_settime(handle_, 0, &time, nullptr);
}

void say(const Settings& settings, const std::string& words)
{
    write(thing(settings) + " " + words);
}

Obtained obtain(const Client& client, const Settings& settings, const Signals& signals)
{
    std::packaged_task<std::unique_ptr<Holding>(std::stop_token)> task(
        [&](std::stop_token stop) { return acquire(client, settings, std::move(stop)); });
    auto obtained = task.get_future();
    const auto begin = steady_clock::now();
    const std::jthread thread([&task](std::stop_token stop) {
        task(std::move(stop));
        wake();
    });
    if (const int signal = waitUntilReady(obtained, settings, signals); signal != 0) {
        return {nullptr, signal};
    }
    Obtained result{resultOf(obtained)};
    const auto time = inWords(std::chrono::round<milliseconds>(steady_clock::now() - begin));
    if (result.holding && settings.isVerbose) {
        write(fmt::format("getting {} took {}", thing(settings), time));
    }
    if (!result.holding && !settings.isQuiet) {
        say(settings, fmt::format("could not be taken{}: {}", settings.wait == milliseconds(0) ? "" : " in " + time,
                                  whoHolds(settings)));
    }
    return result;
}

Unlocked giveBack(Holding& holding, const Settings& settings, bool wasEnded)
{
    std::error_code ec;
    const auto how = holding.release(ec);
    if (how == Unlocked::unconfirmed) {
        say(settings, "was released, but the server did not answer: it is free when its lease ends");
    }
    if (how == Unlocked::alreadyLost && !wasEnded) {
        say(settings, "was lost before it could be released");
    }
    return how;
}

bool holdOn(const Holding& holding, const Settings& settings, const Signals& signals, int process)
{
    const Deadline deadline;
    std::array<pollfd, 3> events{{{signals.handle(), POLLIN, 0}, {deadline.handle(), POLLIN, 0}, {process, POLLIN, 0}}};
    for (bool isWarned = false;;) {
        for (auto come = signals.next(); come.signal != 0; come = signals.next()) {
            if (come.signal == SIGTSTP) {
                stopByTerminal();
            } else if (!come.isIgnored && come.signal != SIGCONT && come.signal != SIGCHLD) {
                return false;
            }
        }
        const auto left = holding.validFor();
        if (left.count() == 0) {
            say(settings, "is lost");
            return true;
        }
        if ((events[2].revents & POLLIN) != 0) {
            return false;
        }
        if (holding.isAtRisk() && !std::exchange(isWarned, true)) {
            say(settings, "is at risk, and ends in " + inWords(left));
        }
        deadline.set(left);
        ::poll(events.data(), events.size(), -1);
    }
}

} // namespace redislock::tool
