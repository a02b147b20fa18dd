/// @file
/// Authorities and certificates, made for the tests by the program `openssl`.
#pragma once

#include "redislock/testing/child_process.hpp"
#include "redislock/testing/redis_server.hpp"

#include <string>

namespace redislock::test {

/// A certificate and its key: files in PEM form.
struct Certificate {
    std::string certFile;
    std::string keyFile;
};

/// What is asked of an authority. The default is a certificate that a server on this machine may show.
struct CertificateRequest {
    /// The names and addresses that it is for, as OpenSSL writes a subjectAltName: "DNS:*.example.org,IP:::1". Empty:
    /// for none, but for what its subject says.
    std::string names = "DNS:localhost,IP:127.0.0.1,IP:::1";
    /// Its subject's common name.
    std::string commonName = "redislock";
    /// From when to when it holds, as OpenSSL writes it.
    std::string from = "20200101000000Z";
    std::string until = "20491231235959Z";
    /// Encrypts the key. Empty: it is not encrypted.
    std::string password{};
};

/// An authority of the tests, with a P-256 key, and the certificates that it gives: files in a temporary folder, which
/// ends with it. About 30 ms, and the same for each certificate.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class Authority {
public:
    /// An authority of its own, which nobody trusts who was not told to.
    Authority();
    /// An authority between @p root and its certificates: clients trust `root` and have to be shown this one as well.
    /// Must not outlive it.
    explicit Authority(Authority& root);

    /// The one that the tests trust; made at the first call.
    static Authority& trusted();
    /// Another one; made at the first call.
    static Authority& stranger();

    /// Its own certificate: for `Tls::caFile`.
    [[nodiscard]] const std::string& caFile() const noexcept { return own_.certFile; }
    /// A folder with its certificate under its hashed name: for `Tls::caPath`.
    std::string caPath();

    /// A new certificate; behind it in its file are those of the authorities between it and the root.
    /// @throws std::runtime_error, with OpenSSL's words, when there cannot be such a one.
    Certificate issue(const CertificateRequest& request = {});
    /// A certificate for a server on this machine, made at the first call.
    const Certificate& server();
    /// A certificate for a client, made at the first call.
    const Certificate& client();

private:
    /// Runs commands of the shell in the folder.
    void run(const std::string& commands);
    [[nodiscard]] std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

    testing::detail::TemporaryFolder folder_;
    Certificate own_;
    std::string chain_; ///< the certificates between those that it gives and the root
    int issued_ = 0;
    Certificate server_;
    Certificate client_;
};

/// The options of a server of these certificates.
testing::RedisServerTls serverTls(testing::RedisServerTls::Clients clients = testing::RedisServerTls::Clients::unasked);

} // namespace redislock::test
