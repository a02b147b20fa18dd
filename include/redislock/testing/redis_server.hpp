/// @file
/// A throw-away Redis server for tests and examples.
///
/// Needs nothing but the standard library and Linux; no other header of the library includes it.
#pragma once

#include "redislock/testing/child_process.hpp"

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

namespace redislock::testing {

/// How a RedisServer speaks TLS. Files are in PEM form; a server that was not built with TLS does not start.
struct RedisServerTls {
    /// Whether it requires a client certificate, signed by an authority in `caFile`.
    enum class Clients : std::uint8_t { unasked, asked, required };

    /// The authorities that the server trusts; url() names the file as those that clients trust.
    std::string caFile{};
    /// The server's certificate, for `IP:127.0.0.1`.
    std::string certFile{};
    /// The key of the certificate.
    std::string keyFile{};
    /// Default: unasked.
    Clients clients = Clients::unasked;
    /// Listens on a port without TLS too: see RedisServer::plainPort(). Default: false.
    bool plainToo = false;
};

/// How a RedisServer is started. The default is a server that forgets everything when it ends.
struct RedisServerOptions {
    /// More arguments, after those that the RedisServer gives, so that they override them: `{"--maxmemory", "1mb"}`.
    /// When the first does not begin with `-` it is the path of a configuration file. Do not set `port`, `tls-port`,
    /// `unixsocket`, `dir`, `daemonize`, `logfile` or `requirepass` here. Default: none.
    std::vector<std::string> arguments{};
    /// `requirepass`: clients must send AUTH. Default: empty, no password. It is visible in the process list.
    std::string password{};
    /// A path, or a name that is searched in PATH. Default: redis-server.
    std::string executable = "redis-server";
    /// Listens on its unix socket only: nothing on the network, port() is 0 and url() is unixUrl(). Default: false.
    bool unixSocketOnly = false;
    /// How long a start or restart may take until the server answers PING; at least 1 ms. Default: 30 s. It counts only
    /// if something is wrong, or when the server has to load a data set.
    std::chrono::milliseconds startTimeout{30'000};
    /// Speaks TLS on its port. Default: none. The unix socket never does.
    std::optional<RedisServerTls> tls{};
};

namespace detail {

/// A reserved port of 127.0.0.1, whether its server runs or not: a socket that is bound but does not listen. It is
/// below the range that Linux uses for outgoing connections, and low enough for a cluster bus 10 000 above it.
class ReservedPort {
public:
    ReservedPort() = default;
    /// One that is free now. @throws std::runtime_error when there is none.
    static ReservedPort any();
    ReservedPort(ReservedPort&& other) noexcept
        : port_(std::exchange(other.port_, std::uint16_t(0))), fd_(std::exchange(other.fd_, -1))
    {
    }
    ReservedPort& operator=(ReservedPort&& other) noexcept
    {
        std::swap(port_, other.port_);
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~ReservedPort()
    {
        if (fd_ >= 0) {
            ::close(fd_);
        }
    }

    /// 0: none.
    [[nodiscard]] std::uint16_t number() const noexcept { return port_; }

private:
    explicit ReservedPort(std::uint16_t port);

    std::uint16_t port_ = 0;
    int fd_ = -1; ///< the bound socket; -1: none
};

} // namespace detail

/// A private Redis server process, for the duration of a test or an example.
///
/// The constructor starts `redis-server` on a free port of 127.0.0.1 and on a unix socket in a temporary folder, and
/// returns when it answers. Persistence is off; the DEBUG command is allowed.
///
/// **Guarantees**: the server was started by this object: another one that listens on the same port is never mistaken
/// for it. port(), url() and folder() stay the same across restarts. It is ended by its pid only, and always ends when
/// the thread that started it ends: by SIGKILL, through `PR_SET_PDEATHSIG`. It inherits no file descriptors, so it
/// keeps no socket of the program open. While the server is not running, connections to its port are refused, and no
/// other RedisServer gets that port.
/// **Does not guarantee** that the folder is removed when the program is killed.
///
/// | state   | isRunning() | kill(), stop() | restart()       | freeze()           | thaw()  |
/// |---------|-------------|----------------|-----------------|--------------------|---------|
/// | running | true        | ended          | stop(), running | frozen             | nothing |
/// | frozen  | true        | ended          | stop(), running | nothing            | running |
/// | ended   | false       | nothing        | running         | `std::logic_error` | nothing |
///
/// **Thread safety**: distinct objects: safe. Shared objects: host(), port(), plainPort(), url(), unixSocket(),
/// unixUrl(), password(), tls(), folder() and log() may be called from any thread at any time; the others by one thread
/// at a time.
/// **Blocking**: the constructor and restart() until the server answers (about 20 ms; the first start of one older than
/// Redis 7 twice that), stop() until it has ended (about 100 ms, at most 2 s), the others briefly.
/// **Lifetime**: the thread that constructs it or calls restart() must live at least as long as the server; the main
/// function or a test body is the right place. An object that was moved from may only be destroyed.
/// **Needs**: Linux and an installed redis-server (5 or later) or valkey-server.
///
/// @code
/// redislock::testing::RedisServer server;
/// redislock::Client client(redislock::Config::fromUrl(server.url()));
/// @endcode
class RedisServer {
public:
    /// Starts a server: `RedisServer server({.arguments = {"--maxmemory", "1mb"}})`.
    ///
    /// @throws std::runtime_error when the executable is not found, when the server ends during its start (a wrong
    /// argument) or when it does not answer within `startTimeout`; the message shows the end of the server's log.
    explicit RedisServer(RedisServerOptions options);
    /// As the constructor above, with the default options.
    RedisServer() : RedisServer(RedisServerOptions{}) {}
    /// Takes over the server of @p other, which may only be destroyed after that.
    RedisServer(RedisServer&& other) noexcept = default;
    RedisServer& operator=(RedisServer&&) = delete;
    /// Ends the server as kill() does and removes the folder.
    ~RedisServer() { kill(); }

    /// Always 127.0.0.1.
    [[nodiscard]] std::string host() const { return "127.0.0.1"; }
    /// The TCP port, the same across restarts; 0 with `unixSocketOnly`.
    [[nodiscard]] std::uint16_t port() const noexcept { return port_.number(); }
    /// The TCP port without TLS, the same across restarts; 0 when the server speaks only TLS.
    [[nodiscard]] std::uint16_t plainPort() const noexcept { return plainPort_ ? plainPort_->number() : port(); }
    /// `redis://127.0.0.1:PORT`, with `:password@` (percent-encoded) when there is one; unixUrl() with
    /// `unixSocketOnly`; with TLS `rediss://127.0.0.1:PORT?ca_file=PATH`.
    [[nodiscard]] std::string url() const;
    /// The path of the unix socket.
    [[nodiscard]] std::string unixSocket() const { return (folder_.path() / "redis.sock").string(); }
    /// `unix:///path/of/the/socket`, with `:password@` when there is one.
    [[nodiscard]] std::string unixUrl() const;
    /// The password of the options.
    [[nodiscard]] const std::string& password() const noexcept { return options_.password; }
    /// How it speaks TLS, from the options.
    [[nodiscard]] const std::optional<RedisServerTls>& tls() const noexcept { return options_.tls; }
    /// The server's working folder: data, socket and log.
    [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_.path(); }
    /// Everything that the server has written to its log so far, across restarts.
    [[nodiscard]] std::string log() const;
    /// The process id; 0 when the server was ended or is known to have ended.
    [[nodiscard]] pid_t pid() const noexcept { return process_.pid(); }
    /// Whether the process exists, frozen or not. It may also have ended by itself (SHUTDOWN, a crash).
    [[nodiscard]] bool isRunning() noexcept { return process_.runs(); }

    /// Ends the server at once (SIGKILL), as a crash would, and waits until it is gone. Clients see their connections
    /// end. Does nothing when it is not running.
    void kill() noexcept { process_.kill(); }
    /// Asks the server to end (SIGTERM), frozen or not, and waits until it is gone; after 2 s as kill().
    void stop() noexcept { process_.stop(); }
    /// Starts the server again on the same port, with the same arguments and folder, after stop() if it is running.
    /// Waits until it answers; the data are gone unless the arguments turn persistence on.
    /// @throws std::runtime_error as the constructor, and when another process took the port meanwhile; the server is
    /// not running then.
    void restart();
    /// Stops the process where it is (SIGSTOP), like a paused machine: connections stay open, but get no answers.
    /// Returns when it has stopped.
    /// @throws std::logic_error when the server is not running.
    /// @throws std::runtime_error when it has not stopped after 5 s.
    void freeze();
    /// Lets a frozen server continue (SIGCONT). Does nothing when it is not frozen.
    void thaw() noexcept { process_.signal(SIGCONT); }

private:
    static constexpr const char* debugOption = "enable-debug-command";
    enum class Start { answers, portTaken, failed };

    void startOnFreePort();
    /// Starts the process once and waits for its first answer.
    Start start();
    Start awaitAnswer(std::uintmax_t logBegin);
    [[nodiscard]] std::vector<std::string> command() const;
    [[nodiscard]] std::string credentials() const;
    [[nodiscard]] std::filesystem::path logFile() const { return folder_.path() / "redis.log"; }
    [[noreturn]] void fail();

    RedisServerOptions options_;
    detail::TemporaryFolder folder_;
    std::string executable_;
    bool asksForDebug_ = true; ///< Redis before 7 does not know the option, and allows the command anyway
    detail::ReservedPort port_;
    std::optional<detail::ReservedPort> plainPort_; ///< with TLS
    detail::ChildProcess process_;                  // ends before its folder goes
};

// What follows is not part of the interface.

namespace detail {

inline ReservedPort::ReservedPort(std::uint16_t port)
    : port_(port), fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))
{
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
        ::close(std::exchange(fd_, -1));
        return;
    }
    const int on = 1; // only now: others may bind this port only if they set this option too
    ::setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
}

inline ReservedPort ReservedPort::any()
{
    std::random_device random;
    std::uniform_int_distribution<int> ports(10'000, 22'767);
    for (int attempt = 0; attempt < 1000; ++attempt) {
        ReservedPort port(static_cast<std::uint16_t>(ports(random)));
        if (port.fd_ >= 0) {
            return port;
        }
    }
    throw std::runtime_error("no free TCP port between 10000 and 22767 on 127.0.0.1");
}

/// Sends PING to a unix socket. @return what came first within @p timeout, or nothing.
inline std::string ping(const std::string& path, std::chrono::milliseconds timeout)
{
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval limit{timeout.count() / 1000, (timeout.count() % 1000) * 1000};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    constexpr std::string_view request = "*1\r\n$4\r\nPING\r\n";
    std::array<char, 256> answer{};
    ssize_t size = 0;
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
        ::send(fd, request.data(), request.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(request.size())) {
        size = ::recv(fd, answer.data(), answer.size(), 0);
    }
    ::close(fd);
    return {answer.data(), static_cast<std::size_t>(size > 0 ? size : 0)};
}

/// Whether the answer to PING shows a server that serves: it does not while it loads its data.
inline bool isReady(const std::string& answer)
{
    return answer.starts_with("+PONG") || answer.starts_with("-NOAUTH") || answer.starts_with("-NOPERM");
}

inline std::string percentEncoded(std::string_view text)
{
    constexpr std::string_view plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    constexpr std::string_view digits = "0123456789ABCDEF";
    std::string encoded;
    for (const char c : text) {
        if (plain.find(c) != std::string_view::npos) {
            encoded += c;
        } else {
            const auto byte = static_cast<unsigned char>(c);
            encoded += {'%', digits[byte >> 4U], digits[byte & 15U]};
        }
    }
    return encoded;
}

} // namespace detail

inline RedisServer::RedisServer(RedisServerOptions options)
    : options_(std::move(options)), executable_(detail::findExecutable(options_.executable))
{
    startOnFreePort();
}

inline std::string RedisServer::url() const
{
    if (port() == 0) {
        return unixUrl();
    }
    const auto address = credentials() + host() + ":" + std::to_string(port());
    return options_.tls ? "rediss://" + address + "?ca_file=" + detail::percentEncoded(options_.tls->caFile)
                        : "redis://" + address;
}

inline std::string RedisServer::unixUrl() const
{
    return "unix://" + credentials() + unixSocket();
}

inline std::string RedisServer::credentials() const
{
    return options_.password.empty() ? "" : ":" + detail::percentEncoded(options_.password) + "@";
}

inline std::string RedisServer::log() const
{
    return detail::readFile(logFile());
}

inline void RedisServer::startOnFreePort()
{
    constexpr int attempts = 20; // each can fail only because another process was faster
    for (int attempt = 0; attempt < attempts; ++attempt) {
        port_ = options_.unixSocketOnly ? detail::ReservedPort() : detail::ReservedPort::any();
        if (options_.tls) {
            plainPort_ = options_.tls->plainToo ? detail::ReservedPort::any() : detail::ReservedPort();
        }
        const auto result = start();
        if (result == Start::answers) {
            return;
        }
        if (result == Start::failed) {
            break;
        }
    }
    fail();
}

inline void RedisServer::restart()
{
    stop();
    const auto began = std::chrono::steady_clock::now();
    auto result = start();
    while (result == Start::portTaken && !detail::isOver(options_.startTimeout, began)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        result = start();
    }
    if (result != Start::answers) {
        fail();
    }
}

inline RedisServer::Start RedisServer::start()
{
    const auto logBegin = detail::sizeOrZero(logFile());
    std::error_code ignored;
    std::filesystem::remove(unixSocket(), ignored); // a killed server leaves it behind
    process_ = detail::ChildProcess(command(), logFile());
    return awaitAnswer(logBegin);
}

inline RedisServer::Start RedisServer::awaitAnswer(std::uintmax_t logBegin)
{
    // Asked over the unix socket: on the TCP port another server might answer. Redis opens the socket after the port.
    const auto began = std::chrono::steady_clock::now();
    while (process_.runs() && !detail::isOver(options_.startTimeout, began)) {
        if (detail::isReady(detail::ping(unixSocket(), std::chrono::milliseconds(250)))) {
            return Start::answers;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    if (process_.runs()) {
        return Start::failed;
    }
    const auto log = detail::readFile(logFile(), logBegin);
    if (log.find(debugOption) != std::string::npos && std::exchange(asksForDebug_, false)) {
        return start();
    }
    return log.find("Address already in use") != std::string::npos ? Start::portTaken : Start::failed;
}

inline std::vector<std::string> RedisServer::command() const
{
    std::vector<std::string> words{executable_};
    auto extra = options_.arguments.begin();
    if (extra != options_.arguments.end() && !extra->starts_with('-')) {
        words.push_back(*extra++);
    }
    words.insert(words.end(), {"--bind", host(), "--port", std::to_string(plainPort()), "--unixsocket", unixSocket()});
    words.insert(words.end(), {"--dir", folder().string(), "--daemonize", "no", "--save", "", "--appendonly", "no"});
    if (asksForDebug_) {
        words.insert(words.end(), {std::string("--") + debugOption, "yes"});
    }
    if (!options_.password.empty()) {
        words.insert(words.end(), {"--requirepass", options_.password});
    }
    if (const auto& tls = options_.tls) {
        const auto clients = static_cast<std::size_t>(tls->clients);
        constexpr std::array<const char*, 3> asked{"no", "optional", "yes"};
        words.insert(words.end(), {"--tls-port", std::to_string(port()), "--tls-auth-clients", asked.at(clients)});
        words.insert(words.end(), {"--tls-cert-file", tls->certFile, "--tls-key-file", tls->keyFile});
        words.insert(words.end(), {"--tls-ca-cert-file", tls->caFile});
    }
    words.insert(words.end(), extra, options_.arguments.end());
    return words;
}

inline void RedisServer::fail()
{
    const auto how = process_.pid() != 0
                         ? "did not answer within " + std::to_string(options_.startTimeout.count()) + " ms"
                         : "ended during its start (" + process_.ending() + ")";
    kill();
    throw std::runtime_error(executable_ + " " + how + "; the end of its log:\n" + detail::lastLines(log(), 20));
}

inline void RedisServer::freeze()
{
    if (!isRunning()) {
        throw std::logic_error("RedisServer::freeze: the server is not running");
    }
    process_.signal(SIGSTOP);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (process_.state() != 'T') {
        if (std::chrono::steady_clock::now() >= deadline) {
            throw std::runtime_error("RedisServer::freeze: the server did not stop within 5 s");
        }
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
}

} // namespace redislock::testing
