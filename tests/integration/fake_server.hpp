/// @file
/// Things that may listen at an address instead of Redis.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace redislock::test {

/// A TCP port of 127.0.0.1 that is in use and refuses connections.
class RefusingPort {
public:
    RefusingPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))
    {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        if (::bind(socket_, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
            ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
            throw std::system_error(errno, std::generic_category(), "bind");
        }
        port_ = ntohs(address.sin_port);
    }
    RefusingPort(const RefusingPort&) = delete;
    RefusingPort& operator=(const RefusingPort&) = delete;
    ~RefusingPort() { ::close(socket_); }

    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

protected:
    [[nodiscard]] int handle() const noexcept { return socket_; }

private:
    int socket_;
    std::uint16_t port_ = 0;
};

/// A TCP port of 127.0.0.1 whose listener never accepts a connection, and whose queue is full: packets are lost.
class SwallowingPort : RefusingPort {
public:
    using RefusingPort::port;

    SwallowingPort()
    {
        ::listen(handle(), 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port());
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        for (int& socket : queued_) {
            socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
            ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address);
        }
    }
    ~SwallowingPort()
    {
        for (const int socket : queued_) {
            ::close(socket);
        }
    }

private:
    std::array<int, 4> queued_{};
};

/// A server that accepts every connection and gives one answer to the first bytes, or no answer, or hangs up instead.
class FakeServer : RefusingPort {
public:
    using RefusingPort::port;

    /// @param answer the bytes to send; empty: the server says nothing and keeps the connection open.
    explicit FakeServer(std::string answer) : FakeServer(std::move(answer), false) {}
    /// A server that ends the connection when bytes come.
    static std::unique_ptr<FakeServer> thatHangsUp() { return std::unique_ptr<FakeServer>(new FakeServer({}, true)); }
    ~FakeServer()
    {
        const std::uint64_t one = 1;
        (void)!::write(stop_, &one, sizeof one);
        thread_.join();
        ::close(stop_);
    }

    /// How many connections were made to the server.
    [[nodiscard]] int accepted() const noexcept { return accepted_; }

private:
    FakeServer(std::string answer, bool hangsUp)
        : answer_(std::move(answer)), hangsUp_(hangsUp), stop_(::eventfd(0, EFD_CLOEXEC))
    {
        if (::listen(handle(), 16) != 0) {
            throw std::system_error(errno, std::generic_category(), "listen");
        }
        thread_ = std::thread([this] { serve(); });
    }

    void serve()
    {
        std::vector<pollfd> sockets{{stop_, POLLIN, 0}, {handle(), POLLIN, 0}};
        while (::poll(sockets.data(), sockets.size(), -1) >= 0 && sockets[0].revents == 0) {
            for (std::size_t i = 2; i < sockets.size();) {
                if (sockets[i].revents != 0 && !answered(sockets[i].fd)) {
                    ::close(sockets[i].fd);
                    sockets.erase(sockets.begin() + static_cast<std::ptrdiff_t>(i));
                } else {
                    ++i;
                }
            }
            if (sockets[1].revents != 0) {
                sockets.push_back({::accept4(handle(), nullptr, nullptr, SOCK_CLOEXEC), POLLIN, 0});
                ++accepted_;
            }
        }
        for (std::size_t i = 2; i < sockets.size(); ++i) {
            ::close(sockets[i].fd);
        }
    }

    /// @return whether the connection stays.
    [[nodiscard]] bool answered(int socket) const
    {
        std::array<char, 512> bytes{};
        if (::recv(socket, bytes.data(), bytes.size(), 0) <= 0) {
            return false;
        }
        if (answer_.empty()) {
            return !hangsUp_;
        }
        return (::send(socket, answer_.data(), answer_.size(), MSG_NOSIGNAL), false);
    }

    const std::string answer_;
    const bool hangsUp_; ///< without an answer
    int stop_;
    std::atomic<int> accepted_{0};
    std::thread thread_;
};

} // namespace redislock::test
