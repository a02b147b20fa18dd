/// @file
/// TLS over buffers.
#pragma once

#include "link/tls/transferred.hpp"
#include "redislock/tls.hpp"
#include "wire/fault.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#ifndef REDISLOCK_WITH_TLS
#define REDISLOCK_WITH_TLS 0
#endif

// OpenSSL's SSL, SSL_CTX and BIO; its headers are included in one source file only
struct ssl_st;
struct ssl_ctx_st;
struct bio_st;

namespace redislock::detail {

/// Why TLS could not be agreed on, or ended.
struct TlsFailure {
    Reason why = Errc::tlsFailed;
    std::string words; ///< printable
};

class TlsSession;

/// What the sessions of a client are made from: the authorities, the own certificate, the rules.
///
/// **Thread safety**: safe.
class TlsContext {
public:
    struct Loaded {
        std::shared_ptr<const TlsContext> context; ///< null: there is trouble
        std::string trouble;                       ///< field, path and reason
        bool isPair = false;                       ///< certificate and key are good, but not for each other
    };

    /// Reads the files. @throws LockError `unsupported` in a library without TLS.
    [[nodiscard]] static Loaded load(const Tls& tls);

    /// @param host whom the server must be, unless Tls::serverName says it
    [[nodiscard]] std::unique_ptr<TlsSession> session(const std::string& host) const;

private:
    friend class TlsSession;
    struct Free {
        void operator()(ssl_ctx_st* context) const noexcept;
    };

    explicit TlsContext(const Tls& tls);

    std::unique_ptr<ssl_ctx_st, Free> context_;
    Tls::Verify verify_;
    std::string name_; ///< that is looked for in the certificate; empty: that of the host
    bool hasCertificate_;
};

/// One client's end of TLS, between the bytes of the program and those of a socket. No I/O. Without a renegotiation,
/// writing never waits for something to read.
///
/// **Thread safety**: none; `mutex` is for its user. Reading and writing both need it.
class TlsSession {
public:
    TlsSession(const TlsContext& context, const std::string& host);
    TlsSession(const TlsSession&) = delete;
    TlsSession& operator=(const TlsSession&) = delete;
    ~TlsSession() = default;

    /// Takes bytes from the other side. @return false without memory
    [[nodiscard]] bool feed(std::span<const char> bytes) noexcept;
    /// Goes on with the handshake. @return `ok` when it is complete; `wouldBlock`: needs bytes from the other side
    [[nodiscard]] Transferred handshake() noexcept;
    /// The next bytes for the program. When the buffer is not full, nothing is left but a part of a record.
    [[nodiscard]] Transferred read(std::span<char> buffer) noexcept;
    /// Encrypts bytes of the program, at most `longestWrite`. @return whether it could
    [[nodiscard]] bool write(std::string_view bytes) noexcept;
    static constexpr std::size_t longestWrite = 16384; ///< as much as one record holds

    /// What is to be sent to the other side.
    [[nodiscard]] std::string_view toSend() const noexcept;
    /// So many of these bytes have been sent.
    void sent(std::size_t bytes) noexcept;

    /// Why the session has failed, once it has.
    [[nodiscard]] const std::optional<TlsFailure>& failure() const noexcept { return failure_; }
    [[nodiscard]] TlsReport report() const;

    std::mutex mutex;
    std::size_t owed = 0; ///< bytes of the program whose encrypted form is not all sent

private:
    struct Free {
        void operator()(ssl_st* session) const noexcept;
    };
    friend struct TlsCallbacks;

    [[nodiscard]] Transferred ended(int result) noexcept;
    [[nodiscard]] TlsFailure failureOf(unsigned long error) const;

    std::unique_ptr<ssl_st, Free> session_;
    bio_st* in_ = nullptr; ///< belongs to the session, as `out_` does
    bio_st* out_ = nullptr;
    std::size_t sent_ = 0; ///< of what stands in `out_`
    std::optional<TlsFailure> failure_;
    std::string name_;      ///< that is looked for in the certificate; empty: none
    char firstByte_ = 0;    ///< of the other side; zero: none has come
    bool wasAsked_ = false; ///< for a certificate
    const bool hasCertificate_;
};

} // namespace redislock::detail
