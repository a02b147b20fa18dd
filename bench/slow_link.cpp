#include "slow_link.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <deque>
#include <string>
#include <thread>
#include <utility>

namespace redislock::bench {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

/// The two sockets of a connection: the client's side and the server's.
struct Both {
    tcp::socket client;
    tcp::socket server;

    void close() noexcept
    {
        error_code ignored;
        client.close(ignored);
        server.close(ignored);
    }
};

/// One direction of a connection. It lives as long as its operations.
class Lane : public std::enable_shared_from_this<Lane> {
public:
    Lane(std::shared_ptr<Both> both, tcp::socket Both::*from, tcp::socket Both::*to, std::chrono::microseconds delay)
        : both_(std::move(both)), from_((*both_).*from), to_((*both_).*to), delay_(delay), due_(from_.get_executor())
    {
    }

    void read()
    {
        from_.async_read_some(asio::buffer(read_), [self = shared_from_this()](error_code ec, std::size_t size) {
            if (ec) {
                return self->end();
            }
            self->underWay_.push_back({Clock::now() + self->delay_, std::string(self->read_.data(), size)});
            if (self->underWay_.size() == 1) {
                self->awaitArrival();
            }
            self->read();
        });
    }

private:
    struct Bytes {
        Clock::time_point arrival;
        std::string text;
    };

    void awaitArrival()
    {
        due_.expires_at(underWay_.front().arrival);
        due_.async_wait([self = shared_from_this()](error_code ec) { ec ? self->end() : self->handOn(); });
    }

    void handOn()
    {
        asio::async_write(to_, asio::buffer(underWay_.front().text),
                          [self = shared_from_this()](error_code ec, std::size_t) {
                              if (ec) {
                                  return self->end();
                              }
                              self->underWay_.pop_front();
                              if (!self->underWay_.empty()) {
                                  self->awaitArrival();
                              }
                          });
    }

    void end() { both_->close(); }

    std::shared_ptr<Both> both_;
    tcp::socket& from_;
    tcp::socket& to_;
    const std::chrono::microseconds delay_;
    asio::steady_timer due_;
    std::array<char, 65536> read_{};
    std::deque<Bytes> underWay_;
};

} // namespace

class SlowLink::Relay {
public:
    Relay(const Target& server, std::chrono::microseconds delay)
        : server_(asio::ip::make_address_v4(server.host), server.port),
          delay_(delay),
          acceptor_(context_, tcp::endpoint(asio::ip::address_v4::loopback(), 0))
    {
        accept();
        thread_ = std::thread([this] { context_.run(); });
    }
    Relay(const Relay&) = delete;
    Relay& operator=(const Relay&) = delete;
    ~Relay()
    {
        context_.stop();
        thread_.join();
    }

    [[nodiscard]] std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

private:
    void accept()
    {
        acceptor_.async_accept([this](error_code ec, tcp::socket client) {
            if (!ec) {
                connect(std::move(client));
                accept();
            }
        });
    }

    void connect(tcp::socket client)
    {
        const auto both = std::make_shared<Both>(Both{std::move(client), tcp::socket(context_)});
        error_code ec;
        both->server.connect(server_, ec);
        if (ec) {
            return; // this closes both sockets
        }
        both->client.set_option(tcp::no_delay(true), ec);
        both->server.set_option(tcp::no_delay(true), ec);
        std::make_shared<Lane>(both, &Both::client, &Both::server, delay_)->read();
        std::make_shared<Lane>(both, &Both::server, &Both::client, delay_)->read();
    }

    const tcp::endpoint server_;
    const std::chrono::microseconds delay_;
    asio::io_context context_{1};
    tcp::acceptor acceptor_;
    std::thread thread_;
};

SlowLink::SlowLink(const Target& server, std::chrono::microseconds delay)
    : relay_(std::make_unique<Relay>(server, delay)),
      target_{"127.0.0.1", relay_->port(), fmt::format("redis://127.0.0.1:{}", relay_->port())}
{
}

SlowLink::~SlowLink() = default;

} // namespace redislock::bench
