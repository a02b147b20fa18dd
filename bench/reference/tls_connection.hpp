/// @file
/// One blocking connection over TLS, as a program without this library would write it: OpenSSL on the descriptor, and
/// hiredis for the bytes of the protocol. Frozen, as the scripts are.
#pragma once

#include "reference/raw_connection.hpp"
#include "reference/raw_locks.hpp"

#include <openssl/ssl.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

namespace redislock::bench {

class TlsConnection {
public:
    using Reply = RawConnection::Reply;

    /// Connects to an IPv4 address with TCP_NODELAY, and checks the server's certificate.
    /// @throws std::runtime_error when it cannot.
    TlsConnection(const std::string& host, std::uint16_t port, const std::string& caFile);

    /// As RawConnection::command().
    Reply command(std::initializer_list<std::string_view> words);
    /// As RawConnection::load().
    std::string load(std::string_view script);

private:
    struct Free {
        void operator()(SSL_CTX* context) const noexcept { SSL_CTX_free(context); }
        void operator()(SSL* session) const noexcept
        {
            SSL_free(session); // with the descriptor, which belongs to its BIO
        }
        void operator()(redisReader* reader) const noexcept { redisReaderFree(reader); }
    };

    std::unique_ptr<SSL_CTX, Free> context_;
    std::unique_ptr<SSL, Free> session_;
    std::unique_ptr<redisReader, Free> reader_;
};

using TlsLock = LockOver<TlsConnection>;

} // namespace redislock::bench
