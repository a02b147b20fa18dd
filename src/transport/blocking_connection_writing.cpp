// How requests get onto the socket of the calling threads' connection.
#include "transport/blocking_connection.hpp"

#include <sched.h>

namespace redislock::detail {

/// Whether nothing has arrived unasked. What comes while no request is under way belongs to none, and would be taken
/// for the answer to the next.
bool BlockingConnection::isSilent()
{
    return stream_->readSome(buffer_).status == Transferred::Status::wouldBlock;
}

/// Makes all that is queued the next bytes to write.
void BlockingConnection::takeQueued()
{
    writing_.clear();
    writtenBytes_ = 0;
    std::swap(writing_, queued_);
    queue_.written(BootClock::now());
}

/// One call of send(), without the mutex. @return false when the socket takes no more, or the connection has ended.
bool BlockingConnection::send(Lock& lock, Transferred& sent)
{
    const auto stream = stream_; // the leader may drop it meanwhile
    auto bytes = std::move(writing_);
    const auto begin = writtenBytes_;
    writes_ = true;
    {
        const Gap gap(lock);
        sent = stream->writeSome(std::string_view(bytes).substr(begin));
    }
    if (stream != stream_) {
        sent = {};
        return false;
    }
    writes_ = false;
    writing_ = std::move(bytes);
    writtenBytes_ += sent.bytes;
    return sent.status == Transferred::Status::ok;
}

/// Writes as much as the socket takes, unless another caller is writing just now. Leader only.
BlockingConnection::Progress BlockingConnection::write(Lock& lock)
{
    auto progress = Progress::stuck;
    while (!writes_) {
        if (writtenBytes_ == writing_.size()) {
            if (queued_.empty()) {
                break;
            }
            if (queue_.unanswered() == 0 && !isSilent()) {
                return Progress::broken;
            }
            takeQueued();
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
void BlockingConnection::writeForLeader(Lock& lock)
{
    const auto unanswered = queue_.unanswered();
    if (takesRequests() && !writes_ && writtenBytes_ == writing_.size() && unanswered > 0 &&
        queue_.unwritten() >= unanswered) {
        takeQueued();
        Transferred sent;
        (void)send(lock, sent);
    }
}

/// Before the leader sleeps: several callers have just got their replies, and are about to queue their next requests.
/// Lets them run once, so that the leader writes all these requests together, and none of the callers has to. @return
/// whether there is something to write.
bool BlockingConnection::letCrowdQueue(Lock& lock)
{
    {
        const Gap gap(lock);
        Signal::letOthersRun();
    }
    return !queued_.empty() && !writes_;
}

} // namespace redislock::detail
