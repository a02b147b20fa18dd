/// @file
/// A client's connection for requests.
#pragma once

#include "redislock/detail/logic/reconnect_policy.hpp"
#include "redislock/detail/logic/reply_queue.hpp"
#include "simulation/call.hpp"
#include "simulation/network.hpp"

#include <chrono>
#include <memory>

namespace redislock::simulation {

/// What the blocking connection and the connection for renewals have in common: calls in the order of their replies,
/// one time-out for the oldest, NOSCRIPT answered with EVAL, a new connection when there is something to send. Threads
/// that lead and follow are tested elsewhere.
class SimConnection final : public Endpoint {
public:
    SimConnection(Network& network, std::shared_ptr<Host> host, Purpose purpose, TimePoint::duration timeout,
                  TimePoint::duration connectTimeout, Random& random)
        : network_(network),
          host_(std::move(host)),
          purpose_(purpose),
          timeout_(timeout),
          connectTimeout_(connectTimeout),
          random_(random)
    {
    }

    /// Queues a call, and perhaps another right behind it, and writes both if there is a connection.
    void enqueue(std::shared_ptr<Call> call, std::shared_ptr<Call> behind = nullptr);

    /// The time of who waits is over: its reply is read all the same, by nobody.
    detail::Fault giveUp(Call& call);

    [[nodiscard]] std::size_t unanswered() const override { return queue_.unanswered(); }
    [[nodiscard]] bool idle() const noexcept { return queue_.empty(); }

    void opened(LinkId link) override;
    void connectFailed() override;
    void received(Reply reply) override;
    void closed() override { disconnect({detail::Failure::lostReply, Errc::unreachable}); }

private:
    enum class State { disconnected, connecting, connected };

    void write();
    void connectIfNeeded();
    void disconnect(detail::Fault fault);
    void finish(const std::shared_ptr<Call>& call, const detail::Fault* fault);
    void armTimeout();

    Network& network_;
    std::shared_ptr<Host> host_;
    const Purpose purpose_;
    const TimePoint::duration timeout_;
    const TimePoint::duration connectTimeout_;
    Random& random_;
    detail::ReplyQueue<Call> queue_;
    detail::ReconnectPolicy policy_;
    State state_ = State::disconnected;
    LinkId link_ = 0;
    bool timeoutArmed_ = false;
    bool leaving_ = false; ///< the server is no master any more
};

} // namespace redislock::simulation
