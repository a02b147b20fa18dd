// Frees locks whose holders do not.
#include "settings.hpp"
#include "table.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>

namespace redislock::tool {

namespace {

bool isConfirmed(const Settings& settings, const std::string& question)
{
    if (settings.yes) {
        return true;
    }
    if (::isatty(STDIN_FILENO) != 1) {
        complain("cannot ask whether to go on, because standard input is not a terminal: say --yes to go on unasked");
        return false;
    }
    fmt::print("{} [y/N] ", question);
    std::fflush(stdout);
    std::string answer;
    std::getline(std::cin, answer);
    return answer == "y" || answer == "Y" || answer == "yes";
}

bool forceUnlock(const Client& client, const LockReport& lock)
{
    switch (lock.kind) {
    case ObjectKind::readLock:
        return client.getReadWriteLock(lock.name).readLock().forceUnlock();
    case ObjectKind::writeLock:
        return client.getReadWriteLock(lock.name).writeLock().forceUnlock();
    case ObjectKind::fairLock:
        return client.getFairLock(lock.name).forceUnlock();
    default:
        return client.getLock(lock.name).forceUnlock();
    }
}

/// Frees the lock if it is still held as it was reported. @return whether it was freed
bool freeAsReported(LockMonitor& monitor, const Client& client, const LockReport& lock)
{
    const auto now = monitor.find(lock.name);
    if (!now || now->kind != lock.kind ||
        !std::ranges::equal(now->holders, lock.holders, {}, &LockHolder::name, &LockHolder::name)) {
        fmt::print("{} has changed hands meanwhile: it was left alone\n", inQuotes(lock.name));
        return false;
    }
    const bool freed = forceUnlock(client, *now);
    fmt::print("{} {}\n", inQuotes(lock.name), freed ? "is free" : "was free already");
    return freed;
}

int kickOne(const Settings& settings)
{
    LockMonitor monitor(settings.url);
    const auto lock = monitor.find(settings.name);
    if (!lock) {
        fmt::print("nobody holds lock {}\n", inQuotes(settings.name));
        return exitNo;
    }
    describe(*lock);
    if (!isConfirmed(settings, "Free it, whatever its holder is doing?")) {
        return exitNo;
    }
    return freeAsReported(monitor, Client(settings.url), *lock) ? exitFine : exitNo;
}

/// Says since when the machine has been silent: a client that renews locks sends something every few seconds.
void describeSilence(const std::vector<LockReport>& locks, const std::string& host)
{
    std::optional<std::chrono::seconds> silence;
    for (const auto& lock : locks) {
        for (const auto& holder : lock.holders) {
            if (holder.host == host && holder.silentFor) {
                silence = std::min(silence.value_or(*holder.silentFor), *holder.silentFor);
            }
        }
    }
    if (silence) {
        fmt::print("{} last sent something {} s ago{}\n", shown(host), silence->count(),
                   *silence < std::chrono::seconds(60) ? ": it may well be alive, and go on as if it held these locks"
                                                       : "");
    }
}

int kickHost(const Settings& settings)
{
    LockMonitor monitor(settings.url);
    std::vector<LockReport> locks;
    std::size_t nameless = 0;
    for (auto& lock : monitor.list()) {
        const auto isThere = [&](const LockHolder& holder) { return holder.host == settings.host; };
        nameless += std::ranges::any_of(lock.holders, [](const auto& each) { return each.host.empty(); }) ? 1 : 0;
        if (std::ranges::none_of(lock.holders, isThere)) {
            continue;
        }
        if (std::ranges::all_of(lock.holders, isThere) && !lock.hasMoreHolders) {
            locks.push_back(std::move(lock));
        } else {
            complain(inQuotes(lock.name) + " is read from other machines too: it is left alone");
        }
    }
    warnOfRights(monitor);
    if (nameless > 0) {
        complain(fmt::format("of {} it is unknown on which machine the holder is (gone, or Redisson's): redislock ls",
                             counted(nameless, "lock")));
    }
    if (locks.empty()) {
        fmt::print("no lock is known to be held on {}\n", shown(settings.host));
        return exitNo;
    }
    sortLocks(locks, Sort::name);
    fmt::print("{}\n", fmt::join(tableOf(locks, Sort::name, outputWidth()), "\n"));
    describeSilence(locks, settings.host);
    if (!isConfirmed(settings,
                     fmt::format("Free {}, whatever {} is doing?",
                                 locks.size() == 1 ? "this lock" : fmt::format("these {} locks", locks.size()),
                                 shown(settings.host)))) {
        return exitNo;
    }
    const Client client(settings.url);
    const auto freed =
        std::ranges::count_if(locks, [&](const LockReport& lock) { return freeAsReported(monitor, client, lock); });
    return static_cast<std::size_t>(freed) == locks.size() ? exitFine : exitNo;
}

} // namespace

int kick(const Settings& settings)
{
    return settings.host.empty() ? kickOne(settings) : kickHost(settings);
}

} // namespace redislock::tool
