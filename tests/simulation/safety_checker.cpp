#include "simulation/safety_checker.hpp"

#include "core/machine/acquire_machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace redislock::simulation {

using detail::KindTraits;

namespace {

double ms(VirtualTime time)
{
    return static_cast<double>(time.count()) / 1e6;
}

constexpr std::string_view modeField = "mode"; ///< the field of a read/write lock

using Field = std::pair<std::string, std::string>;
using Others = std::vector<Field>;

std::string_view modeOf(const Keyspace::Key& key)
{
    const std::string* mode = key.find(modeField);
    return mode == nullptr ? std::string_view() : std::string_view(*mode);
}

bool isHolder(const Field& field)
{
    return field.first != modeField;
}

/// Whether the field is that of a writer of a read/write lock.
bool isWriter(const Field& field)
{
    return field.first.ends_with(KindTraits::of(detail::LockKind::writeLock).holderSuffix);
}

/// The fields of other holders.
Others othersOf(const Keyspace::Key& key, const std::string& holder)
{
    Others others;
    std::copy_if(key.fields.begin(), key.fields.end(), std::back_inserter(others),
                 [&](const Field& field) { return isHolder(field) && field.first != holder; });
    return others;
}

/// Whether the key's holders let the reader of that request in: they read too, or are the reader's own write hold.
bool admits(const Keyspace::Key& key, const Request& request)
{
    return request.kind->asking == detail::Asking::each &&
           (modeOf(key) == "read" || key.find(request.arguments.at(3)) != nullptr);
}

bool hasHolder(const Request& request)
{
    return request.verb == Request::Verb::script && !request.arguments.empty();
}

} // namespace

void SafetyChecker::believes(const Claim& claim, VirtualTime now, VirtualTime until)
{
    const auto& [name, holder, thread, isShared] = claim;
    if (over_.contains(holder)) {
        throw Violation("S9 lost is final", fmt::format("{} holds {} again after its hold was over", holder, name));
    }
    auto& beliefs = beliefs_[name];
    Belief* own = nullptr;
    for (auto& belief : beliefs) {
        const Claim& other = belief.claim;
        const bool fits = (isShared && other.isShared) || (!thread.empty() && thread == other.thread);
        if (other.holder == holder) {
            own = &belief;
        } else if (!fits && now < belief.until && now < until && !isExcused(other.holder) && !isExcused(holder)) {
            throw Violation(isShared || other.isShared ? "S10 readers and writers" : "S1 mutual exclusion",
                            fmt::format("{} and {} both believe to hold {}", other.holder, holder, name));
        }
    }
    if (own == nullptr) {
        own = &beliefs.emplace_back(Belief{claim, until});
    }
    own->claim = claim;
    own->until = until;
    checkTruth(*own, now);
}

void SafetyChecker::passes(const std::string& name, const std::string& holder, std::uint64_t requests, VirtualTime now)
{
    if (over_.contains(holder)) {
        throw Violation("S9 lost is final",
                        fmt::format("{} was passed on after its hold of {} was over", holder, name));
    }
    expectCount(name, holder, 1, now);
    passedAt_[holder] = requests;
}

/// When a hold is passed on, all earlier requests for it must be executed already, except renewals, which belong to the
/// holder.
void SafetyChecker::checkLate(const Request& request) const
{
    const bool sets = request.does(&KindTraits::lock) || request.does(&KindTraits::unlock);
    const auto passed = sets && !isCopy_ ? passedAt_.find(request.arguments.at(0)) : passedAt_.end();
    if (passed != passedAt_.end() && request.number <= passed->second) {
        throw Violation("S5 no foreign release or renewal",
                        fmt::format("{} of {} was executed after it was passed on, and was asked for before",
                                    request.script->name, passed->first));
    }
}

void SafetyChecker::ends(const std::string& name, const std::string& holder)
{
    over_.insert(holder);
    std::erase_if(beliefs_[name], [&](const Belief& belief) { return belief.claim.holder == holder; });
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
    isCopy_ = true;
    if (request.does(&KindTraits::unlock)) {
        releasedByCopy_.insert(request.arguments.at(0));
    }
}

void SafetyChecker::before(const Request& request, VirtualTime now)
{
    keysBefore_.clear();
    parts_ = partsOf(request);
    for (const auto& part : parts_) {
        keyBefore_.reset();
        beforeOne(part, now);
        keysBefore_.push_back(std::move(keyBefore_));
    }
    isCopy_ = false;
}

void SafetyChecker::after(const Request& /*request*/, const Reply& reply, VirtualTime now)
{
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        keyBefore_ = keysBefore_.at(i);
        const bool isOthers = std::ranges::any_of(parts_, [&](const Request& other) {
            return &other != &parts_[i] && other.name == parts_[i].name && keyBefore_ && hadIt(other);
        });
        if (hadIt(parts_[i]) || !isOthers) { // a client may believe in a hold that was taken from it
            afterOne(parts_[i], reply, now);
        }
    }
}

void SafetyChecker::beforeOne(const Request& request, VirtualTime now)
{
    if (request.verb != Request::Verb::script) {
        return;
    }
    if (const auto* key = keyspace_.find(request.name, millisecondOf(now))) {
        keyBefore_ = *key;
    }
    if (request.does(&KindTraits::forceUnlock) && hadIt(request)) {
        excuse(request.name);
    }
    checkLate(request);
    queueBefore_.clear();
    if (request.kind != nullptr && request.kind->asking == detail::Asking::queue && !request.otherKeys.empty()) {
        if (const auto* queue = keyspace_.find(request.otherKeys[0], millisecondOf(now))) {
            queueBefore_ = queue->fields;
        }
    }
    if (hasHolder(request)) {
        auto& latest = latest_[request.arguments[0]];
        if (request.number < latest) {
            disordered_.insert(request.arguments[0]);
        }
        latest = std::max(latest, request.number);
    }
}

void SafetyChecker::afterOne(const Request& request, const Reply& reply, VirtualTime now)
{
    if (request.verb != Request::Verb::script) {
        return;
    }
    const Keyspace::Key* key = keyspace_.find(request.name, millisecondOf(now));
    passedTo_ = key != nullptr && grants(request, *key) ? key->fields.front().first : std::string();
    if (request.kind != nullptr && (key == nullptr ? keyBefore_.has_value() : keyBefore_ != *key)) {
        checkChange(request, key);
        if (key != nullptr && key->expiresAtMs) {
            persisted_.erase(request.name);
        }
    }
    if (request.kind != nullptr) {
        checkTimesToLive(request);
        checkToken(request, reply);
        checkReaders(request, reply, now);
    }
    if (request.kind == &KindTraits::of(detail::LockKind::spinLock) && request.does(&KindTraits::unlock) &&
        !request.arguments.at(3).empty()) {
        throw Violation("valid requests",
                        request.name + ": nobody listens for a spin lock, and its release names a channel");
    }
    if (reply.isError() && reply.text.starts_with("ERR")) {
        throw Violation("valid requests", fmt::format("{} answered {}", request.script->name, reply.text));
    }
    for (const auto& belief : beliefs_[request.name]) {
        checkTruth(belief, now);
    }
}

bool SafetyChecker::hadIt(const Request& request) const
{
    return keyBefore_ && hasHolder(request) && keyBefore_->find(request.arguments[0]) != nullptr;
}

/// Whether the request passed a free lock, or its own holder's lock, to another waiter in the queue of that lock.
bool SafetyChecker::grants(const Request& request, const Keyspace::Key& key) const
{
    const bool mayPass = (hadIt(request) && !request.does(&KindTraits::lock)) || !keyBefore_;
    const auto& holder = key.fields.front().first;
    const auto& count = key.fields.front().second;
    return mayPass && hasHolder(request) && holder != request.arguments[0] && key.fields.size() == 1 && count == "1" &&
           std::ranges::any_of(queueBefore_, [&](const Field& waiter) { return waiter.first == holder; });
}

/// A request may change only a key that its own holder has; lock.lua also a free key, or a key with readers if it adds
/// another reader. In a key that stays only the field of that holder changes.
void SafetyChecker::checkChange(const Request& request, const Keyspace::Key* key) const
{
    const std::string& holder = request.arguments.at(0);
    const bool locks = request.does(&KindTraits::lock);
    if (!passedTo_.empty()) {
        return;
    }
    if (!hadIt(request) && !(locks && (!keyBefore_ || admits(*keyBefore_, request)))) {
        throw Violation("S5 no foreign release or renewal", fmt::format("{} of {} changed {}, which it does not have",
                                                                        request.script->name, holder, request.name));
    }
    if (key == nullptr) {
        return;
    }
    if (othersOf(*key, holder) != (keyBefore_ ? othersOf(*keyBefore_, holder) : Others())) {
        throw Violation("S5 no foreign release or renewal", fmt::format("{} of {} changed others' holds of {}",
                                                                        request.script->name, holder, request.name));
    }
    const auto holders = std::count_if(key->fields.begin(), key->fields.end(), isHolder);
    const auto writers = std::count_if(key->fields.begin(), key->fields.end(), isWriter);
    const auto mode = modeOf(*key);
    if (mode.empty() ? holders != 1 : holders == 0 || writers != (mode == "write" ? 1 : 0)) {
        throw Violation("S5 one holder", fmt::format("{} has {} holders", request.name, holders));
    }
}

/// All keys that a script may have written must have a time to live, except the last token.
void SafetyChecker::checkTimesToLive(const Request& request) const
{
    const auto& keys = keyspace_.keys();
    const auto check = [](const auto& key) {
        if (!key.second.expiresAtMs && !key.first.starts_with(detail::tokenPrefix)) {
            throw Violation("R4 no key without time to live", key.first);
        }
    };
    if (const auto found = keys.find(request.name);
        found != keys.end() && found->second.type == Keyspace::Type::hash && !persisted_.contains(request.name)) {
        check(*found);
    }
    for (const std::string& other : request.otherKeys) { // or the prefix of other keys
        for (auto key = keys.lower_bound(other); key != keys.end() && key->first.starts_with(other); ++key) {
            check(*key);
        }
    }
}

/// The end of a hold of a read/write lock may leave the lock to readers only if the lease of one of them is not over.
void SafetyChecker::checkReaders(const Request& request, const Reply& reply, VirtualTime now) const
{
    const Keyspace::Key* key = keyspace_.find(request.name, millisecondOf(now));
    const bool ends = request.does(&KindTraits::unlock) && reply.kind == Reply::Kind::integer && reply.integer > 0;
    if (!ends || key == nullptr || modeOf(*key) != "read") {
        return;
    }
    const auto& keys = keyspace_.keys();
    const std::string prefix = request.otherKeys.at(0) + ":";
    for (auto hold = keys.lower_bound(prefix); hold != keys.end() && hold->first.starts_with(prefix); ++hold) {
        const auto reader = hold->first.substr(prefix.size(), hold->first.find(":rwlock_timeout:") - prefix.size());
        if (key->find(reader) != nullptr && keyspace_.find(hold->first, millisecondOf(now)) != nullptr) {
            return;
        }
    }
    throw Violation("S7 no residue",
                    fmt::format("{} left {} to readers that are gone", request.script->name, request.name));
}

/// A new hold must get a greater token than all before it, and keep this token.
void SafetyChecker::checkToken(const Request& request, const Reply& reply)
{
    if (!request.does(&KindTraits::lock) || reply.kind != Reply::Kind::array || detail::LockAnswer::refusal(reply)) {
        return;
    }
    const auto answer = detail::LockAnswer::from(reply, detail::Tokens::given, detail::Level::outermost);
    const auto token = answer ? answer->token : 0;
    const auto last = std::exchange(tokens_[request.name], token);
    if (hadIt(request) ? token != last : token <= last) {
        throw Violation("S4 growing tokens",
                        fmt::format("{} got {} for {}, after {}", request.arguments[0], token, request.name, last));
    }
}

void SafetyChecker::expectToken(const std::string& holder, std::uint64_t has, std::uint64_t got) const
{
    if (has != got && !isExcused(holder) && !disordered_.contains(holder)) {
        throw Violation("S4 growing tokens", fmt::format("{} has {} and got {} with a level", holder, has, got));
    }
}

/// The server must have the lock for the believer for at least a millisecond longer than it believes.
void SafetyChecker::checkTruth(const Belief& belief, VirtualTime now) const
{
    const auto& [name, holder, thread, isShared] = belief.claim;
    if (now >= belief.until || isExcused(holder)) {
        return;
    }
    const Keyspace::Key* key = keyspace_.find(name, millisecondOf(now));
    if (key == nullptr || key->find(holder) == nullptr) {
        throw Violation("S2 belief is true",
                        fmt::format("{} believes to hold {} until {:.3f} ms, but the server does not have it", holder,
                                    name, ms(belief.until)));
    }
    if (key->expiresAtMs && !isLagging(holder) && belief.until > VirtualTime((*key->expiresAtMs - 1) * 1'000'000)) {
        throw Violation("S3 conservative deadline",
                        fmt::format("{} believes to hold {} until {:.3f} ms, the server until {} ms", holder, name,
                                    ms(belief.until), *key->expiresAtMs));
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

VirtualTime SafetyChecker::believedUntil(const std::string& name, const std::string& holder) const
{
    const auto found = beliefs_.find(name);
    for (std::size_t i = 0; found != beliefs_.end() && i < found->second.size(); ++i) {
        if (found->second[i].claim.holder == holder) {
            return found->second[i].until;
        }
    }
    return VirtualTime{0};
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
