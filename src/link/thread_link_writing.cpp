// How requests get onto the socket of the calling threads' connection.
#include "link/thread_link.hpp"
#include "wire/assert.hpp"

#include <sched.h>

#include <algorithm>

namespace redislock::detail {

/// Whether nothing has arrived unasked. What comes while no request is under way belongs to none, and would be taken
/// for the answer to the next; so the leader, if it is not the caller, finds the connection ended then.
bool ThreadLink::isSilent()
{
    if (stream_->isSilent()) {
        return true;
    }
    stream_->shutdown();
    return false;
}

/// Makes all that is queued the next bytes to write.
void ThreadLink::takeQueued()
{
    REDISLOCK_ASSERT(writtenBytes_ == writing_.size());
    writing_.clear();
    writtenBytes_ = 0;
    ++packets_;
    link_.takeBytes(writing_, BootClock::now());
}

/// Makes sure that there are bytes to write, while no caller writes. @return `stuck` if there are none.
ThreadLink::Progress ThreadLink::prepare()
{
    if (writtenBytes_ < writing_.size()) {
        return Progress::moved;
    }
    if (!link_.hasBytes()) {
        return Progress::stuck;
    }
    if (link_.isIdle() && !isSilent()) {
        return Progress::broken;
    }
    takeQueued();
    return Progress::moved;
}

/// One call of send(), without the mutex. @return false when the socket takes no more, or the connection has ended.
bool ThreadLink::send(Lock& lock, Transferred& sent)
{
    const auto stream = stream_; // the leader may drop it meanwhile
    auto bytes = std::move(writing_);
    const auto begin = writtenBytes_;
    REDISLOCK_ASSERT(!writes_);
    writes_ = true;
    {
        const Gap gap(lock);
        sent = stream->writeSome(std::string_view(bytes).substr(begin));
    }
    if (stream != stream_) {
        sent = {Transferred::Status::wouldBlock, 0};
        return false;
    }
    endSend();
    writing_ = std::move(bytes);
    writtenBytes_ += sent.bytes;
    return sent.status == Transferred::Status::ok;
}

void ThreadLink::endSend()
{
    writes_ = false;
    if (awaitSend_ > 0) {
        sendEnded_.notify_all();
    }
}

/// Waits while another caller is in send(), until @p until, or about 100 ms. Lets others run a few times before it
/// sleeps: a send() is short, and to be woken takes longer.
void ThreadLink::awaitSend(Lock& lock, TimePoint until)
{
    constexpr std::chrono::nanoseconds patience = std::chrono::milliseconds(100);
    constexpr int yields = 20;
    for (int i = 0; writes_ && i < yields; ++i) {
        const Gap gap(lock);
        ::sched_yield();
    }
    const auto left = until - BootClock::now();
    if (writes_ && left > left.zero()) {
        ++awaitSend_;
        sendEnded_.wait_for(lock, std::min(left, patience));
        --awaitSend_;
    }
}

/// Writes what is queued now, unless another caller does meanwhile: when this returns, the socket has it, or takes no
/// more. Only a caller that stands still in send() for the time of a request may keep it from that.
ThreadLink::Progress ThreadLink::writeNow(Lock& lock)
{
    const auto last = packets_ + (link_.hasBytes() ? 1 : 0); // the packet with the caller's bytes
    const TimePoint until = saturatingAdd(BootClock::now(), timeout_);
    if (led_ && !reads_ && crowd_ > 1) { // others are about to queue requests, which the leader, or one of them, writes
        const Gap gap(lock);
        Signal::letOthersRun();
    }
    auto progress = Progress::stuck;
    while (link_.isOpen() && packets_ <= last) {
        if (writes_) {
            if (BootClock::now() >= until) {
                return progress;
            }
            awaitSend(lock, until);
            continue;
        }
        if (packets_ == last && writtenBytes_ == writing_.size()) {
            return progress;
        }
        if (const auto next = prepare(); next != Progress::moved) {
            return next == Progress::broken ? next : progress;
        }
        Transferred sent;
        if (!send(lock, sent)) {
            return sent.status == Transferred::Status::closed ? Progress::broken : progress;
        }
        progress = Progress::moved;
    }
    return progress;
}

/// Writes as much as the socket takes, unless another caller is writing just now. Leader only.
ThreadLink::Progress ThreadLink::write(Lock& lock)
{
    auto progress = Progress::stuck;
    while (!writes_) {
        if (const auto next = prepare(); next != Progress::moved) {
            return next == Progress::broken ? next : progress;
        }
        Transferred sent;
        if (!send(lock, sent)) {
            return sent.status == Transferred::Status::closed ? Progress::broken : progress;
        }
        progress = Progress::moved;
    }
    return progress;
}

/// Before a caller sleeps while another one leads: writes what is queued if that is as much as the server has yet to
/// answer, so that the server has work meanwhile. Smaller amounts wait for the leader, as a part of something larger: a
/// write costs more than the requests in it. If the write fails, the leader sees that too.
void ThreadLink::writeForLeader(Lock& lock)
{
    const auto unanswered = link_.queue().unanswered();
    if (link_.takesRequests() && !writes_ && writtenBytes_ == writing_.size() && unanswered > 0 &&
        link_.queue().unwritten() >= unanswered) {
        takeQueued();
        Transferred sent;
        (void)send(lock, sent);
    }
}

/// Before the leader sleeps: several callers have just got their replies, and are about to queue their next requests.
/// Lets them run once, so that the leader writes all these requests together, and none of the callers has to. @return
/// whether there is something to write.
bool ThreadLink::letCrowdQueue(Lock& lock)
{
    {
        const Gap gap(lock);
        Signal::letOthersRun();
    }
    return link_.hasBytes() && !writes_;
}

} // namespace redislock::detail
