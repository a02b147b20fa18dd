#include "link/connect/stream.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <mutex>

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

Transferred receivedFrom(int socket, std::span<char> buffer, int flags) noexcept
{
    return received(::recv(socket, buffer.data(), buffer.size(), flags));
}

Transferred sentTo(int socket, std::string_view bytes) noexcept
{
    const auto n = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return n >= 0 ? Transferred{Transferred::Status::ok, static_cast<std::size_t>(n)} : failed();
}

} // namespace

Stream::Stream(int socket) noexcept : socket_(socket)
{
    letWait();
    const timeval limit{0, std::chrono::microseconds(patience).count()};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    // these calls fail on unix sockets, where the options have no meaning
    const int on = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::setsockopt(socket_, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

void Stream::letWait() noexcept
{
    // calls that must not wait say so themselves
    ::fcntl(socket_, F_SETFL, ::fcntl(socket_, F_GETFL) & ~O_NONBLOCK);
}

Stream& Stream::operator=(Stream&& other) noexcept
{
    if (this != &other) {
        close();
        socket_ = std::exchange(other.socket_, -1);
        tls_ = std::move(other.tls_);
        hasMore_ = std::exchange(other.hasMore_, false);
    }
    return *this;
}

Transferred Stream::handshake() noexcept
{
    std::array<char, 4096> received; // NOLINT(cppcoreguidelines-pro-type-member-init): written before it is read
    while (tls_ != nullptr) {
        const auto state = tls_->handshake();
        if (sendEncrypted().status == Transferred::Status::wouldBlock) {
            return {Transferred::Status::wouldBlock, 0};
        }
        if (state.status != Transferred::Status::wouldBlock) {
            return state;
        }
        const auto some = receivedFrom(socket_, received, MSG_DONTWAIT);
        if (some.status != Transferred::Status::ok) {
            return some;
        }
        if (!tls_->feed(std::span(received).first(some.bytes))) {
            return {};
        }
    }
    return {Transferred::Status::ok, 0};
}

std::optional<TlsFailure> Stream::failure() const
{
    if (tls_ == nullptr) {
        return std::nullopt;
    }
    const std::lock_guard lock(tls_->mutex);
    return tls_->failure();
}

std::optional<TlsReport> Stream::tlsReport() const
{
    if (tls_ == nullptr) {
        return std::nullopt;
    }
    const std::lock_guard lock(tls_->mutex);
    return tls_->report();
}

/// What has been received, as the program sees it. @param received of bytes that stand in the buffer
Transferred Stream::decrypted(Transferred received, std::span<char> buffer) noexcept
{
    if (received.status != Transferred::Status::ok && !hasMore_) {
        return received;
    }
    const std::lock_guard lock(tls_->mutex);
    if (!tls_->feed(buffer.first(received.bytes))) {
        return {};
    }
    const auto result = tls_->read(buffer);
    hasMore_ = result.bytes == buffer.size();
    (void)sendEncrypted(); // alerts; if the socket takes them not, they go before the next write
    return result;
}

/// Under the session's mutex: sends what stands there encrypted.
Transferred Stream::sendEncrypted() noexcept
{
    for (auto bytes = tls_->toSend(); !bytes.empty(); bytes = tls_->toSend()) {
        const auto sent = sentTo(socket_, bytes);
        if (sent.status != Transferred::Status::ok) {
            return sent;
        }
        tls_->sent(sent.bytes);
    }
    return {Transferred::Status::ok, 0};
}

Transferred Stream::readSome(std::span<char> buffer) noexcept
{
    if (hasMore_) {
        return decrypted({Transferred::Status::wouldBlock, 0}, buffer);
    }
    const auto received = receivedFrom(socket_, buffer, MSG_DONTWAIT);
    return tls_ == nullptr ? received : decrypted(received, buffer);
}

Transferred Stream::readUntil(TimePoint until, std::span<char> buffer, bool orWritable, bool patient) noexcept
{
    const auto left = until - BootClock::now();
    if (left <= left.zero() || hasMore_) {
        return readSome(buffer);
    }
    if (patient && left > 2 * patience) {
        const auto n = ::recv(socket_, buffer.data(), buffer.size(), 0);
        if (n < 0 && errno == EINTR) {
            return readSome(buffer); // what came while this process was stopped
        }
        return tls_ == nullptr ? received(n) : decrypted(received(n), buffer);
    }
    pollfd socket{socket_, static_cast<short>(orWritable ? POLLIN | POLLOUT : POLLIN), 0};
    const auto pause = std::min<std::chrono::nanoseconds>(left, patience);
    const timespec limit{0, static_cast<long>(pause.count())};
    ::ppoll(&socket, 1, &limit, nullptr);
    return readSome(buffer);
}

bool Stream::isSilent() noexcept
{
    std::array<char, 512> some; // NOLINT(cppcoreguidelines-pro-type-member-init): written before it is read
    if (tls_ == nullptr) {
        return readSome(std::span(some).first(1)).status == Transferred::Status::wouldBlock;
    }
    for (;;) { // tickets, or new keys
        const auto received = receivedFrom(socket_, some, MSG_DONTWAIT);
        const auto read = decrypted(received, some);
        if (received.status != Transferred::Status::ok || read.status != Transferred::Status::wouldBlock) {
            return received.status == Transferred::Status::wouldBlock && read.status == received.status;
        }
    }
}

Transferred Stream::writeSome(std::string_view bytes) noexcept
{
    if (tls_ == nullptr) {
        return sentTo(socket_, bytes);
    }
    const std::lock_guard lock(tls_->mutex);
    if (tls_->owed == 0) {
        bytes = bytes.substr(0, TlsSession::longestWrite);
        if (!tls_->write(bytes)) {
            return {};
        }
        tls_->owed = bytes.size();
    }
    const auto sent = sendEncrypted();
    return sent.status == Transferred::Status::ok ? Transferred{sent.status, std::exchange(tls_->owed, 0)} : sent;
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
        tls_.reset();
    }
}

} // namespace redislock::detail
