#include "support/tls_peer.hpp"

#include "redislock/testing/redis_server.hpp"
#include "support/resp_framer.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <list>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace redislock::test {
namespace {

using Context = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;

/// The first reason in OpenSSL's queue of errors, which it empties; nothing: there is none.
std::string opensslReason()
{
    const auto code = ::ERR_get_error();
    ::ERR_clear_error();
    const char* const reason = code == 0 ? nullptr : ::ERR_reason_error_string(code);
    return code == 0 ? "" : reason == nullptr ? "error " + std::to_string(code) : reason;
}

void mustSucceed(int result, const char* what)
{
    if (result <= 0) {
        throw std::runtime_error(std::string("TlsPeer: ") + what + ": " + opensslReason());
    }
}

Context contextOf(const TlsPeerOptions& options)
{
    Context context(::SSL_CTX_new(::TLS_server_method()), &::SSL_CTX_free);
    auto* const raw = context.get();
    mustSucceed(::SSL_CTX_use_certificate_chain_file(raw, options.certificate.certFile.c_str()), "certificate");
    mustSucceed(::SSL_CTX_use_PrivateKey_file(raw, options.certificate.keyFile.c_str(), SSL_FILETYPE_PEM), "key");
    using Version = TlsPeerOptions::Version;
    const int only = options.version == Version::v1_2 ? TLS1_2_VERSION : TLS1_3_VERSION;
    if (options.version != Version::any) {
        ::SSL_CTX_set_min_proto_version(raw, only);
        ::SSL_CTX_set_max_proto_version(raw, only);
    }
    if (!options.clientCaFile.empty()) {
        mustSucceed(::SSL_CTX_load_verify_locations(raw, options.clientCaFile.c_str(), nullptr), "authority");
        ::SSL_CTX_set_verify(raw, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    }
    constexpr std::array<unsigned char, 4> id{'p', 'e', 'e', 'r'}; // without it no session is resumed
    ::SSL_CTX_set_session_id_context(raw, id.data(), static_cast<unsigned>(id.size()));
    ::SSL_CTX_set_mode(raw, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    return context;
}

/// A connection to a unix socket; -1 when there is none.
int connectUnix(const std::string& path)
{
    int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
        ::close(std::exchange(fd, -1));
    }
    return fd;
}

/// Sends what the socket takes, and removes it from @p bytes. @return whether the connection is still there.
bool sendFrom(std::string& bytes, int socket)
{
    if (bytes.empty()) {
        return true; // an attempt would take away the error that a read is to find
    }
    const auto sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    bytes.erase(0, sent > 0 ? static_cast<std::size_t>(sent) : 0);
    return sent >= 0 || errno == EAGAIN || errno == EINTR;
}

/// What the socket has now. @return whether the connection is still there.
bool readInto(std::string& bytes, int socket)
{
    std::array<char, 16384> buffer{};
    const auto size = ::recv(socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
    bytes.append(buffer.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
    return size > 0 || (size < 0 && (errno == EAGAIN || errno == EINTR));
}

} // namespace

class TlsPeer::Engine {
public:
    Engine(std::string unixSocket, std::string password, Answer answer, const TlsPeerOptions& options)
        : unixSocket_(std::move(unixSocket)), password_(std::move(password)), answer_(std::move(answer))
    {
        setOptions(options);
        const int on = 1;
        ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port());
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
            ::listen(listener_, SOMAXCONN) != 0) {
            throw std::runtime_error("TlsPeer: cannot listen");
        }
        thread_ = std::thread([this] { run(); });
    }
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;
    ~Engine()
    {
        closeAll(Close::reset);
        {
            const std::lock_guard lock(mutex_);
            stopping_ = true;
        }
        wake();
        thread_.join();
        ::close(listener_);
        ::close(wake_);
    }

    std::uint16_t port() const noexcept { return port_.number(); }
    const std::string& password() const noexcept { return password_; }

    void setOptions(const TlsPeerOptions& options)
    {
        auto context = contextOf(options);
        const std::lock_guard lock(mutex_);
        context_ = std::move(context);
        options_ = options;
    }

    template <class Function>
    std::size_t onEach(Function function)
    {
        const std::lock_guard lock(mutex_);
        const auto done = std::ranges::count_if(
            connections_, [&](Connection& each) { return each.isOpen() && each.isEstablished() && function(each); });
        wake();
        return static_cast<std::size_t>(done);
    }

    std::size_t closeAll(Close how)
    {
        const std::lock_guard lock(mutex_);
        const auto open = std::ranges::count_if(connections_, &Connection::isOpen);
        for (auto& connection : connections_) {
            connection.close(how);
        }
        wake();
        return static_cast<std::size_t>(open);
    }

    Seen seen()
    {
        const std::lock_guard lock(mutex_);
        auto seen = seen_;
        seen.open = static_cast<std::size_t>(std::ranges::count_if(connections_, &Connection::isOpen));
        return seen;
    }

    /// One client, and the Redis behind it unless a function answers.
    class Connection {
    public:
        Connection(Engine& engine, int client, int server)
            : engine_(engine), options_(engine.options_), client_(client), server_(server)
        {
            ::SSL_set_bio(ssl_.get(), ::BIO_new(::BIO_s_mem()), ::BIO_new(::BIO_s_mem())); // it owns them
            ::SSL_set_accept_state(ssl_.get());
            ::SSL_set_msg_callback(ssl_.get(), &Connection::onMessage);
            ::SSL_set_msg_callback_arg(ssl_.get(), &engine.seen_);
        }
        Connection(const Connection&) = delete;
        Connection& operator=(const Connection&) = delete;
        ~Connection() { close(Close::reset); }

        bool isOpen() const noexcept { return client_ >= 0; }
        bool isEstablished() const noexcept { return established_; }

        std::array<pollfd, 2> toPoll() const noexcept
        {
            const auto events = [](bool in, bool out) {
                return static_cast<short>((in ? POLLIN : 0) | (out ? POLLOUT : 0));
            };
            constexpr std::size_t many = 1024 * 1024;
            return {pollfd{client_, events(toServer_.size() < many, !toClient_.empty()), 0},
                    pollfd{server_, events(toClient_.size() < many, !toServer_.empty()), 0}};
        }

        void step(const std::array<pollfd, 2>& polled)
        {
            std::string bytes;
            if (polled[0].revents != 0 && !readInto(bytes, client_)) {
                if (!established_) {
                    engine_.seen_.failures.emplace_back("ended in the handshake");
                }
                return close(Close::reset);
            }
            ::BIO_write(::SSL_get_rbio(ssl_.get()), bytes.data(), static_cast<int>(bytes.size()));
            if (!bytes.empty() && options_.handshake != TlsPeerOptions::Handshake::silent && !muted_) {
                takeFromClient();
            }
            std::string answer;
            if (isOpen() && polled[1].revents != 0 && !readInto(answer, server_)) {
                return close(Close::notified);
            }
            if (isOpen()) {
                sendPlaintext(answer);
            }
            flush();
        }

        bool send(TlsEvent event)
        {
            auto* const ssl = ssl_.get();
            int done = 0;
            switch (event) {
            case TlsEvent::ticket:
                done = ::SSL_new_session_ticket(ssl);
                break;
            case TlsEvent::keyUpdate:
                done = ::SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
                break;
            case TlsEvent::mutualKeyUpdate:
                done = ::SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED);
                break;
            case TlsEvent::renegotiation:
                done = ::SSL_version(ssl) == TLS1_2_VERSION ? ::SSL_renegotiate(ssl) : 0;
                break;
            }
            const bool sent = done == 1 && ::SSL_do_handshake(ssl) == 1;
            ::ERR_clear_error();
            flush();
            return sent;
        }

        bool sendPlaintext(std::string_view bytes)
        {
            while (!bytes.empty()) {
                std::ranges::for_each(options_.beforeEachRecord, [this](TlsEvent event) { send(event); });
                const auto record = bytes.substr(0, options_.recordSize);
                if (::SSL_write(ssl_.get(), record.data(), static_cast<int>(record.size())) <= 0) {
                    return fail();
                }
                bytes.remove_prefix(record.size());
                takeFromSession();
            }
            flush();
            return true;
        }

        void close(Close how) noexcept
        {
            if (!isOpen()) {
                return;
            }
            if (how == Close::notified && established_) {
                ::SSL_shutdown(ssl_.get());
                ::ERR_clear_error();
                takeFromSession();
                sendFrom(toClient_, client_);
            }
            if (how == Close::reset) {
                const linger atOnce{1, 0};
                ::setsockopt(client_, SOL_SOCKET, SO_LINGER, &atOnce, sizeof(atOnce));
            } else {
                ::shutdown(client_, SHUT_WR);
                std::string unread; // closing with unread bytes would send a reset
                for (int i = 0; i < 100 && readInto(unread, client_) && !std::exchange(unread, {}).empty(); ++i) {
                }
            }
            ::close(std::exchange(client_, -1));
            if (server_ >= 0) {
                ::close(std::exchange(server_, -1));
            }
        }

    private:
        static void onMessage(int sent, int, int type, const void* bytes, std::size_t size, SSL*, void* seen)
        {
            if (sent == 0 && type == SSL3_RT_HANDSHAKE && size > 0 &&
                *static_cast<const unsigned char*>(bytes) == SSL3_MT_KEY_UPDATE) {
                ++static_cast<Seen*>(seen)->keyUpdates;
            }
        }

        void takeFromClient()
        {
            if (!established_ && !shakeHands()) {
                return;
            }
            std::array<char, 16384> buffer{};
            int size = 0;
            while ((size = ::SSL_read(ssl_.get(), buffer.data(), static_cast<int>(buffer.size()))) > 0) {
                takePlaintext({buffer.data(), static_cast<std::size_t>(size)});
            }
            if (::SSL_get_error(ssl_.get(), size) == SSL_ERROR_ZERO_RETURN) {
                ++engine_.seen_.notified;
                close(Close::notified);
            } else if (::SSL_get_error(ssl_.get(), size) != SSL_ERROR_WANT_READ) {
                fail();
            }
            takeFromSession();
        }

        /// @return whether the handshake is done.
        bool shakeHands()
        {
            const int done = ::SSL_do_handshake(ssl_.get());
            takeFromSession();
            if (done != 1) {
                return ::SSL_get_error(ssl_.get(), done) == SSL_ERROR_WANT_READ ? false : fail();
            }
            established_ = true;
            auto& seen = engine_.seen_;
            ++seen.handshakes;
            seen.resumed += ::SSL_session_reused(ssl_.get()) == 1 ? 1 : 0;
            seen.version = ::SSL_get_version(ssl_.get());
            const char* const name = ::SSL_get_servername(ssl_.get(), TLSEXT_NAMETYPE_host_name);
            seen.serverName = name == nullptr ? "" : name;
            const std::unique_ptr<X509, decltype(&X509_free)> shown(::SSL_get1_peer_certificate(ssl_.get()),
                                                                    &X509_free);
            std::array<char, 256> subject{};
            if (shown) {
                ::X509_NAME_oneline(::X509_get_subject_name(shown.get()), subject.data(), subject.size());
            }
            seen.client = subject.data();
            return true;
        }

        void takePlaintext(std::string_view bytes)
        {
            if (server_ >= 0) {
                toServer_ += bytes;
                return;
            }
            requests_.feed(bytes);
            while (const auto request = requests_.next()) {
                sendPlaintext(engine_.answer_(request->words));
            }
        }

        /// What the session wants to have sent is sent next.
        void takeFromSession() noexcept
        {
            char* bytes = nullptr;
            auto* const out = ::SSL_get_wbio(ssl_.get());
            auto size = static_cast<std::size_t>(::BIO_get_mem_data(out, &bytes));
            if (options_.handshake == TlsPeerOptions::Handshake::half && size > 0) {
                size = muted_ ? 0 : size / 2;
                muted_ = true;
            }
            toClient_.append(bytes == nullptr ? "" : bytes, size);
            (void)BIO_reset(out);
        }

        /// Keeps why the session failed, and ends the connection. @return false.
        bool fail()
        {
            engine_.seen_.failures.push_back(opensslReason());
            flush(); // with the alert that tells the client
            close(Close::silent);
            return false;
        }

        void flush()
        {
            takeFromSession();
            if (isOpen() && !sendFrom(toClient_, client_)) {
                toClient_.clear(); // the client's last bytes are still to be read
            }
            if (server_ >= 0 && !sendFrom(toServer_, server_)) {
                close(Close::notified);
            }
        }

        Engine& engine_;
        const TlsPeerOptions options_;
        int client_;
        int server_; ///< -1: none
        std::unique_ptr<SSL, decltype(&SSL_free)> ssl_{::SSL_new(engine_.context_.get()), &::SSL_free};
        std::string toClient_; ///< ciphertext
        std::string toServer_; ///< plaintext
        RespFramer requests_;  ///< for the function that answers
        bool established_ = false;
        bool muted_ = false; ///< says no more
    };

private:
    void wake() const noexcept
    {
        const std::uint64_t one = 1;
        [[maybe_unused]] const auto ignored = ::write(wake_, &one, sizeof(one)); // fails only when it is awake anyway
    }

    void run()
    {
        std::unique_lock lock(mutex_);
        while (!stopping_) {
            connections_.remove_if([](const Connection& each) { return !each.isOpen(); });
            std::vector<pollfd> polled{{wake_, POLLIN, 0}, {listener_, POLLIN, 0}};
            for (const auto& connection : connections_) {
                std::ranges::copy(connection.toPoll(), std::back_inserter(polled));
            }
            lock.unlock();
            ::poll(polled.data(), polled.size(), -1);
            lock.lock();
            std::uint64_t ignored = 0;
            while (::read(wake_, &ignored, sizeof(ignored)) > 0) {
            }
            auto at = polled.begin() + 2;
            for (auto& connection : connections_) {
                if (connection.isOpen()) {
                    connection.step({at[0], at[1]});
                }
                at += 2;
            }
            acceptClients();
        }
    }

    void acceptClients()
    {
        for (int client = 0; (client = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
            ++seen_.accepted;
            const int on = 1;
            ::setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
            connections_.emplace_back(*this, client, answer_ ? -1 : connectUnix(unixSocket_));
            if (!answer_ && connections_.back().toPoll()[1].fd < 0) {
                connections_.back().close(Close::reset); // there is no Redis behind it
            }
        }
    }

    const std::string unixSocket_;
    const std::string password_;
    const Answer answer_;
    const testing::detail::ReservedPort port_ = testing::detail::ReservedPort::any();
    const int listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int wake_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

    // Guarded by the mutex.
    std::mutex mutex_;
    Context context_{nullptr, &::SSL_CTX_free};
    TlsPeerOptions options_;
    Seen seen_;
    std::list<Connection> connections_;
    bool stopping_ = false;

    std::thread thread_;
};

TlsPeer::TlsPeer(const testing::RedisServer& server, const TlsPeerOptions& options)
    : engine_(std::make_unique<Engine>(server.unixSocket(), server.password(), nullptr, options))
{
}

TlsPeer::TlsPeer(Answer answer, const TlsPeerOptions& options)
    : engine_(std::make_unique<Engine>("", "", std::move(answer), options))
{
}

TlsPeer::~TlsPeer() = default;

std::uint16_t TlsPeer::port() const noexcept
{
    return engine_->port();
}

Config TlsPeer::config() const
{
    Config config;
    config.endpoint.port = port();
    config.password = engine_->password();
    config.tls.emplace().caFile = Authority::trusted().caFile();
    return config;
}

void TlsPeer::setOptions(const TlsPeerOptions& options)
{
    engine_->setOptions(options);
}

std::size_t TlsPeer::send(TlsEvent event)
{
    return engine_->onEach([&](Engine::Connection& each) { return each.send(event); });
}

std::size_t TlsPeer::send(const std::string& plaintext)
{
    return engine_->onEach([&](Engine::Connection& each) { return each.sendPlaintext(plaintext); });
}

std::size_t TlsPeer::closeAll(Close how)
{
    return engine_->closeAll(how);
}

TlsPeer::Seen TlsPeer::seen() const
{
    return engine_->seen();
}

} // namespace redislock::test
