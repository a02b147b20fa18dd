/// @file
/// The common parts of the proxy's tests.
#pragma once

#include "redislock/testing/redis_server.hpp"
#include "support/fault_proxy.hpp"
#include "support/raw_redis.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace redislock::test {

class FaultProxyTest : public ::testing::Test {
protected:
    /// At the end of every test, after the faults, a fresh client has to work.
    void TearDown() override
    {
        proxy_.clear();
        proxy_.accept();
        proxy_.resume();
        if (server_.isRunning()) {
            RawRedis fresh(proxy_.host(), proxy_.port());
            EXPECT_EQ(fresh.command({"ECHO", "fresh"}).text(), "fresh");
        }
        server_.kill(); // faster than the server's destructor
    }

    std::int64_t counter(std::string_view name) { return std::stoll(direct_.get(name).value_or("0")); }

    testing::RedisServer server_;
    FaultProxy proxy_{server_};
    RawRedis direct_{server_};
    RawRedis client_{proxy_.host(), proxy_.port()};
};

inline constexpr std::string_view incrementScript = "return redis.call('incr', KEYS[1])";

/// A connection that returns the raw bytes.
class RawSocket {
public:
    explicit RawSocket(std::uint16_t port)
    {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        connected_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
        error_ = connected_ ? 0 : errno;
    }
    RawSocket(const RawSocket&) = delete;
    RawSocket& operator=(const RawSocket&) = delete;
    ~RawSocket() { ::close(fd_); }

    int connectError() const { return error_; }
    void send(std::string_view bytes) const { EXPECT_GT(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL), 0); }

    /// Reads until the end of the connection, or until there are @p size bytes.
    std::string read(std::size_t size = std::string::npos)
    {
        std::string bytes;
        while (bytes.size() < size) {
            std::array<char, 1024> buffer{};
            const auto count = ::recv(fd_, buffer.data(), buffer.size(), 0);
            if (count <= 0) {
                error_ = count == 0 ? 0 : errno;
                break;
            }
            bytes.append(buffer.data(), static_cast<std::size_t>(count));
        }
        return bytes;
    }

    /// The error of the last recv(); 0 after an orderly end.
    int readError() const { return error_; }

private:
    int fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool connected_ = false;
    int error_ = 0;
};

} // namespace redislock::test
