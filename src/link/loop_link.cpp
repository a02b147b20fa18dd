#include "link/loop_link.hpp"

#include <exception>
#include <utility>

namespace redislock::detail {

LoopLink::LoopLink(boost::asio::io_context& io, Connector& connector, Protocol& protocol,
                   std::chrono::milliseconds timeout, Report report, Demoted demoted, ReplyLimits limits)
    : io_(io),
      connector_(connector),
      protocol_(protocol),
      timeout_(timeout),
      report_(std::move(report)),
      demoted_(std::move(demoted)),
      limits_(limits),
      timer_(io)
{
    timer_.onRing([this] { timeOver(); });
}

LoopLink::~LoopLink()
{
    if (descriptor_) {
        descriptor_->release();
    }
}

void LoopLink::work()
{
    if (protocol_.isReplaceable()) {
        changeOver();
    }
    if (protocol_.isOpen()) {
        write();
    }
    if (const auto when = protocol_.attemptAt()) {
        connect(*when);
    }
    if (const auto when = protocol_.replacementAt()) {
        connector_.connect(this, *when, timeout_, [this](Connected result) { replacement(std::move(result)); });
        protocol_.replacing(); // not if connect() threw
    }
    if (const auto due = protocol_.dueAt(); due < timerAt_) { // most answers come long before it goes off
        timer_.set(due);
        timerAt_ = due;
    }
}

void LoopLink::connect(TimePoint notBefore)
{
    connector_.connect(
        this, notBefore, timeout_, [this](Connected result) { opened(std::move(result)); },
        [this](Cause stage) { protocol_.reached(stage); });
    protocol_.connecting(); // not if connect() threw
}

void LoopLink::hurry()
{
    if (protocol_.state() == Protocol::State::connecting) {
        connector_.hurry(this, protocol_.soonest());
    }
}

void LoopLink::opened(Connected result)
{
    FinishedCalls finished;
    try {
        if (!result.fault) {
            if (buffer_ == nullptr) {
                buffer_ = std::make_unique_for_overwrite<Buffer>();
            }
            reader_.emplace(limits_);
            descriptor_.emplace(io_, result.stream.handle());
            protocol_.opened(BootClock::now(), finished, result.replaceAt);
        }
    } catch (const std::exception&) { // out of memory, or of what the system needs to watch a socket
        result.fault = Fault{};
        if (descriptor_) {
            descriptor_->release();
            descriptor_.reset();
        }
    }
    if (result.fault) {
        whenFailed();
        protocol_.failed(*result.fault, BootClock::now(), finished);
        report_(false, result.fault->error);
        return work();
    }
    ++generation_;
    stream_ = std::move(result.stream);
    waitToRead();
    report_(true, {});
    work();
    finished.tell();
    whenOpened();
}

/// The end of an attempt to make another connection while there is one.
void LoopLink::replacement(Connected result)
{
    if (result.fault) {
        protocol_.notReplaced(BootClock::now());
    } else if (protocol_.retire(result.replaceAt)) {
        next_ = std::move(result.stream);
    }
    work();
}

/// Goes on with the other connection.
void LoopLink::changeOver()
{
    FinishedCalls finished;
    Stream next = std::move(next_);
    const Stream last = take();
    descriptor_.emplace(io_, next.handle());
    stream_ = std::move(next);
    reader_.emplace(limits_);
    protocol_.replaced(BootClock::now(), finished);
    waitToRead();
}

void LoopLink::write()
{
    while (!waitsToWrite_) {
        if (written_ == writing_.size()) {
            writing_.clear();
            written_ = 0;
            if (!protocol_.hasBytes()) {
                return;
            }
            if (protocol_.isIdle() && !stream_.isSilent()) {
                return lose({Failure::lostReply, Cause::connectionLost});
            }
            protocol_.takeBytes(writing_, BootClock::now());
        }
        const auto sent = stream_.writeSome(std::string_view(writing_).substr(written_));
        if (sent.status == Transferred::Status::closed) {
            return; // the reader sees the end of the connection too
        }
        if (sent.status == Transferred::Status::wouldBlock) {
            return waitToWrite();
        }
        written_ += sent.bytes;
    }
}

void LoopLink::waitToWrite()
{
    waitsToWrite_ = true;
    descriptor_->async_wait(boost::asio::posix::stream_descriptor::wait_write,
                            [this, generation = generation_](boost::system::error_code ec) {
                                if (!ec && generation == generation_ && protocol_.isOpen()) {
                                    waitsToWrite_ = false;
                                    work();
                                }
                            });
}

void LoopLink::waitToRead()
{
    descriptor_->async_wait(boost::asio::posix::stream_descriptor::wait_read,
                            [this, generation = generation_](boost::system::error_code ec) {
                                if (ec || generation != generation_ || !protocol_.isOpen()) {
                                    return;
                                }
                                auto taken = readWhatCame();
                                while (taken != Taken::end && stream_.hasMore()) {
                                    taken = readWhatCame();
                                }
                                if (taken != Taken::end) {
                                    waitToRead();
                                    work();
                                }
                            });
}

/// Reads what has come. @return the end, if the connection ended.
LoopLink::Taken LoopLink::readWhatCame()
{
    const auto received = stream_.readSome(*buffer_);
    if (received.status == Transferred::Status::closed) {
        lose({Failure::lostReply, Cause::connectionLost});
        return Taken::end;
    }
    if (received.bytes > 0) {
        protocol_.heard(BootClock::now());
    }
    reader_->feed({buffer_->data(), received.bytes});
    const auto generation = generation_;
    const auto taken = takeReplies();
    if (generation != generation_ || taken == Taken::end) { // the end of a call may have ended the connection
        return Taken::end;
    }
    return received.bytes > 0 ? Taken::something : Taken::nothing;
}

/// Gives the replies that are complete to the protocol, then tells of the calls that they end.
LoopLink::Taken LoopLink::takeReplies()
{
    FinishedCalls finished;
    for (;;) {
        const auto status = reader_->next(reply_);
        if (status == ReplyReader::Status::needMore) {
            break;
        }
        auto heard = Protocol::Heard::unexpected;
        if (status == ReplyReader::Status::complete) {
            connector_.noteReply(reply_, protocol_.awaited());
            heard = protocol_.received(reply_, BootClock::now(), finished);
        }
        if (heard == Protocol::Heard::demotion && demoted_) {
            demoted_(stream_.peer());
        }
        if (heard == Protocol::Heard::unexpected) {
            lose({Failure::lostReply, Cause::connectionLost});
            return Taken::end;
        }
    }
    if (protocol_.isOver()) {
        lose({Failure::demoted, Cause::readOnly});
        return Taken::end;
    }
    whenHeard();
    return Taken::something;
}

void LoopLink::catchUp()
{
    while (protocol_.isOpen() && !protocol_.isIdle() && readWhatCame() == Taken::something) {
    }
    work();
}

/// Judges only when all that came has been read: this process may have stood still meanwhile.
void LoopLink::timeOver()
{
    timerAt_ = TimePoint::max();
    while (BootClock::now() >= protocol_.dueAt()) {
        switch (readWhatCame()) {
        case Taken::something:
            break;
        case Taken::nothing:
            if (protocol_.timeIsOver(BootClock::now())) {
                return lose({Failure::lostReply, Cause::silent});
            }
            break;
        case Taken::end:
            return;
        }
    }
    work();
}

/// What belongs to the connection goes.
Stream LoopLink::take()
{
    ++generation_;
    if (descriptor_) {
        descriptor_->release(); // cancels the waits on it
        descriptor_.reset();
    }
    reader_.reset();
    writing_.clear();
    written_ = 0;
    waitsToWrite_ = false;
    timerAt_ = TimePoint::max(); // a timer that is still set changes nothing when it goes off
    next_.close();
    return std::move(stream_);
}

Connected LoopLink::give()
{
    const TimePoint replaceAt = protocol_.handedOver();
    return {take(), std::nullopt, replaceAt};
}

void LoopLink::lose(Fault fault)
{
    FinishedCalls finished;
    Stream stream = take();
    stream.discardUndelivered();
    stream.close();
    fault = protocol_.lost(fault, BootClock::now(), finished);
    report_(false, fault.error);
    work();
}

void LoopLink::leave(const std::string& address)
{
    if (protocol_.isOpen() && stream_.peer() == address) {
        protocol_.leave();
        if (protocol_.isOver()) {
            lose({Failure::demoted, Cause::readOnly});
        }
    }
}

void LoopLink::cut()
{
    protocol_.moved();
    if (protocol_.isOpen()) {
        lose({Failure::lostReply, Cause::connectionLost});
    }
}

void LoopLink::recover()
{
    timer_.wait(); // the timer may have gone off in vain
    protocol_.isOpen() ? lose({Failure::lostReply, Cause::connectionLost}) : work();
}

void LoopLink::close()
{
    FinishedCalls finished;
    if (protocol_.isOpen()) {
        take().close();
        report_(false, Errc::shutdown);
    }
    protocol_.close(Errc::shutdown, finished);
    timer_.close();
}

} // namespace redislock::detail
