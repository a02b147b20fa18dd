#include "history/recorded_lock.hpp"

#include "history/keys.hpp"
#include "history/outcome_name.hpp"

#include <array>
#include <stdexcept>

namespace redislock::test::history {
namespace {

Lock lockOf(const Client& client, const std::string& kind, const std::string& name)
{
    if (kind.empty() || kind == "reentrant") {
        return client.getLock(name);
    }
    if (kind == "nonReentrant") {
        return client.getNonReentrantLock(name);
    }
    if (kind == "spin") {
        return client.getSpinLock(name);
    }
    if (kind == "fair") {
        return client.getFairLock(name);
    }
    if (kind == "fenced") {
        return client.getFencedLock(name);
    }
    if (kind == "read") {
        return client.getReadWriteLock(name).readLock();
    }
    if (kind == "write") {
        return client.getReadWriteLock(name).writeLock();
    }
    throw std::invalid_argument("no kind of lock: " + kind);
}

} // namespace

void HistoryObserver::note(const LockEvent& event, Op op, std::string error) noexcept
{
    const std::string holder(event.holder);
    if (holder.empty()) {
        return; // of a group, whose holds are its members'
    }
    recorder_->write({.client = clientOf(holder),
                      .holder = holder,
                      .lock = std::string(event.name),
                      .op = op,
                      .error = std::move(error)});
}

void HistoryObserver::acquired(const LockEvent& event, std::chrono::nanoseconds, std::uint32_t) noexcept
{
    note(event, Op::acquired);
}

void HistoryObserver::renewed(const LockEvent& event, std::chrono::nanoseconds) noexcept
{
    note(event, Op::renewed);
}

void HistoryObserver::renewalFailed(const LockEvent& event, std::error_code error) noexcept
{
    note(event, Op::renewalFailed, error.message());
}

void HistoryObserver::atRisk(const LockEvent& event, std::chrono::nanoseconds, LossReason) noexcept
{
    note(event, Op::atRisk);
}

void HistoryObserver::lost(const LockEvent& event, LossReason) noexcept
{
    note(event, Op::lost);
}

void HistoryObserver::released(const LockEvent& event, Unlocked how, std::chrono::nanoseconds) noexcept
{
    note(event, Op::released, nameOf(how));
}

void HistoryObserver::unconfirmed(const LockEvent& event) noexcept
{
    note(event, Op::unconfirmed);
}

void recordSettings(Recorder& recorder, const Client& client)
{
    const auto& config = client.config();
    const std::array<std::pair<const char*, std::chrono::milliseconds>, 5> settings{
        {{"watchdogTimeout", config.watchdogTimeout},
         {"commandTimeout", config.commandTimeout},
         {"connectTimeout", config.connectTimeout},
         {"unreachableAfter", config.unreachableAfter},
         {"pollInterval", config.pollInterval}}};
    for (const auto& [name, value] : settings) {
        recorder.write({.client = client.id(), .op = Op::settings, .count = value.count(), .error = name});
    }
    if (const auto& durability = config.durability; durability.level != Durability::Level::none) {
        recorder.write({.client = client.id(),
                        .op = Op::settings,
                        .count = durability.within.count(),
                        .error = "durabilityWithin"});
    }
}

RecordedLock::RecordedLock(std::shared_ptr<Recorder> recorder, const Client& client, const std::string& name,
                           int thread, const std::string& kind)
    : kind_(kind),
      log_(std::move(recorder), client, kind, name, thread),
      lock_(lockOf(client, kind, name)),
      fenced_(kind == "fenced" ? std::optional(client.getFencedLock(name)) : std::nullopt)
{
}

Belief RecordedLock::belief() const
{
    return {lock_.validFor(), lock_.holdCount()};
}

void RecordedLock::taken(const AskBelief& ask, const LockGuard& guard) const
{
    log_.locked(ask, {.token = static_cast<std::uint64_t>(guard.token().value_or(FencingToken{}))});
}

bool RecordedLock::tryLock(Wait wait, Lease lease)
{
    log_.lockBegins(wait, lease);
    std::error_code ec;
    const auto token = attempt(wait, lease, ec);
    token ? log_.locked([this] { return belief(); }, {.token = *token}) : log_.notLocked(ec);
    return token.has_value();
}

std::optional<std::uint64_t> RecordedLock::attempt(Wait wait, Lease lease, std::error_code& ec) const
{
    if (fenced_) {
        const auto token = fenced_->tryLockAndGetToken(wait, lease, ec);
        return token ? std::optional(static_cast<std::uint64_t>(*token)) : std::nullopt;
    }
    return lock_.tryLock(wait, lease, ec) ? std::optional<std::uint64_t>(0) : std::nullopt;
}

Unlocked RecordedLock::unlock()
{
    log_.unlockBegins();
    std::error_code ec;
    const auto how = lock_.unlock(ec);
    log_.unlocked(how, ec, lock_.holdCount());
    return how;
}

bool RecordedLock::sample()
{
    return log_.sample([this] { return belief(); });
}

} // namespace redislock::test::history
