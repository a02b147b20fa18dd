/// @file
/// A client's connection for requests.
#pragma once

#include "link/reconnect_policy.hpp"
#include "link/reply_queue.hpp"
#include "link/request/call.hpp"
#include "simulation/network.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

namespace redislock::simulation {

/// The common behaviour of the blocking connection and the connection for renewals: calls in the order of their
/// replies, one time-out for the oldest, NOSCRIPT answered with EVAL, a new connection when there is something to send.
/// Other tests cover threads that lead and follow.
class SimConnection final : public Endpoint {
public:
    /// @param told is called for each awaited call that has ended. @param lastRequest the number of the client's last
    /// request
    SimConnection(Network& network, std::shared_ptr<Host> host, Purpose purpose, TimePoint::duration timeout,
                  TimePoint::duration connectTimeout, Random& random, std::uint64_t& lastRequest,
                  std::function<void(detail::Call&)> told = nullptr)
        : told_(std::move(told)),
          lastRequest_(lastRequest),
          network_(network),
          host_(std::move(host)),
          purpose_(purpose),
          timeout_(timeout),
          connectTimeout_(connectTimeout),
          random_(random)
    {
    }

    /// Queues a call, and perhaps another right behind it, and writes both if there is a connection.
    void enqueue(std::shared_ptr<detail::Call> call, std::shared_ptr<detail::Call> behind = nullptr);

    /// The time of the call's waiter is over: the reply is read all the same, and dropped.
    detail::Fault giveUp(detail::Call& call);
    /// Takes out a call that waits for the connection. @return false if it may have been sent.
    bool withdraw(detail::Call& call);
    /// The process is gone.
    void clear();

    [[nodiscard]] std::size_t unanswered() const override { return queue_.unanswered(); }
    [[nodiscard]] bool idle() const noexcept { return queue_.empty(); }
    [[nodiscard]] bool isConnected() const noexcept { return state_ == State::connected && !leaving_; }

    void opened(LinkId link) override;
    void connectFailed() override;
    void received(Reply reply) override;
    void closed() override { disconnect({detail::Failure::lostReply, Errc::unreachable}); }

private:
    enum class State { disconnected, connecting, connected };

    void write();
    void connectIfNeeded();
    void disconnect(detail::Fault fault);
    void finish(const std::shared_ptr<detail::Call>& call, const detail::Fault* fault);
    void armTimeout();

    const std::function<void(detail::Call&)> told_;
    std::uint64_t& lastRequest_;
    std::unordered_map<const detail::Call*, std::uint64_t> numbers_; ///< of the calls in the queue
    Network& network_;
    std::shared_ptr<Host> host_;
    const Purpose purpose_;
    const TimePoint::duration timeout_;
    const TimePoint::duration connectTimeout_;
    Random& random_;
    detail::ReplyQueue<detail::Call> queue_;
    detail::ReconnectPolicy policy_;
    State state_ = State::disconnected;
    LinkId link_ = 0;
    bool timeoutArmed_ = false;
    bool leaving_ = false; ///< the server is no master any more
};

} // namespace redislock::simulation
