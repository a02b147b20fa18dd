/// @file
/// A connection for questions, for the use of one thread.
#pragma once

#include "link/connect/connector.hpp"
#include "link/connect/last_errors.hpp"
#include "link/connect/stream.hpp"
#include "redislock/clock.hpp"
#include "redislock/config.hpp"
#include "wire/bulk_lines.hpp"
#include "wire/codec.hpp"

#include <boost/asio/io_context.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::detail {

/// Requests in their order, as bytes.
class Pipeline {
public:
    Pipeline& add(const std::vector<std::string>& words);

    [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

private:
    std::string bytes_;
    std::size_t size_ = 0;
};

/// A connection that its caller's thread opens, writes to and reads, with no other thread. It is opened when it is
/// needed, and closed by the first failure; nothing is sent twice.
///
/// **Thread safety**: none.
class RequestConnection {
public:
    RequestConnection(const Config& config, const std::string& name, LastErrors& lastErrors);

    /// Opens the connection if it is not open, or was closed by the server. Blocks for at most
    /// `Config::connectTimeout`.
    std::optional<Fault> open();
    /// Sends the requests and reads as many replies; error replies are replies. Blocks for at most
    /// `Config::commandTimeout` at a time without any byte that comes or goes.
    std::optional<Fault> ask(const Pipeline& requests, std::vector<Reply>& replies);
    /// Sends one request, whose reply is a bulk string, and calls @p onLine with each of its lines. @param refusal the
    /// reply, if it was an error
    std::optional<Fault> askForLines(const Pipeline& request, const std::function<void(std::string_view)>& onLine,
                                     std::optional<Reply>& refusal);

private:
    std::optional<Fault> send(std::string_view bytes);
    std::optional<Fault> receive(std::string_view& bytes);
    Fault end(Fault fault);
    Fault endGarbled() { return end({Failure::fatal, Errc::notRedis}); }

    const std::chrono::milliseconds timeout_;
    LastErrors& lastErrors_;
    boost::asio::io_context io_{1};
    Connector connector_;
    Stream stream_;
    ReplyReader reader_;
    std::array<char, 16 * 1024> buffer_;
};

} // namespace redislock::detail
