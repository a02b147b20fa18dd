/// @file
/// A connected socket: bytes in and bytes out.
#pragma once

#include "redislock/clock.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace redislock::detail {

/// The result of one attempt to read or write.
struct Transferred {
    enum class Status { ok, wouldBlock, closed };
    Status status = Status::closed;
    std::size_t bytes = 0;
};

/// A connected socket. The one seam through which bytes pass: encryption would go here. Never raises SIGPIPE.
///
/// Not thread-safe, but reading and writing may go on while another thread calls shutdown().
class Stream {
public:
    Stream() noexcept = default;
    /// Takes over a connected socket.
    explicit Stream(int socket) noexcept;
    Stream(Stream&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
    Stream& operator=(Stream&& other) noexcept;
    ~Stream() { close(); }

    [[nodiscard]] Transferred readSome(std::span<char> buffer) noexcept;
    /// As readSome(), but waits for the first bytes until @p until, though not much longer than 100 ms at a time. Comes
    /// back at once when @p orWritable is set and more can be written. @p patient: one system call instead of poll and
    /// read.
    [[nodiscard]] Transferred readUntil(TimePoint until, std::span<char> buffer, bool orWritable,
                                        bool patient) noexcept;
    [[nodiscard]] Transferred writeSome(std::string_view bytes) noexcept;

    /// Ends both directions: a reading thread sees the end. The handle stays until close().
    void shutdown() noexcept;
    void close() noexcept;
    /// Gives the handle away.
    [[nodiscard]] int release() noexcept { return std::exchange(socket_, -1); }
    /// From now on close() drops what the system has not delivered yet, instead of trying for minutes: a request that
    /// was given up must not reach a server that can be reached again. The other side sees a reset.
    void discardUndelivered() noexcept;

    /// The address of the other side, as the system writes it; empty when the connection is gone.
    [[nodiscard]] std::string peer() const;

    [[nodiscard]] int handle() const noexcept { return socket_; }
    [[nodiscard]] bool isOpen() const noexcept { return socket_ >= 0; }

private:
    int socket_ = -1;
};

} // namespace redislock::detail
