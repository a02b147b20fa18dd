// How the calling threads' connection is made and ended, and calls for which nobody waits any more.
#include "link/thread_link.hpp"

#include <memory>
#include <new>
#include <utility>

namespace redislock::detail {

void ThreadLink::connectIfNeeded() noexcept
{
    try {
        if (const auto when = link_.attemptAt()) {
            background_.connect(*when);
            link_.connecting();
        } else if (const auto next = link_.replacementAt()) {
            background_.replace(*next);
            link_.replacing();
        }
    } catch (...) { // out of memory: the sweep tries again
        armSweep();
    }
}

void ThreadLink::connected(Stream stream, TimePoint replaceAt)
{
    FinishedCalls finished;
    const Lock lock(mutex_);
    if (link_.state() != Link::State::connecting) {
        return;
    }
    try {
        stream.letWait();
        auto opened = std::make_shared<Stream>(std::move(stream));
        if (buffer_ == nullptr) {
            buffer_ = std::make_unique_for_overwrite<Buffer>();
        }
        reader_.emplace(limits_);
        link_.opened(BootClock::now(), finished, replaceAt);
        stream_ = std::move(opened);
    } catch (...) { // out of memory: nobody else would report the attempt's end
        link_.failed({}, BootClock::now(), finished);
        throw;
    }
    background_.report(true, {});
    connectIfNeeded();
    wakeOneWaiter();
}

void ThreadLink::replacement(Stream stream, TimePoint replaceAt)
{
    FinishedCalls finished;
    std::shared_ptr<Stream> next;
    stream.letWait();
    try {
        next = stream.isOpen() ? std::make_shared<Stream>(std::move(stream)) : nullptr;
    } catch (const std::bad_alloc&) { // as if it could not be made
    }
    const Lock lock(mutex_);
    if (next == nullptr) {
        link_.notReplaced(BootClock::now());
        connectIfNeeded();
    } else if (link_.retire(replaceAt)) {
        next_ = std::move(next);
        if (!led_) { // else the leader does it
            changeOver(finished);
            wakeOneWaiter();
        }
    }
}

/// Goes on with the other connection when nothing is due on this one any more. Before it, by the leader, or while
/// nobody leads: so nobody is in recv(). A caller in send() finds that the bytes it wrote are answered.
void ThreadLink::changeOver(FinishedCalls& finished) noexcept
{
    if (!link_.isReplaceable()) {
        return;
    }
    try {
        reader_.emplace(limits_);
        link_.replaced(BootClock::now(), finished);
    } catch (...) { // out of memory
        return disconnect(Cause::connectionLost, finished);
    }
    leaveStream();
    stream_ = std::move(next_);
    connectIfNeeded();
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
    leaveStream();
    next_.reset();
    reader_.reset();
    if (link_.isOpen()) {
        const auto fault = link_.lost({Failure::lostReply, why}, BootClock::now(), finished);
        background_.report(false, fault.error);
        connectIfNeeded();
    }
}

void ThreadLink::leaveStream() noexcept
{
    stream_.reset();
    endSend(); // of a caller that finds another connection, or none
    reads_ = false;
    writing_.clear();
    writtenBytes_ = 0;
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

void ThreadLink::cut()
{
    FinishedCalls finished;
    const Lock lock(mutex_);
    link_.moved();
    if (led_ && link_.isOpen()) {
        stream_->shutdown(); // the leader sees the end of the connection
    } else if (link_.isOpen()) {
        disconnect(Cause::connectionLost, finished);
    }
}

void ThreadLink::handOn(const Link::IsElsewhere& isElsewhere, bool leaves)
{
    {
        FinishedCalls finished;
        const Lock lock(mutex_);
        link_.handOn(isElsewhere, finished);
    }
    if (leaves) {
        cut();
    }
}

TimePoint ThreadLink::owesSince()
{
    const Lock lock(mutex_);
    return link_.isOpen() ? link_.queue().oldestSent() : TimePoint::max();
}

void ThreadLink::leave(const std::string& address)
{
    FinishedCalls finished;
    const Lock lock(mutex_);
    if (!link_.isOpen() || stream_->peer() != address) {
        return;
    }
    link_.leave();
    if (!link_.isOver()) {
        armSweep(); // who reads what is due ends the connection
    } else if (led_) {
        stream_->shutdown();
    } else {
        disconnect(Cause::readOnly, finished);
    }
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
    next_.reset();
    link_.close(error, finished);
    sendEnded_.notify_all(); // who waits for that looks at the state
}

std::optional<TlsReport> ThreadLink::tlsReport()
{
    const Lock lock(mutex_);
    return link_.isOpen() ? stream_->tlsReport() : std::nullopt;
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
