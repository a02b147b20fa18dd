// Everything that a server can send as TLS: bytes instead of it, TLS that was changed on the way, and whatever a server
// may do between its answers; cut anywhere.
//
// An input is one byte that chooses what the server does, one byte that chooses how its bytes are cut, and the bytes
// that it is about.
#include "fuzz/fuzz_target.hpp"
#include "link/tls/tls_session.hpp"
#include "support/certificates.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace redislock::test {
namespace {

using detail::TlsSession;
using Status = detail::Transferred::Status;

const detail::TlsContext& clients()
{
    static const auto loaded = [] {
        Tls tls;
        tls.caFile = Authority::trusted().caFile();
        return detail::TlsContext::load(tls);
    }();
    require(loaded.context != nullptr, "the files are good");
    return *loaded.context;
}

SSL_CTX* servers()
{
    static const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context = [] {
        std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> made(::SSL_CTX_new(::TLS_server_method()), &::SSL_CTX_free);
        const auto& certificate = Authority::trusted().server();
        require(::SSL_CTX_use_certificate_chain_file(made.get(), certificate.certFile.c_str()) == 1 &&
                    ::SSL_CTX_use_PrivateKey_file(made.get(), certificate.keyFile.c_str(), SSL_FILETYPE_PEM) == 1,
                "the files are good");
        return made;
    }();
    return context.get();
}

/// A client's session, which gets bytes in pieces and keeps what it makes of them.
class FedClient {
public:
    explicit FedClient(std::uint64_t seed) : random_(seed) { go(); }

    void feed(std::string_view bytes)
    {
        while (!bytes.empty() && !hasEnded_) {
            const auto segment = bytes.substr(0, segmentSize(random_, bytes.size()));
            bytes.remove_prefix(segment.size());
            require(session_->feed(segment), "there is memory");
            go();
        }
    }

    [[nodiscard]] bool isEstablished() const { return isEstablished_; }
    [[nodiscard]] bool hasFailed() const { return session_->failure().has_value(); }
    [[nodiscard]] bool hasEnded() const { return hasEnded_; }
    [[nodiscard]] const std::string& received() const { return received_; }
    TlsSession& session() { return *session_; }

private:
    /// Goes on as far as the bytes reach.
    void go()
    {
        if (!isEstablished_) {
            const auto shaken = session_->handshake();
            isEstablished_ = shaken.status == Status::ok;
            hasEnded_ = shaken.status == Status::closed;
            require(!hasEnded_ || hasFailed() || !session_->toSend().empty(), "a handshake does not end for nothing");
        }
        if (isEstablished_ && !hasEnded_) {
            read();
        }
        for (const char c : hasFailed() ? session_->failure()->words : "") {
            require(c >= ' ' && c <= '~', "a reason is printable");
        }
    }

    void read()
    {
        for (;;) {
            std::array<char, 300> buffer{};
            const auto size = 1 + static_cast<std::size_t>(random_.next() % buffer.size());
            const auto some = session_->read(std::span(buffer).first(size));
            require(some.bytes <= size, "no more is read than there is room for");
            received_.append(buffer.data(), some.bytes);
            if (some.status != Status::ok) {
                require(some.bytes == 0, "what was read counts");
                hasEnded_ = some.status == Status::closed;
                return;
            }
            require(some.bytes > 0, "an end or a wait is no bytes");
        }
    }

    Random random_;
    std::unique_ptr<TlsSession> session_ = clients().session("127.0.0.1");
    bool isEstablished_ = false;
    bool hasEnded_ = false;
    std::string received_;
};

/// The server's side in memory, and the way between the two.
class Server {
public:
    explicit Server(int version)
    {
        ::SSL_set_min_proto_version(ssl_.get(), version);
        ::SSL_set_max_proto_version(ssl_.get(), version);
        ::SSL_set_bio(ssl_.get(), ::BIO_new(::BIO_s_mem()), ::BIO_new(::BIO_s_mem())); // it owns them
        ::SSL_set_accept_state(ssl_.get());
    }

    /// What the client has to send goes to the server, which reads it, and the reverse. @return whether anything went.
    bool exchange(FedClient& client)
    {
        const auto request = client.session().toSend();
        const bool asked = !request.empty();
        ::BIO_write(::SSL_get_rbio(ssl_.get()), request.data(), static_cast<int>(request.size()));
        client.session().sent(request.size());
        if (::SSL_do_handshake(ssl_.get()) == 1) {
            std::array<char, 4096> buffer{};
            for (int size = 0; (size = ::SSL_read(ssl_.get(), buffer.data(), static_cast<int>(buffer.size()))) > 0;) {
                received_.append(buffer.data(), static_cast<std::size_t>(size));
            }
        }
        ::ERR_clear_error();
        char* begin = nullptr;
        const auto size = BIO_get_mem_data(::SSL_get_wbio(ssl_.get()), &begin);
        std::string answer(begin == nullptr ? "" : begin, static_cast<std::size_t>(size));
        (void)BIO_reset(::SSL_get_wbio(ssl_.get()));
        for (auto& byte : answer) {
            byte = changed(byte);
        }
        client.feed(answer);
        return asked || !answer.empty();
    }

    /// Until nobody has anything to say.
    void exchangeAll(FedClient& client)
    {
        for (int i = 0; exchange(client); ++i) {
            require(i < 100, "it comes to an end");
        }
    }

    /// From now on changes bytes on their way to the client: after so many bytes as the first two bytes of @p edits say
    /// it is combined with the third, and so on.
    void change(Input& edits) { edits_ = &edits; }

    void write(std::string_view bytes)
    {
        require(::SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size())) > 0, "the server writes");
        sent_ += bytes;
    }
    void sendTicket() { ::SSL_new_session_ticket(ssl_.get()), ::SSL_do_handshake(ssl_.get()); }
    void updateKeys(int how) { ::SSL_key_update(ssl_.get(), how), ::SSL_do_handshake(ssl_.get()); }
    void close() { ::SSL_shutdown(ssl_.get()); }

    [[nodiscard]] const std::string& sent() const { return sent_; }
    [[nodiscard]] const std::string& received() const { return received_; }
    [[nodiscard]] bool hasChanged() const { return hasChanged_; }

private:
    char changed(char byte)
    {
        if (edits_ == nullptr || (left_ == 0 && edits_->empty())) {
            return byte;
        }
        if (left_ == 0) {
            left_ = 1 + edits_->byte() + 256 * (edits_->byte() % 16);
            mask_ = edits_->byte();
        }
        const auto mask = --left_ == 0 ? mask_ : std::uint8_t{0};
        hasChanged_ = hasChanged_ || mask != 0;
        return static_cast<char>(static_cast<std::uint8_t>(byte) ^ mask);
    }

    std::unique_ptr<SSL, decltype(&SSL_free)> ssl_{::SSL_new(servers()), &::SSL_free};
    std::string sent_;
    std::string received_;
    Input* edits_ = nullptr;
    std::size_t left_ = 0; ///< bytes up to the next change
    std::uint8_t mask_ = 0;
    bool hasChanged_ = false;
};

bool isBeginning(const std::string& part, const std::string& whole)
{
    return whole.compare(0, part.size(), part) == 0;
}

/// Anything instead of TLS.
void feedAnything(Input& input, std::uint64_t seed)
{
    FedClient client(seed);
    client.feed(input.rest());
    require(!client.isEstablished(), "nobody shakes hands without keys");
    FedClient twin(7); // another seed, other pieces
    twin.feed(input.rest());
    require(client.hasFailed() == twin.hasFailed(), "where the bytes are cut does not matter");
}

/// A handshake and answers that are changed on the way.
void change(Input& input, std::uint64_t seed, int version)
{
    FedClient client(seed);
    Server server(version);
    server.change(input);
    server.exchangeAll(client);
    if (client.isEstablished() && !client.hasEnded()) {
        (void)client.session().report();
        for (int i = 0; i < 3 && !client.hasEnded(); ++i) {
            server.write("+PONG\r\n");
            server.exchangeAll(client);
        }
    }
    require(isBeginning(client.received(), server.sent()), "nothing is read that was not sent");
    require(server.hasChanged() || client.received() == server.sent(), "what is not changed comes");
}

/// Anything behind a handshake.
void feedAnythingLater(Input& input, std::uint64_t seed, int version)
{
    FedClient client(seed);
    Server server(version);
    server.exchangeAll(client);
    require(client.isEstablished() && !client.hasEnded(), "the handshake succeeds");
    client.feed(input.rest());
    require(client.received().empty(), "nothing is read that was not sent");
}

/// Whatever a server may do between its answers.
void talk(Input& input, std::uint64_t seed, int version)
{
    FedClient client(seed);
    Server server(version);
    server.exchangeAll(client);
    std::string asked;
    bool isClosed = false;
    for (int i = 0; !input.empty() && i < 200 && !isClosed; ++i) {
        const auto what = input.byte();
        const auto bytes = input.take(what / 8U);
        switch (what % 8) {
        case 0:
            server.sendTicket();
            break;
        case 1:
            server.updateKeys(SSL_KEY_UPDATE_NOT_REQUESTED);
            break;
        case 2:
            server.updateKeys(SSL_KEY_UPDATE_REQUESTED);
            break;
        case 3:
            isClosed = what >= 240;
            if (isClosed) {
                server.close();
            }
            break;
        case 4:
            server.exchange(client);
            break;
        case 5:
        case 6:
            if (!bytes.empty()) {
                require(client.session().write(bytes), "the client writes");
                asked += bytes;
            }
            break;
        default:
            if (!bytes.empty()) {
                server.write(bytes);
            }
            break;
        }
        ::ERR_clear_error();
    }
    server.exchangeAll(client);
    require(!client.hasFailed(), "nothing of this is a failure");
    require(client.received() == server.sent(), "all answers come");
    require(isClosed || server.received() == asked, "all requests come");
    require(client.hasEnded() == isClosed, "an end is seen");
}

} // namespace
} // namespace redislock::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    using namespace redislock::test;
    Input input(data, size);
    const auto choice = input.byte();
    const auto seed = input.byte();
    const int version = choice / 4 % 2 == 0 ? TLS1_3_VERSION : TLS1_2_VERSION;
    switch (choice % 4) {
    case 0:
        feedAnything(input, seed);
        break;
    case 1:
        change(input, seed, version);
        break;
    case 2:
        feedAnythingLater(input, seed, version);
        break;
    default:
        talk(input, seed, version);
        break;
    }
    return 0;
}
