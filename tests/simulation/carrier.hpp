/// @file
/// A client's connections over the simulated network.
#pragma once

#include "link/link.hpp"
#include "link/protocol.hpp"
#include "link/subscriptions.hpp"
#include "simulation/network.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace redislock::simulation {

/// Carries the bytes of a protocol of the library; decides nothing. Other tests cover sockets, and threads that lead
/// and follow.
class Carrier : public Endpoint {
public:
    struct Way {
        Network& network;
        std::shared_ptr<Host> host;
        Purpose purpose;
        TimePoint::duration connectTimeout;
        std::function<void()> afterwards; ///< called after each event, when the calls that it ended have been told
        std::function<void()> madeAgain;  ///< a connection is there that had ended
    };

    /// Does what the protocol asks for.
    void work();

    void opened(LinkId link) override;
    void connectFailed() override;
    void received(Reply reply) override;
    void closed() override { lose(Cause::connectionLost); }

protected:
    explicit Carrier(Way way) : way_(std::move(way)) {}

    [[nodiscard]] virtual detail::Protocol& protocol() noexcept = 0;
    /// Sends what the protocol gave to be written.
    virtual void send(std::string_view bytes) = 0;
    void send(Request request, std::optional<Situation> situation)
    {
        way_.network.send(link_, std::move(request), situation);
    }
    [[nodiscard]] TimePoint now() const noexcept { return way_.host->now(); }

    const Way way_;

private:
    void lose(detail::Reason why);
    void setTimer();

    LinkId link_ = 0;
    TimePoint timerAt_ = TimePoint::max();
    bool wasOpen_ = false;
};

/// A connection for requests.
class RequestCarrier final : public Carrier {
public:
    /// @param lastRequest the number of the client's last request
    RequestCarrier(Way way, TimePoint::duration timeout, std::uint64_t seed, std::uint64_t& lastRequest)
        : Carrier(std::move(way)), lastRequest_(lastRequest), link_(std::in_place, timeout, seed)
    {
    }

    void enqueue(std::shared_ptr<detail::Call> call, std::shared_ptr<detail::Call> behind = nullptr);
    [[nodiscard]] detail::Link& link() noexcept { return *link_; }
    [[nodiscard]] const detail::Link& link() const noexcept { return *link_; }
    /// The process is gone: nobody learns of the end of its calls.
    void drop() { link_.reset(); }
    [[nodiscard]] std::size_t unanswered() const override { return link().queue().unanswered(); }

private:
    [[nodiscard]] detail::Protocol& protocol() noexcept override { return *link_; }
    void send(std::string_view bytes) override;

    std::uint64_t& lastRequest_;
    std::optional<detail::Link> link_;
    std::unordered_map<const detail::Call*, std::uint64_t> numbers_; ///< of the last request of a call
};

/// A connection that listens.
class ListeningCarrier final : public Carrier {
public:
    ListeningCarrier(Way way, TimePoint::duration timeout, TimePoint::duration heartbeat, std::uint64_t seed)
        : Carrier(std::move(way)), subscriptions_(timeout, heartbeat, seed)
    {
    }

    void want(const std::string& channel, const detail::ChannelListener& listener)
    {
        subscriptions_.want(channel, listener);
        work();
    }
    void drop(const std::string& channel, const detail::ChannelListener& listener)
    {
        subscriptions_.drop(channel, listener);
        work();
    }
    [[nodiscard]] std::size_t channels() const noexcept { return subscriptions_.channels(); }
    [[nodiscard]] std::size_t unanswered() const override { return subscriptions_.unanswered(); }

private:
    [[nodiscard]] detail::Protocol& protocol() noexcept override { return subscriptions_; }
    void send(std::string_view bytes) override;

    detail::Subscriptions subscriptions_;
};

} // namespace redislock::simulation
