#include "simulation/safety_checker.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace redislock::simulation {

namespace {

double ms(VirtualTime time)
{
    return static_cast<double>(time.count()) / 1e6;
}

bool sameKey(const Keyspace::Key* a, const Keyspace::Key* b)
{
    if (a == nullptr || b == nullptr) {
        return a == b;
    }
    return a->fields == b->fields && a->expiresAtMs == b->expiresAtMs && a->isHash == b->isHash;
}

bool hasHolder(const Request& request)
{
    return request.verb == Request::Verb::script && !request.arguments.empty();
}

} // namespace

void SafetyChecker::believes(const std::string& name, const std::string& holder, VirtualTime now, VirtualTime until)
{
    if (over_.contains(holder)) {
        throw Violation("S9 lost is final", fmt::format("{} holds {} again after its hold was over", holder, name));
    }
    auto& beliefs = beliefs_[name];
    Belief* own = nullptr;
    for (auto& belief : beliefs) {
        if (belief.holder == holder) {
            own = &belief;
        } else if (now < belief.until && now < until && !isExcused(belief.holder) && !isExcused(holder)) {
            throw Violation("S1 mutual exclusion",
                            fmt::format("{} and {} both believe to hold {}", belief.holder, holder, name));
        }
    }
    if (own == nullptr) {
        own = &beliefs.emplace_back(Belief{holder, until});
    }
    own->until = until;
    checkTruth(name, *own, now);
}

void SafetyChecker::ends(const std::string& name, const std::string& holder)
{
    over_.insert(holder);
    std::erase_if(beliefs_[name], [&](const Belief& belief) { return belief.holder == holder; });
}

void SafetyChecker::excuse(const std::string& name)
{
    if (const auto found = keyspace_.keys().find(name); found != keyspace_.keys().end()) {
        for (const auto& field : found->second.fields) {
            excused_.insert(field.first);
        }
    }
}

void SafetyChecker::excuseAll()
{
    for (const auto& [name, key] : keyspace_.keys()) {
        excuse(name);
    }
}

void SafetyChecker::copied(const Request& request)
{
    if (request.script == &detail::scripts::redisLockUnlock) {
        releasedByCopy_.insert(request.arguments.at(0));
    }
}

void SafetyChecker::before(const Request& request, VirtualTime now)
{
    keyBefore_.reset();
    if (request.verb != Request::Verb::script) {
        return;
    }
    if (const auto* key = keyspace_.find(request.name, millisecondOf(now))) {
        keyBefore_ = *key;
    }
    if (hasHolder(request)) {
        auto& latest = latest_[request.arguments[0]];
        if (request.number < latest) {
            disordered_.insert(request.arguments[0]);
        }
        latest = std::max(latest, request.number);
    }
}

void SafetyChecker::after(const Request& request, const Reply& reply, VirtualTime now)
{
    if (request.verb != Request::Verb::script) {
        return;
    }
    const Keyspace::Key* key = keyspace_.find(request.name, millisecondOf(now));
    if (!sameKey(keyBefore_ ? &*keyBefore_ : nullptr, key)) {
        checkChange(request, key);
        if (key != nullptr && key->expiresAtMs) {
            persisted_.erase(request.name);
        }
    }
    if (key != nullptr && key->isHash && !key->expiresAtMs && !persisted_.contains(request.name)) {
        throw Violation("R4 no key without time to live", request.name);
    }
    if (reply.isError() && reply.text.starts_with("ERR")) {
        throw Violation("valid requests", fmt::format("{} answered {}", request.script->name, reply.text));
    }
    for (const auto& belief : beliefs_[request.name]) {
        checkTruth(request.name, belief, now);
    }
}

/// A request may change a key that its own holder has, and lock.lua one that nobody has; nothing else.
void SafetyChecker::checkChange(const Request& request, const Keyspace::Key* key)
{
    const std::string& holder = request.arguments.at(0);
    const bool own = keyBefore_ && keyBefore_->find(holder) != nullptr;
    const bool locks = request.script == &detail::scripts::redisLockLock;
    if (keyBefore_ ? !own : !locks) {
        throw Violation("S5 no foreign release or renewal", fmt::format("{} of {} changed {}, which it does not have",
                                                                        request.script->name, holder, request.name));
    }
    if (key != nullptr && key->fields.size() != 1) {
        throw Violation("S5 one holder", fmt::format("{} has {} holders", request.name, key->fields.size()));
    }
}

/// The server has the lock for the believer for at least a millisecond longer than it believes.
void SafetyChecker::checkTruth(const std::string& name, const Belief& belief, VirtualTime now) const
{
    if (now >= belief.until || isExcused(belief.holder)) {
        return;
    }
    const Keyspace::Key* key = keyspace_.find(name, millisecondOf(now));
    if (key == nullptr || key->find(belief.holder) == nullptr) {
        throw Violation("S2 belief is true",
                        fmt::format("{} believes to hold {} until {:.3f} ms, but the server does not have it",
                                    belief.holder, name, ms(belief.until)));
    }
    if (key->expiresAtMs && belief.until > VirtualTime((*key->expiresAtMs - 1) * 1'000'000)) {
        throw Violation("S3 conservative deadline",
                        fmt::format("{} believes to hold {} until {:.3f} ms, the server until {} ms", belief.holder,
                                    name, ms(belief.until), *key->expiresAtMs));
    }
}

void SafetyChecker::expectCount(const std::string& name, const std::string& holder, std::uint32_t count,
                                VirtualTime now) const
{
    if (isExcused(holder) || disordered_.contains(holder)) {
        return;
    }
    const Keyspace::Key* key = keyspace_.find(name, millisecondOf(now));
    const std::string* stored = key == nullptr ? nullptr : key->find(holder);
    if (stored != nullptr && *stored != std::to_string(count)) {
        throw Violation("S6 exact hold count",
                        fmt::format("{} holds {} {} times, the server says {}", holder, name, count, *stored));
    }
}

void SafetyChecker::expectGone(const std::string& name, const std::string& holder, VirtualTime now) const
{
    const Keyspace::Key* key = keyspace_.find(name, millisecondOf(now));
    if (key != nullptr && key->find(holder) != nullptr && !disordered_.contains(holder)) {
        throw Violation("S8 honest answers", fmt::format("{} was released, but still has {}", holder, name));
    }
}

void SafetyChecker::toldGone(const std::string& holder, const char* by) const
{
    if (!isExcused(holder) && !releasedByCopy_.contains(holder)) {
        throw Violation("S8 honest answers", fmt::format("{}: {} was lost, though nobody took it", by, holder));
    }
}

void SafetyChecker::renews(const std::string& holder) const
{
    if (over_.contains(holder)) {
        throw Violation("S9 lost is final", fmt::format("a renewal of {} was begun after its hold was over", holder));
    }
}

std::size_t SafetyChecker::believers(const std::string& name, VirtualTime now) const
{
    const auto found = beliefs_.find(name);
    return found == beliefs_.end()
               ? 0
               : static_cast<std::size_t>(std::count_if(found->second.begin(), found->second.end(),
                                                        [now](const Belief& b) { return now < b.until; }));
}

} // namespace redislock::simulation
