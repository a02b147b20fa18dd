#include "transport/connect/connector.hpp"

#include "protocol/codec.hpp"
#include "redislock/detail/protocol/command.hpp"

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
#include <memory>
#include <string>
#include <vector>

namespace redislock::detail {

namespace asio = boost::asio;

namespace {

/// As open(), but a program that this process starts does not inherit the socket.
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

} // namespace

/// Tries one address: drives a HandshakeMachine over Asio.
///
/// Belongs to an attempt, which `keep` keeps while an operation is under way. Ended: nothing more is told.
class Try {
public:
    using Protocol = asio::generic::stream_protocol;
    using End = std::function<void(const std::optional<Fault>&)>;

    Try(asio::io_context& io, const Handshake& handshake, End end)
        : socket_(io), machine_(handshake), end_(std::move(end))
    {
    }

    void open(const std::shared_ptr<void>& keep, const Protocol::endpoint& address)
    {
        boost::system::error_code ec;
        openUninherited(socket_, address.protocol(), ec);
        if (ec) {
            return asio::post(socket_.get_executor(), [this, keep] { step(keep, HandshakeMachine::Closed{}); });
        }
        socket_.async_connect(address, [this, keep](boost::system::error_code failed) {
            failed ? step(keep, HandshakeMachine::Closed{}) : step(keep, HandshakeMachine::Opened{});
        });
    }

    /// The connection, when it is usable.
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
    /// @return whether the next answer is to be read.
    bool step(const std::shared_ptr<void>& keep, const HandshakeMachine::Event& event)
    {
        if (!end_) {
            return false;
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
            // one request, one reply: more than that is not Redis
            Reply surplus;
            const bool isGood =
                status == ReplyReader::Status::complete && (machine_.state() != HandshakeMachine::State::ping ||
                                                            reader_.next(surplus) == ReplyReader::Status::needMore);
            if (!step(keep, isGood ? HandshakeMachine::Event(std::move(reply)) : HandshakeMachine::Garbled{})) {
                return;
            }
        }
    }

    Protocol::socket socket_;
    HandshakeMachine machine_;
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
            const DemotedAddresses& demoted, Handler handler)
        : whose_(whose),
          io_(io),
          endpoint_(endpoint),
          handshake_(handshake),
          demoted_(demoted),
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
        } catch (...) { // out of memory, perhaps for the timer that would end it
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
                self->step(ConnectMachine::TimeOver{});
            }
        });
        step(Start{BootClock::now()});
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
                                        return self->step(ConnectMachine::NotFound{});
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
        one =
            std::make_unique<Try>(io_, handshake_, [this, address = action.address](const std::optional<Fault>& fault) {
                fault ? step(ConnectMachine::Ended{*fault}) : step(ConnectMachine::Ready{address});
            });
        one->open(self, addresses_[action.address]);
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
            attempt = std::make_shared<Attempt>(whose, io_, endpoint_, handshake_, demoted_, handler);
            std::erase_if(attempts_, [](const auto& past) { return past.expired(); });
            attempts_.push_back(attempt);
            attempt->start(notBefore, std::min(limit, timeout_));
        } catch (...) { // out of memory: nobody else would tell of the attempt's end
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
