/// @file
/// A connection for questions, for the use of one thread.
#pragma once

#include "link/connect/connector.hpp"
#include "link/connect/last_errors.hpp"
#include "link/request/calls.hpp"
#include "link/sentinel/sentinel_watch.hpp"
#include "link/thread_link.hpp"
#include "redislock/config.hpp"

#include <boost/asio/io_context.hpp>

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace redislock::detail {

/// Requests in their order.
class Pipeline {
public:
    Pipeline& add(std::vector<std::string> words)
    {
        calls_.push_back(std::make_shared<CommandCall>(std::move(words)));
        return *this;
    }

    Pipeline& add(std::shared_ptr<CommandCall> call)
    {
        calls_.push_back(std::move(call));
        return *this;
    }

    [[nodiscard]] const std::vector<std::shared_ptr<CommandCall>>& calls() const noexcept { return calls_; }

private:
    std::vector<std::shared_ptr<CommandCall>> calls_;
};

/// A connection that its caller's thread makes, writes to and reads, with no other thread. It is made when it is
/// needed; nothing is sent twice.
///
/// **Thread safety**: none.
class RequestConnection {
public:
    RequestConnection(const Config& config, const std::string& name, LastErrors& lastErrors);

    /// Sends the requests and reads as many replies; error replies are replies. Blocks for at most
    /// `Config::connectTimeout` to connect, then for at most `Config::commandTimeout` at a time without any byte that
    /// comes.
    std::optional<Fault> ask(const Pipeline& requests, std::vector<Reply>& replies);

    [[nodiscard]] const std::optional<SentinelWatch>& sentinels() const noexcept { return sentinels_; }
    [[nodiscard]] std::optional<TlsReport> tlsReport() { return link_.tlsReport(); }

private:
    void connect();
    Outcome await(Call& call);

    boost::asio::io_context io_{1};
    Connector connector_;
    std::optional<SentinelWatch> sentinels_;
    ThreadLink link_;
    std::stop_source connects_; ///< stopped: a connection must be made
};

} // namespace redislock::detail
