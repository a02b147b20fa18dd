// How calls end for which nobody waits any more, and how the connection ends.
#include "link/blocking_connection.hpp"
#include "wire/assert.hpp"

#include <utility>

namespace redislock::detail {

bool BlockingConnection::leave(Call& call)
{
    const Lock lock(mutex_);
    return call.pending && !drop(call);
}

/// The call's owner stops waiting. @return whether the call may have been sent.
bool BlockingConnection::drop(Call& call)
{
    REDISLOCK_ASSERT(call.pending && call.mode != Call::Mode::abandoned);
    const bool sent = takesRequests() || !queue_.erase(call);
    if (sent) {
        call.mode = Call::Mode::abandoned;
    } else {
        call.pending = false;
    }
    wakeOneWaiter(); // the call's thread may have been chosen to lead
    return sent;
}

/// Writes nothing more on this connection. The due answers are read, then the next connection is made.
void BlockingConnection::leave()
{
    if (!std::exchange(leaving_, true)) {
        queued_.clear();
        try {
            background_.demoted(stream_->peer());
        } catch (...) { // out of memory: the next attempt finds out
            return;
        }
    }
}

/// Why a connection is over: nothing came in time, or the connection ended.
Reason BlockingConnection::whyOver(Progress progress) noexcept
{
    return progress == Progress::stuck ? Cause::silent : Cause::connectionLost;
}

void BlockingConnection::withdraw(const std::shared_ptr<Call>& call, Errc why)
{
    FinishedCalls finished;
    {
        const Lock lock(mutex_);
        if (!takesRequests() && call->pending) {
            if (!queue_.erase(*call)) {
                return; // the answer is due
            }
            finish(call, {false, {Failure::fatal, why}}, finished);
        }
    }
    finished.tell();
}

void BlockingConnection::shutdown(Errc error)
{
    FinishedCalls finished;
    {
        const Lock lock(mutex_);
        if (state_ == State::closed) {
            return;
        }
        state_ = State::closed;
        closedFor_ = error;
        if (led_) {
            stream_->shutdown(); // the leader sees the end of the connection, and closes it
        } else {
            stream_.reset();
        }
        abandon(queue_.size(), {Failure::fatal, error}, finished);
        sendEnded_.notify_all(); // who waits for that looks at the state
    }
    finished.tell();
}

bool BlockingConnection::isConnected()
{
    const Lock lock(mutex_);
    return state_ == State::connected;
}

bool BlockingConnection::idle()
{
    const Lock lock(mutex_);
    return queue_.empty();
}

} // namespace redislock::detail
