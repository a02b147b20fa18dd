/// @file
/// A client's connection that listens.
#pragma once

#include "link/reconnect_policy.hpp"
#include "link/request/subscriptions.hpp"
#include "simulation/network.hpp"

#include <cstddef>
#include <deque>
#include <memory>
#include <string>

namespace redislock::simulation {

/// Acts as `detail::Subscriber`: subscribes to every channel again after each connect, and sends a PING every two
/// seconds.
class SimSubscriber final : public Endpoint {
public:
    using Table = detail::SubscriptionTable<detail::ChannelListener>;

    SimSubscriber(Network& network, std::shared_ptr<Host> host, TimePoint::duration timeout,
                  TimePoint::duration connectTimeout, Random& random);

    void want(const std::string& channel, const detail::ChannelListener& listener);
    void drop(const std::string& channel, const detail::ChannelListener& listener);

    [[nodiscard]] std::size_t unanswered() const override { return table_.unanswered(); }
    [[nodiscard]] std::size_t channels() const noexcept { return table_.size(); }

    void opened(LinkId link) override;
    void connectFailed() override;
    void received(Reply reply) override;
    void closed() override { disconnected(); }

private:
    enum class State { disconnected, connecting, connected };

    void request(Request::Verb verb, const std::string& channel);
    void open();
    void disconnected();
    void armPulse();
    void armTimeout();

    Network& network_;
    std::shared_ptr<Host> host_;
    const TimePoint::duration timeout_;
    const TimePoint::duration connectTimeout_;
    Random& random_;
    Table table_;
    std::deque<TimePoint> sentAt_; ///< of the table's unanswered requests
    detail::ReconnectPolicy policy_;
    State state_ = State::disconnected;
    LinkId link_ = 0;
    bool timeoutArmed_ = false;
};

} // namespace redislock::simulation
