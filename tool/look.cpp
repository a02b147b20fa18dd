// The commands that only look, and the one that frees a lock.
#include "settings.hpp"
#include "table.hpp"

#include "redislock/detail/protocol/printable.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>

namespace redislock::tool {

namespace {

std::string inQuotes(std::string_view name)
{
    return '"' + detail::printable(name, 200) + '"';
}

void warnOfRights(const LockMonitor& monitor)
{
    if (!monitor.missingRights().empty()) {
        complain(fmt::format("less is known without these rights: {}", fmt::join(monitor.missingRights(), " ")));
    }
}

void describe(const LockReport& lock)
{
    fmt::print("{} ({}), {}\n", bold(inQuotes(lock.name)), toString(lock.kind),
               timeLeft(lock) + (lock.timeLeft ? " left" : ""));
    for (const auto& holder : lock.holders) {
        fmt::print("  held by {}: {}{}, {} time{}\n", whereabouts(holder), holder.name,
                   holder.writes ? ", to write" : "", holder.count, holder.count == 1 ? "" : "s");
    }
    if (lock.queue.empty()) {
        fmt::print("  {}\n", lock.waiters ? fmt::format("clients that listen for its end: {}", *lock.waiters)
                                          : std::string("how many wait is not known"));
    }
    for (std::size_t i = 0; i < lock.queue.size(); ++i) {
        fmt::print("  waits {}: {}: {}\n", i + 1, whereabouts(lock.queue[i]), lock.queue[i].name);
    }
}

bool isConfirmed(const Settings& settings)
{
    if (settings.yes) {
        return true;
    }
    if (::isatty(STDIN_FILENO) != 1) {
        complain("nobody can be asked: standard input is no terminal; --yes does not ask");
        return false;
    }
    fmt::print("Free it, whatever its holder is doing? [y/N] ");
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

bool isSameHolder(const LockReport& a, const LockReport& b)
{
    return a.kind == b.kind && std::equal(a.holders.begin(), a.holders.end(), b.holders.begin(), b.holders.end(),
                                          [](const auto& one, const auto& other) { return one.name == other.name; });
}

/// What may harm locks on such a server.
std::vector<std::string> problemsOf(const ServerReport& server)
{
    std::vector<std::string> problems;
    if (server.role == "slave") {
        problems.emplace_back("it is a replica: it takes no locks");
    }
    if (server.isLoading) {
        problems.emplace_back("it is loading its data");
    }
    if (!server.evictionPolicy.empty() && server.evictionPolicy != "noeviction") {
        problems.push_back("it drops keys when memory runs out (maxmemory-policy " + server.evictionPolicy +
                           "): locks too; set noeviction");
    }
    if (!server.appendsToFile && server.savesSnapshots == false) {
        problems.emplace_back("it saves nothing: a restart frees all locks");
    }
    if (server.lackingRights && !server.lackingRights->empty()) {
        problems.push_back(fmt::format("the user lacks rights: {}", fmt::join(*server.lackingRights, " ")));
    }
    return problems;
}

void describe(const ServerReport& server, const Client& client)
{
    const auto orUnknown = [](const std::string& text) { return text.empty() ? std::string("not told") : text; };
    fmt::print("server       {} at {}\n", orUnknown(server.version), client.config().endpoint.str());
    fmt::print("role         {}{}\n", orUnknown(server.role),
               server.role == "master" ? fmt::format(", {} replicas", server.replicas) : std::string());
    fmt::print("persistence  append-only file {}{}, snapshots {}\n", server.appendsToFile ? "on" : "off",
               server.appendsToFile && server.appendSync ? " (appendfsync " + *server.appendSync + ")" : "",
               server.savesSnapshots ? (*server.savesSnapshots ? "on" : "off") : "not told");
    fmt::print("memory       {} MiB used of {}, {}\n", server.usedMemory / 1024 / 1024,
               server.maxMemory == 0 ? "any" : fmt::format("{} MiB", server.maxMemory / 1024 / 1024),
               orUnknown(server.evictionPolicy));
    fmt::print("rights       {}\n", !server.lackingRights           ? "not told"
                                    : server.lackingRights->empty() ? "all that RedisLock and FencedLock need"
                                                                    : "some are missing");
}

} // namespace

int ls(const Settings& settings)
{
    LockMonitor monitor(settings.url);
    auto locks = monitor.list(settings.pattern);
    std::sort(locks.begin(), locks.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    if (settings.json) {
        for (const auto& lock : locks) {
            fmt::print("{}\n", jsonOf(lock));
        }
    } else if (!locks.empty()) {
        fmt::print("{}\n", fmt::join(tableOf(locks), "\n"));
    }
    warnOfRights(monitor);
    return exitFine;
}

int who(const Settings& settings)
{
    LockMonitor monitor(settings.url);
    const auto lock = monitor.find(settings.name);
    if (!lock) {
        fmt::print(settings.json ? stderr : stdout, "nobody has a lock {}\n", inQuotes(settings.name));
        return exitNo;
    }
    if (settings.json) {
        fmt::print("{}\n", jsonOf(*lock));
    } else {
        describe(*lock);
    }
    warnOfRights(monitor);
    return exitFine;
}

int kick(const Settings& settings)
{
    LockMonitor monitor(settings.url);
    const auto lock = monitor.find(settings.name);
    if (!lock) {
        fmt::print("nobody has a lock {}\n", inQuotes(settings.name));
        return exitNo;
    }
    describe(*lock);
    if (!isConfirmed(settings)) {
        return exitNo;
    }
    const auto now = monitor.find(settings.name);
    if (!now || !isSameHolder(*lock, *now)) {
        fmt::print("{} has changed hands meanwhile: nothing was done\n", inQuotes(settings.name));
        return exitNo;
    }
    const Client client(settings.url);
    const bool freed = forceUnlock(client, *now);
    fmt::print("{} {}\n", inQuotes(settings.name), freed ? "is free" : "was free already");
    return freed ? exitFine : exitNo;
}

int doctor(const Settings& settings)
{
    const Client client(settings.url);
    client.connect();
    const auto server = LockMonitor(settings.url).server(settings.name.empty() ? "redislock:doctor" : settings.name);
    const auto problems = problemsOf(server);
    if (settings.json) {
        fmt::print("{}\n", jsonOf(server, problems));
    } else {
        describe(server, client);
        for (const auto& problem : problems) {
            fmt::print("{}  {}\n", red("problem    "), problem);
        }
    }
    return problems.empty() ? exitFine : exitNo;
}

} // namespace redislock::tool
