#include "link/async_connection.hpp"

#include <exception>
#include <utility>

namespace redislock::detail {

AsyncConnection::AsyncConnection(boost::asio::io_context& io, Connector& connector, Owner& owner,
                                 std::chrono::milliseconds timeout, std::uint64_t seed)
    : io_(io), connector_(connector), owner_(owner), timeout_(timeout), random_(seed), timer_(io)
{
    timer_.onRing([this] { timeOver(); });
}

AsyncConnection::~AsyncConnection()
{
    if (descriptor_) {
        descriptor_->release();
    }
}

void AsyncConnection::open()
{
    if (state_ != State::disconnected) {
        return;
    }
    connector_.connect(
        this, policy_.notBefore(), timeout_, [this](Connected result) { opened(std::move(result)); },
        [this](Cause stage) { absence_ = absenceAt(stage, absence_); });
    state_ = State::connecting; // not if connect() threw
}

void AsyncConnection::hurry()
{
    open();
    if (state_ == State::connecting) {
        connector_.hurry(this, policy_.soonest());
    }
}

void AsyncConnection::opened(Connected result)
{
    try {
        if (!result.fault) {
            reader_.emplace();
            descriptor_.emplace(io_, result.stream.handle());
        }
    } catch (const std::exception&) { // out of memory, or of what the system needs to watch a socket
        result.fault = Fault{};
    }
    if (result.fault) {
        state_ = State::disconnected;
        policy_.ended(BootClock::now(), random_, true);
        absence_ = result.fault->error;
        owner_.onDisconnected(*result.fault);
        if (owner_.needed()) {
            open();
        }
        return;
    }
    state_ = State::connected;
    ++generation_;
    stream_ = std::move(result.stream);
    waitRead();
    owner_.onConnected();
}

bool AsyncConnection::isSilent()
{
    return stream_.readSome(buffer_).status == Transferred::Status::wouldBlock;
}

void AsyncConnection::send(const std::string& bytes)
{
    writing_.append(bytes);
    if (!waitingToWrite_) {
        write();
    }
    armTimeout();
}

void AsyncConnection::write()
{
    while (written_ < writing_.size()) {
        const auto sent = stream_.writeSome(std::string_view(writing_).substr(written_));
        if (sent.status == Transferred::Status::closed) {
            return; // the reader sees the end of the connection too
        }
        if (sent.status == Transferred::Status::wouldBlock) {
            waitingToWrite_ = true;
            descriptor_->async_wait(boost::asio::posix::stream_descriptor::wait_write,
                                    [this, generation = generation_](boost::system::error_code ec) {
                                        if (!ec && generation == generation_ && isConnected()) {
                                            waitingToWrite_ = false;
                                            write();
                                        }
                                    });
            return;
        }
        written_ += sent.bytes;
    }
    writing_.clear();
    written_ = 0;
}

void AsyncConnection::waitRead()
{
    descriptor_->async_wait(boost::asio::posix::stream_descriptor::wait_read,
                            [this, generation = generation_](boost::system::error_code ec) {
                                if (!ec && generation == generation_ && isConnected()) {
                                    read();
                                }
                            });
}

void AsyncConnection::read()
{
    if (readWhatCame() != Taken::end) {
        waitRead();
    }
}

/// Reads what has come. @return the end, if the connection ended.
AsyncConnection::Taken AsyncConnection::readWhatCame()
{
    const auto generation = generation_;
    const auto received = stream_.readSome(buffer_);
    if (received.status == Transferred::Status::closed) {
        close({Failure::lostReply, Cause::connectionLost});
        return Taken::end;
    }
    reader_->feed({buffer_.data(), received.bytes});
    for (;;) {
        const auto status = reader_->next(reply_);
        if (status == ReplyReader::Status::needMore) {
            return received.bytes > 0 ? Taken::something : Taken::nothing;
        }
        if (status == ReplyReader::Status::broken || !owner_.onReply(reply_)) {
            close({Failure::lostReply, Errc::badReply});
            return Taken::end;
        }
        if (generation != generation_ || !isConnected()) {
            return Taken::end; // the owner closed the connection
        }
    }
}

/// One timer, checked only when it fires: most answers come long before, and then there is nothing to do.
void AsyncConnection::armTimeout()
{
    if (!timerArmed_ && owner_.oldestSent() != TimePoint::max()) {
        timer_.set(saturatingAdd(owner_.oldestSent(), timeout_));
        timerArmed_ = true;
    }
}

/// Judges only when all that came has been read: this process may have stood still meanwhile.
void AsyncConnection::timeOver()
{
    timerArmed_ = false;
    while (isConnected() && isOverdue()) {
        switch (readWhatCame()) {
        case Taken::something:
            break;
        case Taken::nothing:
            return close({Failure::lostReply, Cause::silent});
        case Taken::end:
            return;
        }
    }
    if (isConnected()) {
        armTimeout();
    }
}

bool AsyncConnection::isOverdue() const
{
    return BootClock::now() >= saturatingAdd(owner_.oldestSent(), timeout_);
}

/// Leaves the state in which there is a connection.
Stream AsyncConnection::take()
{
    state_ = State::disconnected;
    ++generation_;
    descriptor_->release(); // cancels the waits on it
    descriptor_.reset();
    reader_.reset();
    writing_.clear();
    written_ = 0;
    waitingToWrite_ = false;
    timerArmed_ = false; // a timer that is still set checks this when it fires
    return std::move(stream_);
}

void AsyncConnection::close(Fault fault)
{
    if (!isConnected()) {
        return;
    }
    Stream stream = take();
    if (fault.failure != Failure::fatal) {
        stream.discardUndelivered();
    }
    stream.close();
    const bool demoted = fault.failure == Failure::demoted;
    const auto now = BootClock::now();
    demoted ? policy_.demoted(now, random_) : policy_.ended(now, random_, owner_.needed());
    absence_ = fault.error == Errc::badReply ? Reason(Cause::connectionLost) : fault.error;
    owner_.onDisconnected(fault);
    if (owner_.needed()) {
        open();
    }
}

void AsyncConnection::follow(const std::string& found)
{
    const auto own = isConnected() ? stream_.peer() : found;
    if (own != found && connector_.isDemoted(own)) {
        close({Failure::demoted, Cause::readOnly});
    }
}

void AsyncConnection::end(Fault fault)
{
    close(fault);
    timer_.close();
}

void AsyncConnection::recover()
{
    timer_.wait(); // the timer may have fired in vain
    close({Failure::lostReply, Cause::connectionLost});
    if (owner_.needed()) {
        open(); // may itself have been what threw
    }
}

} // namespace redislock::detail
