#include "link/connect/try.hpp"

#include "link/connect/causes.hpp"
#include "link/connect/own_descriptors.hpp"
#include "wire/command.hpp"

#include <boost/asio/post.hpp>

#include <utility>

namespace redislock::detail {

namespace asio = boost::asio;

Try::Try(asio::io_context& io, const HandshakeMachine& machine, std::unique_ptr<TlsSession> tls, LastErrors& lastErrors,
         std::string where, std::function<void()> taken, End end)
    : socket_(io),
      descriptor_(io),
      machine_(machine),
      tls_(std::move(tls)),
      isSecured_(tls_ != nullptr),
      lastErrors_(lastErrors),
      where_(std::move(where)),
      taken_(std::move(taken)),
      end_(std::move(end))
{
}

void Try::open(const Keep& keep, const Protocol::endpoint& address)
{
    boost::system::error_code ec;
    openOwn(socket_, address.protocol(), ec);
    if (ec) {
        return asio::post(socket_.get_executor(), [this, keep, ec] { notOpened(keep, ec); });
    }
    socket_.async_connect(address, [this, keep](boost::system::error_code failed) {
        if (failed || !end_) {
            return notOpened(keep, failed);
        }
        stream_ = Stream(socket_.release(failed));
        failed ? notOpened(keep, failed) : opened(keep);
    });
}

Stream Try::take()
{
    leaveDescriptor();
    return std::move(stream_);
}

void Try::cancel()
{
    boost::system::error_code ignored;
    end_ = nullptr;
    socket_.close(ignored);
    take().close();
}

/// Cancels the waits for the stream.
void Try::leaveDescriptor()
{
    if (descriptor_.is_open()) {
        descriptor_.release();
    }
}

void Try::notOpened(const Keep& keep, const boost::system::error_code& ec)
{
    if (end_) {
        const Reason why = reasonOf(ec);
        lastErrors_.note(why, where_ + ec.message());
        step(keep, HandshakeMachine::Closed{why});
    }
}

void Try::opened(const Keep& keep)
{
    boost::system::error_code ec;
    descriptor_.assign(stream_.handle(), ec);
    if (ec) {
        return notOpened(keep, ec);
    }
    taken_();
    stream_.secure(std::move(tls_));
    secure(keep);
}

void Try::secure(const Keep& keep)
{
    switch (stream_.handshake().status) {
    case Transferred::Status::ok:
        step(keep, HandshakeMachine::Opened{});
        break;
    case Transferred::Status::wouldBlock:
        wait(keep, stream_.wantsToWrite(), [this, keep] { secure(keep); });
        break;
    case Transferred::Status::closed:
        closed(keep);
    }
}

template <class Then>
void Try::wait(const Keep& keep, bool toWrite, Then then)
{
    using Descriptor = asio::posix::stream_descriptor;
    const auto what = toWrite ? Descriptor::wait_write : Descriptor::wait_read;
    descriptor_.async_wait(what, [this, keep, then](boost::system::error_code failed) {
        if (!failed && end_) {
            then();
        }
    });
}

void Try::closed(const Keep& keep)
{
    const auto failure = stream_.failure();
    const Reason why = failure ? failure->why : isSecured_ ? Cause::connectionLost : Cause::hungUp;
    if (failure || isSecured_) {
        lastErrors_.note(why, where_ + (failure ? failure->words : std::string(isTlsWanted)));
    }
    step(keep, HandshakeMachine::Closed{why});
}

/// @return whether the next answer is to be read.
bool Try::step(const Keep& keep, const HandshakeMachine::Event& event)
{
    if (!end_) {
        return false;
    }
    if (const auto* reply = std::get_if<Reply>(&event)) {
        lastErrors_.noteReply(*reply);
    }
    const auto action = machine_.resume(event);
    if (std::holds_alternative<HandshakeMachine::Listen>(action)) {
        return true;
    }
    if (const auto* say = std::get_if<HandshakeMachine::Say>(&action)) {
        send(keep, say->commands);
        return false;
    }
    const auto* failed = std::get_if<Done<Fault>>(&action);
    const auto end = std::exchange(end_, nullptr);
    if (failed != nullptr) {
        if (const auto* reply = std::get_if<Reply>(&event)) {
            const bool isQuoted = reply->isError() || failed->result.error == Errc::notRedis;
            lastErrors_.noteReply(failed->result.error, isQuoted ? reply->text : std::string());
        }
        boost::system::error_code ignored;
        socket_.close(ignored);
        take().close();
    }
    end(failed != nullptr ? std::optional(failed->result) : std::nullopt);
    return false;
}

void Try::send(const Keep& keep, const std::vector<HandshakeMachine::Command>& commands)
{
    request_.clear();
    written_ = 0;
    for (const auto& command : commands) {
        appendHeader(request_, '*', command.size());
        for (const auto& argument : command) {
            appendArgument(request_, argument);
        }
    }
    write(keep);
}

/// Writes, then reads: also if the other side takes no more, as it may have said why before.
void Try::write(const Keep& keep)
{
    while (written_ < request_.size()) {
        const auto sent = stream_.writeSome(std::string_view(request_).substr(written_));
        if (sent.status == Transferred::Status::wouldBlock) {
            return wait(keep, true, [this, keep] { write(keep); });
        }
        if (sent.status == Transferred::Status::closed) {
            break;
        }
        written_ += sent.bytes;
    }
    read(keep);
}

void Try::read(const Keep& keep)
{
    const auto some = stream_.readSome(buffer_);
    if (some.status == Transferred::Status::wouldBlock) {
        return wait(keep, false, [this, keep] { read(keep); });
    }
    some.status == Transferred::Status::ok ? received(keep, some.bytes) : closed(keep);
}

void Try::received(const Keep& keep, std::size_t bytes)
{
    reader_.feed({buffer_.data(), bytes});
    for (;;) {
        Reply reply;
        const auto status = reader_.next(reply);
        if (status == ReplyReader::Status::needMore) {
            return read(keep);
        }
        // one request, one reply: a server that sends more is not Redis
        Reply surplus;
        const bool isGood = status == ReplyReader::Status::complete &&
                            (!machine_.awaitsLast() || reader_.next(surplus) == ReplyReader::Status::needMore);
        if (!isGood) {
            return garbled(keep, {buffer_.data(), bytes});
        }
        if (!step(keep, std::move(reply))) {
            return;
        }
    }
}

void Try::garbled(const Keep& keep, std::string_view bytes)
{
    const Reason why = isTls(bytes) ? Reason(Cause::tlsSpoken) : Reason(Errc::notRedis);
    if (why == Reason(Errc::notRedis)) {
        lastErrors_.noteReply(why, bytes);
    }
    step(keep, HandshakeMachine::Garbled{why});
}

} // namespace redislock::detail
