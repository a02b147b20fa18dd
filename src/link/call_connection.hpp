/// @file
/// Calls on a connection of the background thread.
#pragma once

#include "link/async_connection.hpp"
#include "link/blocking_connection.hpp"
#include "link/reply_queue.hpp"
#include "link/request/call.hpp"
#include "link/request/finished_calls.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <string>

namespace redislock::detail {

/// Detached calls, pipelined over an AsyncConnection: renewals, and asynchronous calls. While that cannot be made, they
/// go over the command connection, if that is there. They keep their order: while one is lent and unanswered, those
/// behind it are lent too; only renewals need none.
///
/// **Thread safety**: none; everything on the io_context's thread, finished() of the calls too.
class CallConnection final : private AsyncConnection::Owner {
public:
    CallConnection(boost::asio::io_context& io, Connector& connector, std::chrono::milliseconds timeout,
                   std::uint64_t seed, std::function<void(bool up, Reason)> report);

    /// What carries calls while no connection can be made. Before the first call. @param ring any thread: leads to
    /// takeBack()
    void lendTo(BlockingConnection& other, std::function<void()> ring);
    /// Ends the lent calls that the other connection has answered.
    void takeBack();
    /// Gives the connection to the other one, which cannot be made, and lends it calls from now on. @return none if
    /// there is none, or if it is in use
    Stream give();

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
    bool needed() const override { return !closed_ && (!queue_.empty() || !lent_.empty()); }
    TimePoint oldestSent() const override { return queue_.oldestSent(); }

    struct Lent;

    void lend(const std::shared_ptr<Call>& call);
    void askAgain();
    void leave();
    [[nodiscard]] bool takesRequests() const noexcept { return connection_.isConnected() && !leaving_; }
    static void end(std::shared_ptr<Call> call, Outcome outcome) noexcept;
    static void over(std::shared_ptr<Call> call, Outcome outcome, FinishedCalls& ended) noexcept;

    AsyncConnection connection_;
    ReplyQueue<Call> queue_;
    BlockingConnection* other_ = nullptr;
    std::function<void()> ring_;
    std::deque<std::shared_ptr<Lent>> lent_;
    bool isAbsent_ = false; ///< the last attempt to connect has failed
    std::string bytes_;
    std::function<void(bool, Reason)> report_;
    bool closed_ = false;
    bool hurried_ = false; ///< a call queued since the last flush is hurried
    bool leaving_ = false; ///< the server is no master any more: unwritten calls wait for another server
};

} // namespace redislock::detail
