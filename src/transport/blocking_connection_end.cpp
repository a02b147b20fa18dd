// How calls end that nobody waits for any more, and the connection.
#include "transport/blocking_connection.hpp"

namespace redislock::detail {

bool BlockingConnection::leave(Call& call)
{
    const Lock lock(mutex_);
    return call.pending && drop(call);
}

/// Its caller leaves. @return whether it may have been sent.
bool BlockingConnection::drop(Call& call)
{
    const bool sent = state_ == State::connected;
    if (sent) {
        call.mode = Call::Mode::abandoned;
    } else {
        queue_.erase(call);
        call.pending = false;
    }
    wakeOneWaiter(); // its thread may have been chosen to lead
    return sent;
}

void BlockingConnection::withdraw(const std::shared_ptr<Call>& call, Errc why)
{
    FinishedCalls finished;
    {
        const Lock lock(mutex_);
        if (state_ != State::connected && call->pending) {
            finished.makeRoom();
            queue_.erase(*call);
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
