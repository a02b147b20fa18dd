#include "simulation/permit_checker.hpp"

#include "simulation/safety_checker.hpp"
#include "wire/key_schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace redislock::simulation {

namespace scripts = detail::scripts;

namespace {

constexpr std::string_view permitRule = "S11 permits";
constexpr std::string_view noEnd = "922337203685477"; ///< the end of a permit that does not expire

/// Whether a lease with this end in the server is over at least a millisecond after @p until.
bool covers(const std::string& end, VirtualTime until)
{
    return end == noEnd || until <= std::chrono::milliseconds(numberIn(end).value_or(0) - Keyspace::epochMs - 1);
}

std::int64_t sum(const std::map<std::string, std::int64_t>& numbers)
{
    return std::accumulate(numbers.begin(), numbers.end(), std::int64_t{0},
                           [](std::int64_t all, const auto& entry) { return all + entry.second; });
}

} // namespace

void PermitChecker::believes(const std::string& name, const std::string& who, std::int64_t permits, VirtualTime now,
                             VirtualTime until)
{
    Semaphore& semaphore = semaphores_[name];
    semaphore.beliefs[who] = {permits, until};
    std::int64_t all = 0;
    for (const auto& [each, belief] : semaphore.beliefs) {
        all += now < belief.until ? belief.permits : 0;
    }
    if (!semaphore.isExcused && all > semaphore.permits.value_or(0)) {
        throw Violation(permitRule, fmt::format("{} permits of {} are believed to be taken, there are {}", all, name,
                                                semaphore.permits.value_or(0)));
    }
    checkBeliefs(name, semaphore, now);
}

void PermitChecker::ends(const std::string& name, const std::string& who)
{
    semaphores_[name].beliefs.erase(who);
}

void PermitChecker::executed(const Request& request, const Reply& reply, VirtualTime now)
{
    if (reply.isError() && reply.text.starts_with("ERR")) {
        throw Violation("valid requests", fmt::format("{} answered {}", request.script->name, reply.text));
    }
    Semaphore& semaphore = semaphores_[request.name];
    if (semaphore.isExcused) {
        return;
    }
    if (!reply.isError()) {
        foresee(semaphore, request, reply);
    }
    checkServer(request.name, semaphore, now);
    checkBeliefs(request.name, semaphore, now);
}

/// Judges the effect of the request, if it is executed for the first time, and its answer in any case.
void PermitChecker::foresee(Semaphore& semaphore, const Request& request, const Reply& reply)
{
    const auto* script = request.script;
    const auto number = [&](std::size_t argument) { return numberIn(request.arguments.at(argument)).value(); };
    const std::int64_t left = semaphore.permits.value_or(0) - sum(semaphore.taken);
    if (script == &scripts::counterTrySet) {
        count(semaphore, request, semaphore.permits ? 0 : 1, 0, reply);
        semaphore.permits = semaphore.permits.value_or(number(0));
    } else if (script == &scripts::semaphoreAcquire) {
        const auto permits = number(0);
        const auto known = semaphore.answers.find(recordOf(request));
        const bool granted = known ? *known > 0 : permits <= left;
        if (granted && !known) {
            semaphore.answers.keep(recordOf(request), permits);
            semaphore.taken[processOfRecord(recordOf(request))] += permits;
        }
        if (granted != (reply.kind == Reply::Kind::nil)) {
            throw Violation(permitRule, fmt::format("{} asks for {} of {} permits and is told the contrary",
                                                    recordOf(request), permits, left));
        }
    } else if (script == &scripts::semaphoreDrain) {
        count(semaphore, request, std::max<std::int64_t>(left, 0), std::max<std::int64_t>(left, 0), reply);
    } else if (script == &scripts::semaphoreAdd) {
        count(semaphore, request, 1, -number(0), reply);
    } else if (script == &scripts::semaphoreWithdraw) {
        const auto granted = semaphore.answers.find(recordOf(request)).value_or(0);
        semaphore.answers.keep(recordOf(request), 0);
        semaphore.taken[processOfRecord(recordOf(request))] -= granted;
        if (reply.integer != granted) {
            throw Violation(permitRule, fmt::format("{} had {} permits and gave back {}", recordOf(request), granted,
                                                    reply.integer));
        }
    }
}

/// Counts a request whose answer is kept. @param byProcess by how many permits its process then has more.
void PermitChecker::count(Semaphore& semaphore, const Request& request, std::int64_t answer, std::int64_t byProcess,
                          const Reply& reply) const
{
    const auto& record = recordOf(request);
    if (!semaphore.answers.find(record)) {
        semaphore.answers.keep(record, answer);
        semaphore.taken[processOfRecord(record)] += byProcess;
    }
    if (reply.integer != *semaphore.answers.find(record)) {
        throw Violation(permitRule, fmt::format("{} of {} was answered {} instead of {}", request.script->name, record,
                                                reply.integer, *semaphore.answers.find(record)));
    }
}

const Keyspace::Key* PermitChecker::leases(const std::string& name, VirtualTime now) const
{
    return keyspace_.find(detail::suffixed(name, "timeout"), millisecondOf(now));
}

/// Checks that the free permits and the taken permits are all there are.
void PermitChecker::checkServer(const std::string& name, const Semaphore& semaphore, VirtualTime now) const
{
    const auto* leased = leases(name, now);
    const auto taken = leased == nullptr ? sum(semaphore.taken) : static_cast<std::int64_t>(leased->fields.size());
    if (numberAt(keyspace_, name, now) + taken != semaphore.permits.value_or(0)) {
        throw Violation(permitRule, fmt::format("{} has {} permits, of which {} are free and {} are taken", name,
                                                semaphore.permits.value_or(0), numberAt(keyspace_, name, now), taken));
    }
}

/// Checks that the server has the permits that clients believe in, and for at least a millisecond longer.
void PermitChecker::checkBeliefs(const std::string& name, const Semaphore& semaphore, VirtualTime now) const
{
    if (semaphore.isExcused) {
        return;
    }
    std::map<std::string, std::int64_t> believed;
    for (const auto& [who, belief] : semaphore.beliefs) {
        if (now >= belief.until) {
            continue;
        }
        if (who.find(':') != std::string::npos) {
            believed[who.substr(0, who.find(':'))] += belief.permits;
            continue;
        }
        const auto* leased = leases(name, now);
        const auto* end = leased == nullptr ? nullptr : leased->find(who);
        if (end == nullptr || !covers(*end, belief.until)) {
            throw Violation(permitRule, fmt::format("{} believes to have a permit of {} until {:.3f} ms, the server {}",
                                                    who, name, static_cast<double>(belief.until.count()) / 1e6,
                                                    end == nullptr ? "does not know of it" : "until " + *end));
        }
    }
    for (const auto& [process, permits] : believed) {
        const auto known = semaphore.taken.find(process);
        if (known == semaphore.taken.end() || known->second < permits) {
            throw Violation(permitRule,
                            fmt::format("{} believes to have {} permits of {}, the server knows of {}", process,
                                        permits, name, known == semaphore.taken.end() ? 0 : known->second));
        }
    }
}

void PermitChecker::expectAllFree(VirtualTime now) const
{
    for (const auto& [name, semaphore] : semaphores_) {
        if (semaphore.isExcused) {
            continue;
        }
        checkServer(name, semaphore, now);
        for (const auto& [process, permits] : semaphore.taken) {
            if (keepers_.contains(process) ? permits < 0 : permits != 0) {
                throw Violation(permitRule, fmt::format("{} has {} permits of {} in the end", process, permits, name));
            }
        }
        const auto* leased = leases(name, now);
        for (std::size_t i = 0; leased != nullptr && i < leased->fields.size(); ++i) {
            const auto& [id, till] = leased->fields[i];
            if (!keepers_.contains(processOfPermit(id)) || till != noEnd) {
                throw Violation(permitRule, fmt::format("{} has a permit of {} in the end", id, name));
            }
        }
    }
}

} // namespace redislock::simulation
