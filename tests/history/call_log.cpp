#include "history/call_log.hpp"

#include "history/outcome_name.hpp"
#include "support/eventually.hpp"

#include <utility>

namespace redislock::test::history {
namespace {

/// Whether the request of a call that ended with this error may have been executed.
bool effectUnknown(std::error_code error)
{
    return error == Errc::unreachable || error == Errc::serverRefused || error == Errc::badReply ||
           error == Errc::shutdown || error == std::errc::operation_canceled;
}

} // namespace

CallLog::CallLog(std::shared_ptr<Recorder> recorder, const Client& client, std::string kind, std::string lock,
                 int owner)
    : recorder_(std::move(recorder)),
      client_(client.id()),
      kind_(std::move(kind)),
      lock_(std::move(lock)),
      owner_(owner),
      watchdogMs_(client.config().watchdogTimeout.count())
{
}

Record CallLog::line(Op op, Phase phase) const
{
    return {.thread = owner_, .client = client_, .lock = lock_, .kind = kind_, .op = op, .phase = phase};
}

Record CallLog::withBelief(Record record, const AskBelief& ask)
{
    record.t = bootTime().count();
    const auto belief = ask();
    if (belief.validFor != std::chrono::milliseconds::max()) {
        record.deadline = record.t + std::chrono::nanoseconds(belief.validFor).count();
    }
    record.count = belief.count;
    return record;
}

void CallLog::lockBegins(Wait wait, Lease lease, std::int64_t permits) const
{
    auto begin = line(Op::lock, Phase::invoke);
    if (permits != 1) {
        begin.permits = permits;
    }
    begin.leaseMs = lease.isRenewed() ? watchdogMs_ : lease.fixed().count();
    begin.error = lease.isRenewed() ? "renewed" : "fixed";
    if (wait != waitForever) {
        begin.waitMs = wait.span().count();
    }
    recorder_->write(begin);
}

void CallLog::locked(const AskBelief& ask, const Known& known) const
{
    auto end = withBelief(line(Op::lock, Phase::ok), ask);
    end.holder = known.holder;
    if (known.token != 0) {
        end.token = static_cast<std::int64_t>(known.token);
    }
    recorder_->write(std::move(end));
}

void CallLog::notLocked(std::error_code error) const
{
    auto end = line(Op::lock, effectUnknown(error) ? Phase::unknown : Phase::fail);
    end.error = error ? error.message() : "contended";
    recorder_->write(end);
}

void CallLog::unlockBegins() const
{
    recorder_->write(line(Op::unlock, Phase::invoke));
}

void CallLog::unlocked(Unlocked how, std::error_code error, std::int64_t left) const
{
    auto end = line(Op::unlock, error ? Phase::fail : how == Unlocked::unconfirmed ? Phase::unknown : Phase::ok);
    end.error = error ? error.message() : nameOf(how);
    end.count = left;
    recorder_->write(end);
}

void CallLog::unlockSent(std::int64_t left) const
{
    auto end = line(Op::unlock, Phase::unknown);
    end.error = "sent";
    end.count = left;
    recorder_->write(end);
}

bool CallLog::sample(const AskBelief& ask) const
{
    const auto record = withBelief(line(Op::sample, Phase::event), ask);
    recorder_->write(record);
    return *record.count > 0;
}

} // namespace redislock::test::history
