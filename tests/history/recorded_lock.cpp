#include "history/recorded_lock.hpp"

#include "support/eventually.hpp"

#include <array>

namespace redislock::test::history {
namespace {

constexpr std::array unlockedNames{"released", "stillHeld", "alreadyLost", "unconfirmed"};

std::string nameOf(Unlocked how)
{
    return unlockedNames.at(static_cast<std::size_t>(how));
}

/// Whether the request of a call that ended with this error may have been executed.
bool effectUnknown(std::error_code error)
{
    return error == Errc::unreachable || error == Errc::serverRefused || error == Errc::badReply ||
           error == Errc::shutdown;
}

} // namespace

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
    : recorder_(std::move(recorder)),
      client_(client.id()),
      lock_(client.getLock(name)),
      thread_(thread),
      watchdogMs_(client.config().watchdogTimeout.count())
{
}

Record RecordedLock::line(Op op, Phase phase) const
{
    return {.thread = thread_, .client = client_, .lock = lock_.name(), .op = op, .phase = phase};
}

Record RecordedLock::withBelief(Record record) const
{
    record.t = bootTime().count();
    const auto validFor = std::chrono::nanoseconds(lock_.validFor()).count();
    record.deadline = record.t + validFor;
    record.count = lock_.holdCount();
    return record;
}

bool RecordedLock::tryLock(Wait wait, Lease lease)
{
    auto invoke = line(Op::lock, Phase::invoke);
    invoke.leaseMs = lease.isRenewed() ? watchdogMs_ : lease.fixed().count();
    invoke.error = lease.isRenewed() ? "renewed" : "fixed";
    invoke.waitMs = wait.span().count();
    recorder_->write(invoke);
    std::error_code ec;
    const bool acquired = lock_.tryLock(wait, lease, ec);
    if (acquired) {
        recorder_->write(withBelief(line(Op::lock, Phase::ok)));
    } else {
        auto end = line(Op::lock, effectUnknown(ec) ? Phase::unknown : Phase::fail);
        end.error = ec ? ec.message() : "contended";
        recorder_->write(end);
    }
    return acquired;
}

Unlocked RecordedLock::unlock()
{
    recorder_->write(line(Op::unlock, Phase::invoke));
    std::error_code ec;
    const auto how = lock_.unlock(ec);
    auto end = line(Op::unlock, ec ? Phase::fail : how == Unlocked::unconfirmed ? Phase::unknown : Phase::ok);
    end.error = ec ? ec.message() : nameOf(how);
    end.count = lock_.holdCount();
    recorder_->write(end);
    return how;
}

bool RecordedLock::sample()
{
    const auto record = withBelief(line(Op::sample, Phase::event));
    recorder_->write(record);
    return *record.count > 0;
}

} // namespace redislock::test::history
