// How the calling threads' connection is made and ended.
#include "link/blocking_connection.hpp"
#include "link/connect/connect_machine.hpp"

#include <optional>
#include <utility>

namespace redislock::detail {

/// Closes the socket and ends the calls that were written. The others are kept for the next connection. Leader only.
void BlockingConnection::disconnect(Fault fault, FinishedCalls& finished) noexcept
{
    if (state_ != State::closed) {
        stream_->discardUndelivered();
    }
    stream_.reset();
    endSend(); // of a caller that finds another connection, or none
    reads_ = false;
    reader_.reset();
    writing_.clear();
    writtenBytes_ = 0;
    queued_.clear();
    const bool demoted = std::exchange(leaving_, false);
    if (demoted) {
        fault = queue_.unanswered() == 0 ? Fault{Failure::demoted, Cause::readOnly} : fault;
    }
    if (state_ == State::closed) {
        return;
    }
    state_ = State::disconnected;
    const auto now = BootClock::now();
    demoted ? policy_.demoted(now, random_) : policy_.ended(now, random_, queue_.unanswered() > 0);
    absence_ = demoted ? Reason(Cause::readOnly) : fault.error;
    background_.report(false, fault.error);
    abandon(queue_.unanswered(), fault, finished);
    connectIfNeeded();
}

void BlockingConnection::connectIfNeeded() noexcept
{
    if (state_ == State::disconnected && !queue_.empty()) {
        try {
            background_.connect(policy_.notBefore());
            state_ = State::connecting;
        } catch (...) { // out of memory: the sweep tries again
            armSweep();
        }
    }
}

void BlockingConnection::connected(Stream stream)
{
    const Lock lock(mutex_);
    if (state_ != State::connecting) {
        return;
    }
    // all that takes memory comes before the state: until then nobody uses this
    queued_.clear();
    for (std::size_t i = 0; i < queue_.size(); ++i) {
        queue_[i]->encode(queued_, queue_[i]->form = Call::Form::bySha);
    }
    reader_.emplace();
    stream_ = std::make_shared<Stream>(std::move(stream));
    state_ = State::connected;
    background_.report(true, {});
    wakeOneWaiter();
}

void BlockingConnection::reached(Cause stage)
{
    const Lock lock(mutex_);
    absence_ = absenceAt(stage, absence_);
}

void BlockingConnection::connectFailed(Fault fault)
{
    FinishedCalls finished;
    {
        const Lock lock(mutex_);
        if (state_ != State::connecting) {
            return;
        }
        state_ = State::disconnected;
        policy_.ended(BootClock::now(), random_, true);
        absence_ = fault.error;
        background_.report(false, fault.error);
        abandon(queue_.size(), fault, finished);
    }
    finished.tell();
}

} // namespace redislock::detail
