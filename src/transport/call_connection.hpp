/// @file
/// Calls on a connection of the background thread.
#pragma once

#include "logic/call/call.hpp"
#include "redislock/detail/logic/reply_queue.hpp"
#include "transport/async_connection.hpp"

#include <functional>
#include <memory>
#include <string>

namespace redislock::detail {

/// Detached calls, pipelined over an AsyncConnection: renewals, and asynchronous calls.
///
/// **Thread safety**: none; everything on the io_context's thread, finished() of the calls too.
class CallConnection final : private AsyncConnection::Owner {
public:
    CallConnection(boost::asio::io_context& io, Connector& connector, std::chrono::milliseconds timeout,
                   std::uint64_t seed, std::function<void(bool up, Reason)> report);

    /// Queues a call. Follow with flush().
    void enqueue(std::shared_ptr<Call> call);
    /// Takes out a call that waits for the connection. @return false if the call may have been sent.
    bool withdraw(Call& call);
    /// Sends what is queued, or connects first.
    void flush();
    [[nodiscard]] bool isConnected() const noexcept { return connection_.isConnected(); }
    /// How a call whose time is over ends. @param sent whether the call may have been sent
    [[nodiscard]] Fault overdue(bool sent) const noexcept
    {
        return sent ? Fault{Failure::lostReply, Cause::silent} : Fault{Failure::notConnected, connection_.absence()};
    }
    /// After an exception: ends the connection and what is under way on it; makes another if that is needed.
    void recover() { connection_.recover(); }
    /// Ends the connection and the calls on it.
    void close();

private:
    void onConnected() override;
    bool onReply(Reply& reply) override;
    void onDisconnected(Fault fault) override;
    bool needed() const override { return !closed_ && !queue_.empty(); }
    TimePoint oldestSent() const override { return queue_.oldestSent(); }

    void leave();
    [[nodiscard]] bool takesRequests() const noexcept { return connection_.isConnected() && !leaving_; }
    void end(const std::shared_ptr<Call>& call, Outcome outcome);

    AsyncConnection connection_;
    ReplyQueue<Call> queue_;
    std::string bytes_;
    std::function<void(bool, Reason)> report_;
    bool closed_ = false;
    bool hurried_ = false; ///< a call queued since the last flush is hurried
    bool leaving_ = false; ///< the server is no master any more: unwritten calls wait for another server
};

} // namespace redislock::detail
