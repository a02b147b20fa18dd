// The commands that show locks once.
#include "settings.hpp"
#include "table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace redislock::tool {

void printLocks(std::vector<LockReport> locks, const Settings& settings, Sort order)
{
    const auto more = locks.size() - std::min(locks.size(), settings.limit);
    const auto rest = more == 0 ? std::string() : fmt::format("{} and {} more", ellipsis(), more);
    locks.resize(locks.size() - more);
    if (!settings.json) {
        fmt::print("{}\n{}{}", fmt::join(tableOf(locks, order, outputWidth()), "\n"), rest, more == 0 ? "" : "\n");
        return;
    }
    for (const auto& lock : locks) {
        fmt::print("{}\n", jsonOf(lock));
    }
    if (more > 0) {
        complain(rest);
    }
}

int ls(const Settings& settings)
{
    LockMonitor monitor(settings.url);
    std::vector<LockReport> locks;
    const auto all = monitor.forEachPage(settings.pattern, [&locks](const auto& page, const auto&) {
        locks.insert(locks.end(), page.begin(), page.end());
        return true;
    });
    if (locks.empty() && settings.pattern.find_first_of("*?[\\") == std::string::npos) {
        (void)monitor.find(settings.pattern); // says why it is not in the list, if there is anything
    }
    const auto order = settings.sort.value_or(Sort::name);
    sortLocks(locks, order);
    if (settings.json || !locks.empty()) {
        printLocks(std::move(locks), settings, order);
    }
    if (all.others > 0) {
        complain(
            fmt::format("hashes that are not locks, so that nobody can take locks of their names: {}", all.others));
    }
    warnOfRights(monitor);
    if (all.unreadable > 0) {
        complain(fmt::format("keys that may be locks, and that the user may not read: {}", all.unreadable));
        return exitError;
    }
    return exitFine;
}

int who(const Settings& settings)
{
    LockMonitor monitor(settings.url);
    const auto lock = monitor.find(settings.name);
    if (!lock) {
        fmt::print(settings.json ? stderr : stdout, "nobody holds lock {}\n", inQuotes(settings.name));
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

} // namespace redislock::tool
