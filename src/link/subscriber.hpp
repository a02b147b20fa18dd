/// @file
/// A connection that listens to channels.
#pragma once

#include "link/loop_link.hpp"
#include "link/subscriptions.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace redislock::detail {

/// One connection for all channels of a client, on its thread.
///
/// **Thread safety**: none; everything on the io_context's thread.
class Subscriber final : public LoopLink {
public:
    Subscriber(boost::asio::io_context& io, Connector& connector, std::chrono::milliseconds timeout,
               std::chrono::milliseconds heartbeat, std::uint64_t seed, Report report, bool asks = false)
        : LoopLink(io, connector, subscriptions_, timeout, std::move(report)),
          subscriptions_(timeout, heartbeat, seed, asks)
    {
    }

    void want(const std::string& channel, const ChannelListener& listener)
    {
        subscriptions_.want(channel, listener);
        work();
    }
    void drop(const std::string& channel, const ChannelListener& listener)
    {
        subscriptions_.drop(channel, listener);
        work();
    }

    /// As Subscriptions::take().
    Subscriptions::Taken take(const std::function<bool(const std::string&)>& isToGo)
    {
        auto taken = subscriptions_.take(isToGo);
        work();
        return taken;
    }
    /// Called when the server has ended a subscription, or says that another node has the channel. Before the first
    /// call.
    std::function<void()> ended;
    [[nodiscard]] bool isEmpty() const noexcept { return subscriptions_.channels() == 0; }
    [[nodiscard]] const auto& listeners() const noexcept { return subscriptions_.listeners(); }

private:
    void whenHeard() override
    {
        if (subscriptions_.takeEnded() && ended) {
            ended();
        }
    }

    Subscriptions subscriptions_;
};

} // namespace redislock::detail
