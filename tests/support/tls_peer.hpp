/// @file
/// A server of TLS that does what a test wants: in the handshake, and while the connection is used.
#pragma once

#include "redislock/config.hpp"
#include "support/certificates.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace redislock::testing {
class RedisServer;
}

namespace redislock::test {

/// What a server may send at any time beside its answers.
enum class TlsEvent : std::uint8_t {
    ticket,          ///< a session ticket (TLS 1.3)
    keyUpdate,       ///< new keys for what the server sends (TLS 1.3)
    mutualKeyUpdate, ///< the same, and the client has to answer with new keys of its own (TLS 1.3)
    renegotiation,   ///< asks for a new handshake; ends the connection if the client refuses (TLS 1.2)
};

/// How a TlsPeer treats those who connect.
struct TlsPeerOptions {
    enum class Version : std::uint8_t { any, v1_2, v1_3 };
    enum class Handshake : std::uint8_t {
        whole,
        half,   ///< sends half of its first answer, then nothing more; the connection stays open
        silent, ///< never sends anything; the connection stays open
    };

    Certificate certificate = Authority::trusted().server();
    /// Wants a certificate of each client, by an authority in this file. Empty: it asks for none.
    std::string clientCaFile{};
    Version version = Version::any;
    Handshake handshake = Handshake::whole;
    /// How many bytes of an answer one record holds at most, from 1.
    std::size_t recordSize = 16384;
    /// What it sends before each record of an answer.
    std::vector<TlsEvent> beforeEachRecord{};
};

/// A server of TLS on a free port of 127.0.0.1, run by one thread of its own. Behind it stands a real Redis, so that
/// real locks run through it, or a function of the test.
///
/// Thread safety: all functions may be called from any thread. None of them blocks for more than a few milliseconds.
class TlsPeer {
public:
    /// Answers a command with bytes, which may be none.
    using Answer = std::function<std::string(const std::vector<std::string>& command)>;

    /// Passes on what clients and @p server say to each other. Keeps no reference to the server.
    explicit TlsPeer(const testing::RedisServer& server, const TlsPeerOptions& options = {});
    /// Lets @p answer answer, on its own thread.
    explicit TlsPeer(Answer answer, const TlsPeerOptions& options = {});
    TlsPeer(const TlsPeer&) = delete;
    TlsPeer& operator=(const TlsPeer&) = delete;
    /// Resets all connections and joins the thread.
    ~TlsPeer();

    [[nodiscard]] std::uint16_t port() const noexcept;
    /// The settings of a client that connects to it and trusts its usual certificate.
    [[nodiscard]] Config config() const;

    /// Treats those who connect from now on in another way.
    void setOptions(const TlsPeerOptions& options);

    /// Sends this now on each connection whose handshake is done. @return on how many: 0 is a fault that did not hit.
    std::size_t send(TlsEvent event);
    /// Sends this now on each connection whose handshake is done. @return on how many.
    std::size_t send(const std::string& plaintext);

    /// How connections end.
    enum class Close : std::uint8_t {
        notified, ///< with a `close_notify` and an orderly end, as Redis does
        silent,   ///< with an orderly end and without a `close_notify`, as if somebody cut it off
        reset,
    };
    /// Ends all connections; new ones are accepted. @return how many there were.
    std::size_t closeAll(Close how);

    /// What happened so far, over all connections.
    struct Seen {
        std::size_t accepted = 0;
        std::size_t handshakes = 0; ///< that were finished
        std::size_t resumed = 0;    ///< those of them that went on with an earlier session
        std::size_t keyUpdates = 0; ///< that clients have sent
        std::size_t notified = 0;   ///< connections that their clients ended with a `close_notify`
        std::size_t open = 0;       ///< connections that are there now
        /// Of the last handshake: the version ("TLSv1.3"), the name that the client asked for (SNI), and the subject of
        /// its certificate ("/CN=client"); empty for none.
        std::string version{};
        std::string serverName{};
        std::string client{};
        /// Why connections failed, in OpenSSL's words: "tlsv1 alert unknown ca".
        std::vector<std::string> failures{};
    };
    [[nodiscard]] Seen seen() const;

private:
    class Engine;

    std::unique_ptr<Engine> engine_;
};

} // namespace redislock::test
