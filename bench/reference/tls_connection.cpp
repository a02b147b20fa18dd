#include "reference/tls_connection.hpp"

#include "measurement.hpp"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <stdexcept>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace redislock::bench {

namespace {

int connectTo(const std::string& host, std::uint16_t port)
{
    const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    expect(::inet_pton(AF_INET, host.c_str(), &address.sin_addr) == 1, "the address of the reference's server");
    const int on = 1;
    ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    expect(::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0,
           "the reference's connect");
    return descriptor;
}

} // namespace

TlsConnection::TlsConnection(const std::string& host, std::uint16_t port, const std::string& caFile)
    : context_(SSL_CTX_new(TLS_client_method())), reader_(redisReaderCreate())
{
    expect(SSL_CTX_load_verify_locations(context_.get(), caFile.c_str(), nullptr) == 1, "the reference's authorities");
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_read_ahead(context_.get(), 1); // one read(2) a record instead of two
    session_.reset(SSL_new(context_.get()));
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session_.get()), host.c_str());
    BIO* const socket = BIO_new_socket(connectTo(host, port), BIO_CLOSE); // as SSL_set_fd() makes it, and closes it too
    SSL_set_bio(session_.get(), socket, socket);
    expect(SSL_connect(session_.get()) == 1, "the reference's TLS handshake");
}

TlsConnection::Reply TlsConnection::command(std::initializer_list<std::string_view> words)
{
    std::array<const char*, RawConnection::mostWords> begins{};
    std::array<std::size_t, RawConnection::mostWords> sizes{};
    std::size_t count = 0;
    for (const auto word : words) {
        begins.at(count) = word.data();
        sizes.at(count) = word.size();
        ++count;
    }
    char* request = nullptr;
    const int size = redisFormatCommandArgv(&request, static_cast<int>(count), begins.data(), sizes.data());
    expect(size > 0, "the memory for a request");
    const int written = SSL_write(session_.get(), request, size);
    redisFreeCommand(request);
    expect(written == size, "the reference's write over TLS");
    void* answer = nullptr;
    while (redisReaderGetReply(reader_.get(), &answer) == REDIS_OK && answer == nullptr) {
        std::array<char, 16384> buffer;
        const int read = SSL_read(session_.get(), buffer.data(), static_cast<int>(buffer.size()));
        expect(read > 0, "the reference's read over TLS");
        redisReaderFeed(reader_.get(), buffer.data(), static_cast<std::size_t>(read));
    }
    Reply reply(static_cast<redisReply*>(answer));
    if (!reply || reply->type == REDIS_REPLY_ERROR) {
        throw std::runtime_error(fmt::format("reference: {}: {}", *words.begin(), reply ? reply->str : "no RESP"));
    }
    return reply;
}

std::string TlsConnection::load(std::string_view script)
{
    const auto reply = command({"SCRIPT", "LOAD", script});
    expect(reply->type == REDIS_REPLY_STRING, "the reply to SCRIPT LOAD");
    return {reply->str, static_cast<std::size_t>(reply->len)};
}

} // namespace redislock::bench
