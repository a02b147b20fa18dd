#include "transport/connect/connector.hpp"

#include "protocol/codec.hpp"
#include "redislock/detail/protocol/command.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::detail {

namespace asio = boost::asio;

namespace {

/// Like Socket::open(), but a program that this process starts does not inherit the socket.
template <class Socket>
void openUninherited(Socket& socket, const typename Socket::protocol_type& protocol, boost::system::error_code& ec)
{
    const int handle = ::socket(protocol.family(), protocol.type() | SOCK_CLOEXEC, protocol.protocol());
    if (handle < 0) {
        ec.assign(errno, boost::system::system_category());
        return;
    }
    socket.assign(protocol, handle, ec);
    if (ec) {
        ::close(handle);
    }
}

/// The reason for which the system made no connection.
Reason reasonOf(const boost::system::error_code& ec) noexcept
{
    switch (ec.value()) {
    case ECONNREFUSED:
        return Cause::connectionRefused;
    case ENOENT:
    case ENOTDIR:
        return Cause::socketNotFound;
    case EACCES:
    case EPERM:
        return Cause::accessDenied;
    case ENETUNREACH:
    case EHOSTUNREACH:
        return Cause::noRoute;
    case ETIMEDOUT:
        return Cause::connectTimedOut;
    default:
        return Cause::connectFailed;
    }
}

/// The cause for which the resolver found no address.
Cause causeOf(const boost::system::error_code& ec) noexcept
{
    const bool isUnknown = ec == asio::error::host_not_found || ec == asio::error::no_data;
    return isUnknown ? Cause::hostNotFound : Cause::lookupFailed;
}

/// A TCP address as Endpoint::str() writes it.
std::string textOf(const asio::generic::stream_protocol::endpoint& address)
{
    asio::ip::tcp::endpoint tcp;
    tcp.resize(address.size());
    std::memcpy(tcp.data(), address.data(), address.size());
    return Endpoint{tcp.address().to_string(), tcp.port(), {}}.str();
}

/// Whether these are the first bytes of TLS: an alert, or a handshake.
bool isTls(std::string_view bytes) noexcept
{
    return bytes.size() > 1 && (bytes[0] == 0x15 || bytes[0] == 0x16) && bytes[1] == 0x03;
}

} // namespace

/// Tries one address: drives a HandshakeMachine over Asio.
///
/// Belongs to an attempt, which `keep` keeps alive while an operation is under way. After its end it tells nothing
/// more.
class Try {
public:
    using Protocol = asio::generic::stream_protocol;
    using End = std::function<void(const std::optional<Fault>&)>;

    Try(asio::io_context& io, const Handshake& handshake, Troubles& troubles, std::string where, End end)
        : socket_(io), machine_(handshake), troubles_(troubles), where_(std::move(where)), end_(std::move(end))
    {
    }

    void open(const std::shared_ptr<void>& keep, const Protocol::endpoint& address)
    {
        boost::system::error_code ec;
        openUninherited(socket_, address.protocol(), ec);
        if (ec) {
            return asio::post(socket_.get_executor(), [this, keep, ec] { notOpened(keep, ec); });
        }
        socket_.async_connect(address, [this, keep](boost::system::error_code failed) {
            failed ? notOpened(keep, failed) : (void)step(keep, HandshakeMachine::Opened{});
        });
    }

    /// Whether the connection was made: if so, it is the server that has not answered yet.
    [[nodiscard]] bool isOpen() const noexcept { return machine_.state() != HandshakeMachine::State::opening; }

    /// The connection, once it is usable.
    Stream take()
    {
        boost::system::error_code ignored;
        return Stream(socket_.release(ignored));
    }

    void cancel()
    {
        boost::system::error_code ignored;
        end_ = nullptr;
        socket_.close(ignored);
    }

private:
    void notOpened(const std::shared_ptr<void>& keep, const boost::system::error_code& ec)
    {
        if (end_) {
            const Reason why = reasonOf(ec);
            troubles_.note(why, where_ + ec.message());
            step(keep, HandshakeMachine::Closed{why});
        }
    }

    /// @return whether the next answer is to be read.
    bool step(const std::shared_ptr<void>& keep, const HandshakeMachine::Event& event)
    {
        if (!end_) {
            return false;
        }
        if (const auto* reply = std::get_if<Reply>(&event)) {
            troubles_.noteReply(*reply);
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
                troubles_.noteReply(failed->result.error, reply->text);
            }
            boost::system::error_code ignored;
            socket_.close(ignored);
        }
        end(failed != nullptr ? std::optional(failed->result) : std::nullopt);
        return false;
    }

    void send(const std::shared_ptr<void>& keep, const std::vector<HandshakeMachine::Command>& commands)
    {
        for (const auto& command : commands) {
            appendHeader(request_, '*', command.size());
            for (const auto& argument : command) {
                appendArgument(request_, argument);
            }
        }
        asio::async_write(socket_, asio::buffer(request_), [this, keep](boost::system::error_code failed, std::size_t) {
            failed ? (void)step(keep, HandshakeMachine::Closed{}) : read(keep);
        });
    }

    void read(const std::shared_ptr<void>& keep)
    {
        socket_.async_read_some(asio::buffer(buffer_), [this, keep](boost::system::error_code failed, std::size_t n) {
            failed ? (void)step(keep, HandshakeMachine::Closed{}) : received(keep, n);
        });
    }

    void received(const std::shared_ptr<void>& keep, std::size_t bytes)
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
            const bool isGood =
                status == ReplyReader::Status::complete && (machine_.state() != HandshakeMachine::State::ping ||
                                                            reader_.next(surplus) == ReplyReader::Status::needMore);
            if (!isGood) {
                return garbled(keep, {buffer_.data(), bytes});
            }
            if (!step(keep, std::move(reply))) {
                return;
            }
        }
    }

    void garbled(const std::shared_ptr<void>& keep, std::string_view bytes)
    {
        const Reason why = isTls(bytes) ? Reason(Cause::tlsSpoken) : Reason(Errc::notRedis);
        if (why == Reason(Errc::notRedis)) {
            troubles_.noteReply(why, bytes);
        }
        step(keep, HandshakeMachine::Garbled{why});
    }

    Protocol::socket socket_;
    HandshakeMachine machine_;
    Troubles& troubles_;
    const std::string where_; ///< the address, if it is not the endpoint's
    End end_;
    std::string request_;
    std::array<char, 4096> buffer_{};
    ReplyReader reader_;
};

/// One attempt: drives a ConnectMachine over Asio.
class Attempt : public std::enable_shared_from_this<Attempt> {
public:
    using Handler = std::function<void(Connected)>;

    Attempt(const void* whose, asio::io_context& io, const Endpoint& endpoint, const Handshake& handshake,
            const DemotedAddresses& demoted, Troubles& troubles, Handler handler)
        : whose_(whose),
          io_(io),
          endpoint_(endpoint),
          handshake_(handshake),
          demoted_(demoted),
          troubles_(troubles),
          handler_(std::move(handler)),
          resolver_(io),
          timer_(io),
          pause_(io)
    {
    }

    void start(TimePoint notBefore, std::chrono::milliseconds timeout)
    {
        notBefore_ = notBefore;
        timeout_ = timeout;
        const auto pause = notBefore - BootClock::now();
        if (pause <= pause.zero()) {
            return begin();
        }
        timer_.expires_after(pause);
        timer_.async_wait([self = shared_from_this()](boost::system::error_code ec) {
            if (!ec) {
                self->begin();
            }
        });
    }

    void hurry(const void* whose, TimePoint when)
    {
        if (whose == whose_ && handler_ && machine_.state() == ConnectMachine::State::idle && when < notBefore_) {
            start(when, timeout_);
        }
    }

    void cancel()
    {
        handler_ = nullptr;
        end();
    }

    /// The attempt has failed.
    void fail() { finish({Stream{}, Fault{}}); }

private:
    void begin()
    {
        if (machine_.state() != ConnectMachine::State::idle || !handler_) {
            return; // a timer that went off before it was set anew
        }
        try {
            beginWithin(timeout_);
        } catch (...) { // out of memory, perhaps for the timer that would end the attempt
            fail();
            throw;
        }
    }

    void beginWithin(std::chrono::milliseconds timeout)
    {
        deadline_ = saturatingAdd(BootClock::now(), timeout);
        timer_.expires_after(timeout);
        timer_.async_wait([self = shared_from_this()](boost::system::error_code ec) {
            if (!ec) {
                self->timeOver();
            }
        });
        step(Start{BootClock::now()});
    }

    /// Reports which step has taken too long.
    void timeOver()
    {
        if (machine_.state() == ConnectMachine::State::resolving) {
            return notFound(Cause::lookupFailed, "no answer in " + std::to_string(timeout_.count()) + " ms");
        }
        const bool isOpen =
            std::any_of(tries_.begin(), tries_.end(), [](const auto& each) { return each && each->isOpen(); });
        const Cause why = isOpen ? Cause::silent : Cause::connectTimedOut;
        if (handler_) {
            troubles_.note(why, {});
        }
        step(ConnectMachine::TimeOver{why});
    }

    void notFound(Cause why, const std::string& words)
    {
        if (handler_) {
            troubles_.note(why, words);
            step(ConnectMachine::NotFound{why});
        }
    }

    void step(const ConnectMachine::Event& event)
    {
        if (handler_) {
            std::visit([this](const auto& action) { perform(action); }, machine_.resume(event));
        }
    }

    void perform(const ConnectMachine::Resolve& /*action*/)
    {
        if (!endpoint_.unixSocket.empty()) {
            addresses_.emplace_back(asio::local::stream_protocol::endpoint(endpoint_.unixSocket));
            return resolved();
        }
        boost::system::error_code ec;
        const auto address = asio::ip::make_address(endpoint_.host, ec);
        if (!ec) {
            addresses_.emplace_back(asio::ip::tcp::endpoint(address, endpoint_.port));
            return resolved();
        }
        resolver_.async_resolve(endpoint_.host, std::to_string(endpoint_.port),
                                [self = shared_from_this()](boost::system::error_code failed, const auto& results) {
                                    if (failed) {
                                        return self->notFound(causeOf(failed), failed.message());
                                    }
                                    for (const auto& result : results) {
                                        self->addresses_.emplace_back(result.endpoint());
                                    }
                                    self->resolved();
                                });
    }

    void resolved()
    {
        demoted_.putLast(addresses_, [](const auto& address) {
            return std::string_view(reinterpret_cast<const char*>(address.data()), address.size());
        });
        tries_.resize(addresses_.size());
        step(ConnectMachine::Resolved{addresses_.size(), deadline_ - BootClock::now()});
    }

    void perform(const ConnectMachine::Open& action)
    {
        const auto self = shared_from_this();
        if (action.pause.count() > 0) {
            pause_.expires_after(action.pause);
            pause_.async_wait([self](boost::system::error_code ec) {
                if (!ec) {
                    self->step(ConnectMachine::PauseOver{});
                }
            });
        } else {
            pause_.cancel();
        }
        auto& one = tries_[action.address];
        one = std::make_unique<Try>(io_, handshake_, troubles_, whereIs(addresses_[action.address]),
                                    [this, address = action.address](const std::optional<Fault>& fault) {
                                        fault ? step(ConnectMachine::Ended{*fault})
                                              : step(ConnectMachine::Ready{address});
                                    });
        one->open(self, addresses_[action.address]);
    }

    /// What to put before the words about one of several addresses.
    [[nodiscard]] std::string whereIs(const Try::Protocol::endpoint& address) const
    {
        const bool isKnown = !endpoint_.unixSocket.empty() || textOf(address) == endpoint_.str();
        return isKnown ? std::string() : textOf(address) + ": ";
    }

    void perform(const ConnectMachine::Wait& /*action*/) {}

    void perform(const Done<Fault>& action) { finish({Stream{}, action.result}); }

    void perform(const Done<std::size_t>& action) { finish({tries_[action.result]->take(), std::nullopt}); }

    void finish(Connected result)
    {
        if (auto handler = std::exchange(handler_, nullptr)) {
            end();
            handler(std::move(result));
        }
    }

    void end()
    {
        timer_.cancel();
        pause_.cancel();
        resolver_.cancel();
        for (const auto& one : tries_) {
            if (one) {
                one->cancel();
            }
        }
    }

    const void* const whose_;
    asio::io_context& io_;
    const Endpoint& endpoint_;
    const Handshake& handshake_;
    const DemotedAddresses& demoted_;
    Troubles& troubles_;
    ConnectMachine machine_;
    Handler handler_;
    asio::ip::tcp::resolver resolver_;
    asio::steady_timer timer_;
    asio::steady_timer pause_; ///< until the next address
    TimePoint notBefore_{};
    std::chrono::milliseconds timeout_{};
    TimePoint deadline_{};
    std::vector<Try::Protocol::endpoint> addresses_;
    std::vector<std::unique_ptr<Try>> tries_; ///< by address; null: not begun
};

void Connector::connect(const void* whose, TimePoint notBefore, std::chrono::milliseconds limit,
                        std::function<void(Connected)> handler)
{
    asio::post(io_, [this, whose, notBefore, limit, handler = std::move(handler)]() mutable {
        if (closed_) {
            return;
        }
        std::shared_ptr<Attempt> attempt;
        try {
            attempt = std::make_shared<Attempt>(whose, io_, endpoint_, handshake_, demoted_, troubles_, handler);
            std::erase_if(attempts_, [](const auto& past) { return past.expired(); });
            attempts_.push_back(attempt);
            attempt->start(notBefore, std::min(limit, timeout_));
        } catch (...) { // out of memory: nobody else would report the attempt's end
            attempt ? attempt->fail() : handler({Stream{}, Fault{}});
            throw;
        }
    });
}

void Connector::hurry(const void* whose, TimePoint when)
{
    asio::post(io_, [this, whose, when] {
        for (const auto& each : attempts_) {
            if (const auto attempt = each.lock()) {
                attempt->hurry(whose, when);
            }
        }
    });
}

void Connector::demoted(std::string address)
{
    asio::post(io_, [this, address = std::move(address)]() mutable { demoted_.note(std::move(address)); });
}

void Connector::close()
{
    closed_ = true;
    for (const auto& attempt : std::exchange(attempts_, {})) {
        if (const auto running = attempt.lock()) {
            running->cancel();
        }
    }
}

} // namespace redislock::detail
