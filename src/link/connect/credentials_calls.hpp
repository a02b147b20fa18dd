/// @file
/// Asking a user's function for credentials.
#pragma once

#include "link/connect/last_errors.hpp"
#include "redislock/clock.hpp"
#include "redislock/config.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace redislock::detail {

/// Why these credentials cannot be used; empty: they can. @param now of the clock by which they end
std::string refusalOf(const Credentials& credentials, std::chrono::system_clock::time_point now);

/// When a connection that is made with these credentials now is to be replaced: when a fifth of their time is left;
/// max(): never.
TimePoint replacementTime(const Credentials& credentials, std::chrono::system_clock::time_point wallNow, TimePoint now);

/// The calls of Config::credentials for one connector. Each runs on a thread of its own, which owns all that it uses:
/// the function may hang, and outlive the client. All who ask while a call runs wait for that call, until its time is
/// over; the next one to ask then causes another. At most four calls run in the process, those that hang included.
///
/// **Thread safety**: none; everything on the io_context's thread.
class CredentialsCalls {
public:
    /// Null: there are none. Why is noted.
    using Handler = std::function<void(const Credentials*)>;

    CredentialsCalls(boost::asio::io_context& io, const Config& config, LastErrors& lastErrors);
    CredentialsCalls(const CredentialsCalls&) = delete;
    CredentialsCalls& operator=(const CredentialsCalls&) = delete;
    ~CredentialsCalls();

    /// @param server for which the function is called, unless a call runs already. @p handler is called once, perhaps
    /// at once, unless close() comes first.
    void ask(const Endpoint& server, Handler handler);
    /// Calls no handler any more. A call that runs is left alone.
    void close();

    /// How long a call may take.
    [[nodiscard]] std::chrono::milliseconds timeout() const noexcept { return timeout_; }

private:
    struct Answer;
    struct Call;
    struct Line;

    void start(const Endpoint& server);
    static void run(const Call& call) noexcept;
    void ended(std::uint64_t number, Answer answer);

    boost::asio::io_context& io_;
    const std::shared_ptr<const CredentialsProvider> provider_;
    const std::chrono::milliseconds timeout_;
    LastErrors& lastErrors_;
    const std::uint32_t generation_;
    const std::shared_ptr<Line> line_;
    boost::asio::steady_timer timer_; ///< keeps the io_context at work while a call is waited for
    std::uint64_t number_ = 0;        ///< of the last call
    std::vector<Handler> waiting_;    ///< for that call; empty: it has ended, or its time is over
};

/// What is said of a call that has taken too long.
std::string noAnswerIn(std::chrono::milliseconds time);

} // namespace redislock::detail
