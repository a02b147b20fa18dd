#include "transport/connector.hpp"

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

/// One attempt: drives a ConnectMachine over Asio.
class Attempt : public std::enable_shared_from_this<Attempt> {
public:
    using Protocol = asio::generic::stream_protocol;
    using Handler = std::function<void(Connected)>;

    Attempt(asio::io_context& io, const Endpoint& endpoint, const Handshake& handshake, Handler handler)
        : endpoint_(endpoint), machine_(handshake), handler_(std::move(handler)), resolver_(io), socket_(io), timer_(io)
    {
    }

    void start(TimePoint notBefore, std::chrono::milliseconds timeout)
    {
        const auto pause = notBefore - BootClock::now();
        if (pause <= pause.zero()) {
            return begin(timeout);
        }
        timer_.expires_after(pause);
        timer_.async_wait([self = shared_from_this(), timeout](boost::system::error_code ec) {
            if (!ec) {
                self->begin(timeout);
            }
        });
    }

    void cancel()
    {
        handler_ = nullptr;
        end();
    }

    /// The attempt has failed.
    void fail() { finish({Stream{}, Fault{}}); }

private:
    void begin(std::chrono::milliseconds timeout)
    {
        try {
            beginWithin(timeout);
        } catch (...) { // out of memory, perhaps for the timer that would end it
            fail();
            throw;
        }
    }

    void beginWithin(std::chrono::milliseconds timeout)
    {
        timer_.expires_after(timeout);
        timer_.async_wait([self = shared_from_this()](boost::system::error_code ec) {
            if (!ec) {
                self->fail();
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
            return step(ConnectMachine::Resolved{1});
        }
        boost::system::error_code ec;
        const auto address = asio::ip::make_address(endpoint_.host, ec);
        if (!ec) {
            addresses_.emplace_back(asio::ip::tcp::endpoint(address, endpoint_.port));
            return step(ConnectMachine::Resolved{1});
        }
        resolver_.async_resolve(endpoint_.host, std::to_string(endpoint_.port),
                                [self = shared_from_this()](boost::system::error_code failed, const auto& results) {
                                    if (failed) {
                                        return self->step(ConnectMachine::Closed{});
                                    }
                                    for (const auto& result : results) {
                                        self->addresses_.emplace_back(result.endpoint());
                                    }
                                    self->step(ConnectMachine::Resolved{self->addresses_.size()});
                                });
    }

    void perform(const ConnectMachine::Open& action)
    {
        boost::system::error_code ec;
        socket_.close(ec);
        openUninherited(socket_, addresses_[action.address].protocol(), ec);
        if (ec) {
            return asio::post(socket_.get_executor(),
                              [self = shared_from_this()] { self->step(ConnectMachine::Closed{}); });
        }
        socket_.async_connect(addresses_[action.address],
                              [self = shared_from_this()](boost::system::error_code failed) {
                                  failed ? self->step(ConnectMachine::Closed{}) : self->step(ConnectMachine::Opened{});
                              });
    }

    void perform(const ConnectMachine::Command& action)
    {
        request_.clear();
        appendHeader(request_, '*', action.arguments.size());
        for (const auto& argument : action.arguments) {
            appendArgument(request_, argument);
        }
        asio::async_write(socket_, asio::buffer(request_),
                          [self = shared_from_this()](boost::system::error_code failed, std::size_t) {
                              failed ? self->step(ConnectMachine::Closed{}) : self->read();
                          });
    }

    void perform(const Done<Fault>& action) { finish({Stream{}, action.result}); }

    void perform(const Done<std::monostate>& /*action*/)
    {
        boost::system::error_code ignored;
        const int handle = socket_.release(ignored);
        finish({Stream(handle), std::nullopt});
    }

    void read()
    {
        socket_.async_read_some(asio::buffer(buffer_),
                                [self = shared_from_this()](boost::system::error_code failed, std::size_t n) {
                                    failed ? self->step(ConnectMachine::Closed{}) : self->received(n);
                                });
    }

    void received(std::size_t bytes)
    {
        reader_.feed({buffer_.data(), bytes});
        Reply reply;
        switch (reader_.next(reply)) {
        case ReplyReader::Status::needMore:
            return read();
        case ReplyReader::Status::broken:
            return step(ConnectMachine::Garbled{});
        case ReplyReader::Status::complete:
            break;
        }
        // one request, one reply: more than that is not Redis
        Reply surplus;
        step(reader_.next(surplus) == ReplyReader::Status::needMore ? ConnectMachine::Event(std::move(reply))
                                                                    : ConnectMachine::Garbled{});
    }

    void finish(Connected result)
    {
        if (auto handler = std::exchange(handler_, nullptr)) {
            end();
            handler(std::move(result));
        }
    }

    void end()
    {
        boost::system::error_code ignored;
        timer_.cancel();
        resolver_.cancel();
        socket_.close(ignored);
    }

    const Endpoint& endpoint_;
    ConnectMachine machine_;
    Handler handler_;
    asio::ip::tcp::resolver resolver_;
    Protocol::socket socket_;
    asio::steady_timer timer_;
    std::vector<Protocol::endpoint> addresses_;
    std::string request_;
    std::array<char, 4096> buffer_{};
    ReplyReader reader_;
};

void Connector::connect(TimePoint notBefore, std::chrono::milliseconds limit, std::function<void(Connected)> handler)
{
    asio::post(io_, [this, notBefore, limit, handler = std::move(handler)]() mutable {
        if (closed_) {
            return;
        }
        std::shared_ptr<Attempt> attempt;
        try {
            attempt = std::make_shared<Attempt>(io_, endpoint_, handshake_, handler);
            std::erase_if(attempts_, [](const auto& past) { return past.expired(); });
            attempts_.push_back(attempt);
            attempt->start(notBefore, std::min(limit, timeout_));
        } catch (...) { // out of memory: nobody else would tell of the attempt's end
            attempt ? attempt->fail() : handler({Stream{}, Fault{}});
            throw;
        }
    });
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
