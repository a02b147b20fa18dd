#include "history/recorded_lock.hpp"

#include "history/outcome_name.hpp"

#include <array>

namespace redislock::test::history {

void HistoryObserver::note(const LockEvent& event, Op op, std::string error) noexcept
{
    const std::string holder(event.holder);
    recorder_->write({.client = holder.substr(0, holder.rfind(':')),
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

void HistoryObserver::atRisk(const LockEvent& event, std::chrono::nanoseconds) noexcept
{
    note(event, Op::atRisk);
}

void HistoryObserver::lost(const LockEvent& event) noexcept
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
}

RecordedLock::RecordedLock(std::shared_ptr<Recorder> recorder, const Client& client, const std::string& name,
                           int thread)
    : log_(std::move(recorder), client, name, thread), lock_(client.getLock(name))
{
}

Belief RecordedLock::belief() const
{
    return {lock_.validFor(), lock_.holdCount()};
}

bool RecordedLock::tryLock(Wait wait, Lease lease)
{
    log_.lockBegins(wait, lease);
    std::error_code ec;
    const bool acquired = lock_.tryLock(wait, lease, ec);
    acquired ? log_.locked([this] { return belief(); }) : log_.notLocked(ec);
    return acquired;
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
