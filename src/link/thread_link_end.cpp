// How the calling threads' connection is made and ended, and calls for which nobody waits any more.
#include "link/thread_link.hpp"

#include <memory>
#include <utility>

namespace redislock::detail {

void ThreadLink::connectIfNeeded() noexcept
{
    if (const auto when = link_.attemptAt()) {
        try {
            background_.connect(*when);
            link_.connecting();
        } catch (...) { // out of memory: the sweep tries again
            armSweep();
        }
    }
}

std::string ThreadLink::connected(Stream stream)
{
    FinishedCalls finished;
    const Lock lock(mutex_);
    std::string address;
    if (link_.state() != Link::State::connecting) {
        return address;
    }
    try {
        address = stream.peer();
        auto opened = std::make_shared<Stream>(std::move(stream));
        reader_.emplace(limits_);
        link_.opened(BootClock::now(), finished);
        stream_ = std::move(opened);
    } catch (...) { // out of memory: nobody else would report the attempt's end
        link_.failed({}, BootClock::now(), finished);
        throw;
    }
    background_.report(true, {});
    wakeOneWaiter();
    return address;
}

void ThreadLink::reached(Cause stage)
{
    const Lock lock(mutex_);
    link_.reached(stage);
}

void ThreadLink::connectFailed(Fault fault)
{
    FinishedCalls finished;
    const Lock lock(mutex_);
    if (link_.state() == Link::State::connecting) {
        link_.failed(fault, BootClock::now(), finished);
        background_.report(false, fault.error);
    }
}

/// Closes the socket and ends the calls that were written. The others are kept for the next connection. Leader only.
void ThreadLink::disconnect(Reason why, FinishedCalls& finished) noexcept
{
    if (link_.isOpen()) {
        stream_->discardUndelivered();
    }
    stream_.reset();
    endSend(); // of a caller that finds another connection, or none
    reads_ = false;
    reader_.reset();
    writing_.clear();
    writtenBytes_ = 0;
    if (link_.isOpen()) {
        const auto fault = link_.lost({Failure::lostReply, why}, BootClock::now(), finished);
        background_.report(false, fault.error);
        connectIfNeeded();
    }
}

Fault ThreadLink::giveUp(Call& call)
{
    const Lock lock(mutex_);
    if (!call.pending) {
        return link_.overdue(true);
    }
    const Fault fault = link_.giveUp(call);
    wakeOneWaiter(); // the call's thread may have been chosen to lead
    return fault;
}

void ThreadLink::withdraw(const std::shared_ptr<Call>& call, Errc why)
{
    FinishedCalls finished;
    const Lock lock(mutex_);
    link_.fail(call, why, finished);
}

void ThreadLink::shutdown(Errc error)
{
    FinishedCalls finished;
    const Lock lock(mutex_);
    if (led_ && link_.isOpen()) {
        stream_->shutdown(); // the leader sees the end of the connection, and closes it
    } else if (!led_) {
        stream_.reset();
    }
    link_.close(error, finished);
    sendEnded_.notify_all(); // who waits for that looks at the state
}

bool ThreadLink::isConnected()
{
    const Lock lock(mutex_);
    return link_.isOpen();
}

bool ThreadLink::idle()
{
    const Lock lock(mutex_);
    return link_.queue().empty();
}

} // namespace redislock::detail
