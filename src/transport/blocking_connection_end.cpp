// How calls end that nobody waits for any more, and the connection.
#include "transport/blocking_connection.hpp"

#include <utility>

namespace redislock::detail {

bool BlockingConnection::leave(Call& call)
{
    const Lock lock(mutex_);
    return call.pending && !drop(call);
}

/// Its caller leaves. @return whether it may have been sent.
bool BlockingConnection::drop(Call& call)
{
    const bool sent = takesRequests() || !queue_.erase(call);
    if (sent) {
        call.mode = Call::Mode::abandoned;
    } else {
        call.pending = false;
    }
    wakeOneWaiter(); // its thread may have been chosen to lead
    return sent;
}

/// Writes nothing more here. The answers that are due are read, then the next connection is made.
void BlockingConnection::leave()
{
    if (!std::exchange(leaving_, true)) {
        background_.demoted(stream_->peer());
        queued_.clear();
    }
}

/// Why a connection that is over is: nothing came in time, or its end did.
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
            finished.makeRoom();
            if (!queue_.erase(*call)) {
                return; // its answer is due
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
            stream_->shutdown(); // the leader sees the end and closes
        } else {
            stream_.reset();
        }
        abandon(queue_.size(), {Failure::fatal, error}, finished);
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
