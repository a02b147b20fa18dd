#include "simulation/poll_checker.hpp"

#include "simulation/safety_checker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace redislock::simulation {

void PollChecker::executed(const std::string& name, std::int64_t free)
{
    auto& chances = chances_[name];
    for (auto& chance : chances) {
        chance.isOver = chance.isOver || free < chance.permits;
    }
    if (!isOn_) {
        return;
    }
    for (auto& waiter : waiters_(name)) {
        if (free >= waiter.permits && !isKnown(name, waiter.who)) {
            chances.push_back({waiter.who, waiter.permits, false});
            scheduler_.at(scheduler_.now() + waiter.within,
                          [this, name, chance = std::prev(chances.end())] { judge(name, chance); });
        }
    }
}

bool PollChecker::isKnown(const std::string& name, const std::string& who) const
{
    return std::ranges::any_of(chances_.at(name),
                               [&](const Chance& chance) { return chance.who == who && !chance.isOver; });
}

void PollChecker::judge(const std::string& name, std::list<Chance>::iterator chance)
{
    const auto waiters = waiters_(name);
    const bool waits = std::ranges::any_of(waiters, [&](const Waiter& waiter) { return waiter.who == chance->who; });
    if (waits && !chance->isOver) {
        throw Violation("T4 no lost wake-up",
                        fmt::format("{} could have had what it waits for of {} for a whole poll", chance->who, name));
    }
    chances_[name].erase(chance);
}

} // namespace redislock::simulation
