#include "link/connect/stream.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>

namespace redislock::detail {

namespace {

/// About how long a read waits at most: the waiting thread may be needed for something else.
constexpr std::chrono::milliseconds patience{100};

Transferred failed() noexcept
{
    const bool later = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == ENOBUFS;
    return {later ? Transferred::Status::wouldBlock : Transferred::Status::closed, 0};
}

Transferred received(ssize_t n) noexcept
{
    if (n > 0) {
        return {Transferred::Status::ok, static_cast<std::size_t>(n)};
    }
    return n == 0 ? Transferred{} : failed();
}

} // namespace

Stream::Stream(int socket) noexcept : socket_(socket)
{
    // calls that must not wait say so themselves
    ::fcntl(socket_, F_SETFL, ::fcntl(socket_, F_GETFL) & ~O_NONBLOCK);
    const timeval limit{0, std::chrono::microseconds(patience).count()};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    // these calls fail on unix sockets, where the options have no meaning
    const int on = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::setsockopt(socket_, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

Stream& Stream::operator=(Stream&& other) noexcept
{
    if (this != &other) {
        close();
        socket_ = std::exchange(other.socket_, -1);
    }
    return *this;
}

Transferred Stream::readSome(std::span<char> buffer) noexcept
{
    return received(::recv(socket_, buffer.data(), buffer.size(), MSG_DONTWAIT));
}

Transferred Stream::readUntil(TimePoint until, std::span<char> buffer, bool orWritable, bool patient) noexcept
{
    const auto left = until - BootClock::now();
    if (left <= left.zero()) {
        return readSome(buffer);
    }
    if (patient && left > 2 * patience) {
        const auto n = ::recv(socket_, buffer.data(), buffer.size(), 0);
        return n < 0 && errno == EINTR ? readSome(buffer) : received(n); // what came while this process was stopped
    }
    pollfd socket{socket_, static_cast<short>(orWritable ? POLLIN | POLLOUT : POLLIN), 0};
    const auto pause = std::min<std::chrono::nanoseconds>(left, patience);
    const timespec limit{0, static_cast<long>(pause.count())};
    ::ppoll(&socket, 1, &limit, nullptr);
    return readSome(buffer);
}

Transferred Stream::writeSome(std::string_view bytes) noexcept
{
    const auto n = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return n >= 0 ? Transferred{Transferred::Status::ok, static_cast<std::size_t>(n)} : failed();
}

std::string Stream::peer() const
{
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (::getpeername(socket_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
        return {};
    }
    return {reinterpret_cast<const char*>(&address), std::min<std::size_t>(size, sizeof address)};
}

void Stream::shutdown() noexcept
{
    if (isOpen()) {
        ::shutdown(socket_, SHUT_RDWR);
    }
}

void Stream::discardUndelivered() noexcept
{
    const linger atOnce{1, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &atOnce, sizeof atOnce);
}

void Stream::close() noexcept
{
    if (isOpen()) {
        ::close(std::exchange(socket_, -1));
    }
}

} // namespace redislock::detail
