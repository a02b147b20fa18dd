/// @file
/// A connected socket: bytes in and bytes out.
#pragma once

#include "link/tls/tls_session.hpp"
#include "link/tls/transferred.hpp"
#include "redislock/clock.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace redislock::detail {

/// A connected socket. The one seam through which bytes pass, perhaps with a TLS session inside. Never raises SIGPIPE.
///
/// **Thread safety**: one thread may read while another writes and a third calls shutdown(). A read sleeps outside the
/// mutex of the TLS session.
class Stream {
public:
    Stream() noexcept = default;
    /// Takes over a connected socket.
    explicit Stream(int socket) noexcept;
    Stream(Stream&& other) noexcept { *this = std::move(other); }
    Stream& operator=(Stream&& other) noexcept;
    ~Stream() { close(); }

    /// From now on the bytes pass through this session, once handshake() is complete.
    void secure(std::unique_ptr<TlsSession> session) noexcept { tls_ = std::move(session); }
    /// Goes on with the handshake of TLS, if there is any. @return `ok` when it is complete; `wouldBlock`: to be called
    /// again when the socket can be read, or written if wantsToWrite()
    [[nodiscard]] Transferred handshake() noexcept;
    /// Whether bytes of the TLS session wait for the socket.
    [[nodiscard]] bool wantsToWrite() const noexcept { return tls_ != nullptr && !tls_->toSend().empty(); }
    /// Why the TLS session has failed, if it has. For the thread that reads.
    [[nodiscard]] std::optional<TlsFailure> failure() const;
    /// What the TLS session has agreed on; nothing without one.
    [[nodiscard]] std::optional<TlsReport> tlsReport() const;

    [[nodiscard]] Transferred readSome(std::span<char> buffer) noexcept;
    /// As readSome(), but waits for the first bytes until @p until, though not much longer than 100 ms at a time. Comes
    /// back at once when @p orWritable is set and more can be written. @p patient: one system call instead of poll and
    /// read.
    [[nodiscard]] Transferred readUntil(TimePoint until, std::span<char> buffer, bool orWritable,
                                        bool patient) noexcept;
    /// Whether bytes have been received that the last buffer had no room for: they can be read without waiting, and
    /// nothing but a read shows them.
    [[nodiscard]] bool hasMore() const noexcept { return hasMore_; }
    /// Whether the other side has sent nothing. For a time at which nothing is to be read; takes bytes from the stream,
    /// so it must not be read any more if there were some.
    [[nodiscard]] bool isSilent() noexcept;
    /// What was not taken must be offered again at the beginning of the next bytes.
    [[nodiscard]] Transferred writeSome(std::string_view bytes) noexcept;

    /// From now on calls wait that do not say otherwise. Asio makes sockets that it waits for into others.
    void letWait() noexcept;
    /// Ends both directions: a reading thread sees the end. The handle stays until close().
    void shutdown() noexcept;
    void close() noexcept;
    /// From now on close() drops what the system has not delivered yet, instead of trying for minutes: a request that
    /// was given up must not reach a server that can be reached again. The other side sees a reset.
    void discardUndelivered() noexcept;

    /// The address of the other side, as the system writes it; empty when the connection is gone.
    [[nodiscard]] std::string peer() const;

    [[nodiscard]] int handle() const noexcept { return socket_; }
    [[nodiscard]] bool isOpen() const noexcept { return socket_ >= 0; }

private:
    [[nodiscard]] Transferred decrypted(Transferred received, std::span<char> buffer) noexcept;
    [[nodiscard]] Transferred sendEncrypted() noexcept;

    int socket_ = -1;
    std::unique_ptr<TlsSession> tls_;
    bool hasMore_ = false; ///< used by the reading thread
};

} // namespace redislock::detail
