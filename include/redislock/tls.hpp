/// @file
/// How a client and its server prove to each other who they are.
#pragma once

#include "redislock/export.hpp"
#include "redislock/requirements.hpp"

#include <cstdint>
#include <string>

namespace redislock {

/// What a client checks of the server's certificate, and what it shows of its own; for Config::tls. Needs a library
/// that was built with `REDISLOCK_WITH_TLS`.
///
/// Files are in PEM form. They are read when the client is made, and again when a connection is made after one of them
/// changed; connections that exist stay as they are. If the new files do not fit, the last good ones are used, and the
/// observer is told (Observer::warned()): of a certificate and key that are replaced one after the other, only if they
/// do not fit for 5 s.
struct REDISLOCK_EXPORT Tls {
    /// What is checked of the server's certificate.
    enum class Verify : std::uint8_t {
        full,  ///< the chain, the dates, and that the certificate is for the host
        chain, ///< the chain and the dates: anybody with a certificate of these authorities passes for the server
        none,  ///< nothing: whoever stands between reads and changes everything
    };
    /// Versions of TLS.
    enum class Version : std::uint8_t { v1_2, v1_3 };

    /// The authorities that are trusted: a file. Empty, as is `caPath`: those of the system.
    std::string caFile{};
    /// The authorities that are trusted: a folder with hashed names, as `openssl rehash` makes them.
    std::string caPath{};
    /// The client's own certificate, followed by those between it and its authority. Empty: none is shown.
    std::string certFile{};
    /// The key of that certificate.
    std::string keyFile{};
    /// What the key is encrypted with; empty: it is not. Never shown in a message.
    std::string keyPassword{};
    /// The name that is sent to the server (SNI) and looked for in its certificate, instead of `Endpoint::host`: for
    /// tunnels, and for servers that are named by their addresses. A host name, no address.
    std::string serverName{};
    /// What is checked. With `full` a name must be among the DNS names of the certificate, where `*` stands for one
    /// label, and an address among its IP addresses; the common name of its subject means nothing.
    Verify verify = Verify::full;
    /// The oldest version of TLS that is spoken.
    Version minVersion = Version::v1_2;

    friend bool operator==(const Tls&, const Tls&) = default;
};

/// What a client and its server have agreed on, and whom the server's certificate names.
struct REDISLOCK_EXPORT TlsReport {
    std::string protocol{}; ///< `TLSv1.3`
    std::string cipher{};   ///< `TLS_AES_256_GCM_SHA384`
    std::string subject{};  ///< of the server's certificate
    std::string issuer{};   ///< who signed that certificate
    int daysLeft = 0;       ///< until the certificate expires; negative: it has
};

} // namespace redislock
