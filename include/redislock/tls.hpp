/// @file
/// How a client and its server authenticate each other by TLS.
#pragma once

#include "redislock/export.hpp"
#include "redislock/requirements.hpp"

#include <cstdint>
#include <string>

namespace redislock {

/// How a client checks the server's certificate, and which certificate it presents; for Config::tls. Needs a library
/// that was built with `REDISLOCK_WITH_TLS`.
///
/// Files are in PEM form. They are read when the client is made, and again when a connection is made after one of them
/// changed; existing connections are not affected. If the new files do not fit, the last good ones are used, and the
/// observer is notified (Observer::warned()); for a certificate and a key that are replaced one after the other, only
/// if they have not fitted for 5 s.
struct REDISLOCK_EXPORT Tls {
    /// What is checked of the server's certificate.
    enum class Verify : std::uint8_t {
        full,  ///< the chain, the dates, and that the certificate is for the host
        chain, ///< the chain and the dates: anyone with a certificate of these authorities can pose as the server
        none,  ///< nothing: anyone between client and server can read and change everything
    };
    /// Versions of TLS.
    enum class Version : std::uint8_t { v1_2, v1_3 };

    /// The trusted authorities: a file. If this and `caPath` are empty: the system's authorities.
    std::string caFile{};
    /// The trusted authorities: a folder with hashed names, as `openssl rehash` makes them.
    std::string caPath{};
    /// The client's own certificate, followed by the intermediate ones. Empty: none is presented.
    std::string certFile{};
    /// The key of that certificate.
    std::string keyFile{};
    /// The password of an encrypted key; empty: the key is not encrypted. Never shown in a message.
    std::string keyPassword{};
    /// The name that is sent to the server (SNI) and looked for in its certificate, instead of `Endpoint::host`: for
    /// tunnels, and for servers that are given by address. A host name, not an address.
    std::string serverName{};
    /// What is checked. With `full` a name must be among the DNS names of the certificate, where `*` stands for one
    /// label, and an address among its IP addresses; the common name of its subject is ignored.
    Verify verify = Verify::full;
    /// The oldest version of TLS that is accepted.
    Version minVersion = Version::v1_2;

    friend bool operator==(const Tls&, const Tls&) = default;
};

/// What a client and its server have negotiated, and the names in the server's certificate.
struct REDISLOCK_EXPORT TlsReport {
    std::string protocol{}; ///< `TLSv1.3`
    std::string cipher{};   ///< `TLS_AES_256_GCM_SHA384`
    std::string subject{};  ///< of the server's certificate
    std::string issuer{};   ///< who signed that certificate
    int daysLeft = 0;       ///< until the certificate expires; negative: it has expired
};

} // namespace redislock
