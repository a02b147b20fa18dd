/// @file
/// The connection that listens.
#pragma once

#include "redislock/detail/logic/subscription_table.hpp"
#include "redislock/detail/protocol/command.hpp"
#include "transport/async_connection.hpp"

#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>

namespace redislock::detail {

/// One connection for all channels of a client. After every (re)subscription, and for every message, it calls a function with the
/// listener concerned. A PING every few seconds notices a connection that died silently.
///
/// **Thread safety**: none; everything on the io_context's thread.
/// @tparam Listener what want() was given; copied.
template <class Listener>
class Subscriber final : private AsyncConnection::Owner {
public:
    using Table = SubscriptionTable<Listener>;
    using Kind = typename Table::Incoming::Kind;
    using Handler = std::function<void(const Listener&, Kind)>;

    Subscriber(boost::asio::io_context& io, Connector& connector, std::chrono::milliseconds timeout,
               std::chrono::milliseconds heartbeat, std::uint64_t seed, Handler handler,
               std::function<void(bool up, Errc)> report)
        : connection_(io, connector, *this, timeout, seed),
          heartbeat_(heartbeat),
          pulse_(io),
          handler_(std::move(handler)),
          report_(std::move(report))
    {
    }

    /// Listens to a channel until it is dropped as often as it was wanted.
    void want(const std::string& channel, Listener listener)
    {
        if (!table_.want(channel, std::move(listener))) {
            return;
        }
        if (connection_.isConnected()) {
            request("SUBSCRIBE", channel);
        } else if (!closed_) {
            connection_.open();
        }
    }

    void drop(const std::string& channel)
    {
        if (table_.drop(channel) && connection_.isConnected()) {
            request("UNSUBSCRIBE", channel);
        }
    }

    /// Ends the connection, and makes another if that is needed.
    void reset() { connection_.close({Failure::lostReply, Errc::unreachable}); }

    /// Ends the connection for good.
    void close()
    {
        closed_ = true;
        pulse_.cancel();
        connection_.close({Failure::fatal, Errc::shutdown});
    }

private:
    void onConnected() override
    {
        report_(true, {});
        sentAt_.clear();
        for (const auto& channel : table_.connected()) {
            request("SUBSCRIBE", channel);
        }
        armPulse();
    }

    bool onReply(Reply& reply) override
    {
        const auto before = table_.unanswered();
        const auto incoming = table_.received(reply);
        if (table_.unanswered() < before) {
            sentAt_.pop_front();
            connection_.served();
        }
        if (incoming.listener != nullptr) {
            handler_(*incoming.listener, incoming.kind);
        }
        return incoming.kind != Kind::unexpected;
    }

    void onDisconnected(Fault fault) override
    {
        report_(false, fault.error);
        sentAt_.clear();
    }

    bool needed() const override { return !closed_ && !table_.empty(); }
    TimePoint oldestSent() const override { return sentAt_.empty() ? TimePoint::max() : sentAt_.front(); }

    void request(std::string_view verb, const std::string& channel)
    {
        bytes_.clear();
        appendCommand(bytes_, {verb, channel});
        send(channel);
    }

    void send(const std::string& channel)
    {
        table_.sent(channel);
        sentAt_.push_back(BootClock::now());
        connection_.send(bytes_);
    }

    void armPulse()
    {
        pulse_.expires_after(heartbeat_);
        pulse_.async_wait([this](boost::system::error_code ec) {
            if (ec || !connection_.isConnected()) {
                return;
            }
            if (!table_.empty() && sentAt_.empty()) {
                bytes_.clear();
                appendCommand(bytes_, {"PING"});
                send({});
            }
            armPulse();
        });
    }

    AsyncConnection connection_;
    Table table_;
    std::deque<TimePoint> sentAt_; ///< of the table's unanswered requests
    std::chrono::milliseconds heartbeat_;
    boost::asio::steady_timer pulse_;
    Handler handler_;
    std::function<void(bool, Errc)> report_;
    std::string bytes_;
    bool closed_ = false;
};

} // namespace redislock::detail
