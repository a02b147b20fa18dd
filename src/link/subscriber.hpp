/// @file
/// The connection that listens to channels.
#pragma once

#include "link/async_connection.hpp"
#include "link/request/patience.hpp"
#include "link/request/subscriptions.hpp"
#include "wire/command.hpp"

#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace redislock::detail {

/// One connection for all channels of a client. After every (re)subscription, and for every message, it calls a
/// function with each listener concerned. A PING every few seconds notices a connection that died silently. What the
/// server refuses for now is asked for again every second.
///
/// **Thread safety**: none; everything on the io_context's thread.
/// @tparam Listener what want() is given; copied and compared.
template <class Listener>
class Subscriber final : private AsyncConnection::Owner {
public:
    using Table = SubscriptionTable<Listener>;
    using Kind = typename Table::Incoming::Kind;
    /// The text is that of a message. Must not call want() or drop().
    using Handler = std::function<void(const Listener&, Kind, std::string_view text)>;

    Subscriber(boost::asio::io_context& io, Connector& connector, std::chrono::milliseconds timeout,
               std::chrono::milliseconds heartbeat, std::uint64_t seed, Handler handler,
               std::function<void(bool up, Reason)> report)
        : connection_(io, connector, *this, timeout, seed),
          heartbeat_(heartbeat),
          pulse_(io),
          handler_(std::move(handler)),
          report_(std::move(report))
    {
    }

    /// Makes a listener hear of a channel until drop().
    void want(const std::string& channel, Listener listener)
    {
        const bool first = patiently([&] { return table_.want(channel, listener); });
        if (!connection_.isConnected()) {
            if (!closed_) {
                connection_.open();
            }
        } else if (first) {
            request("SUBSCRIBE", channel);
        } else { // perhaps confirmed already; if not, the listener will hear of that once more
            handler_(listener, Kind::confirmed, {});
        }
    }

    void drop(const std::string& channel, const Listener& listener)
    {
        if (table_.drop(channel, listener) && connection_.isConnected()) {
            request("UNSUBSCRIBE", channel);
        }
    }

    /// The client has found another server at @p address: leaves a server that is no master any more.
    void follow(const std::string& address) { connection_.follow(address); }

    /// After an exception: ends the connection, and makes another if that is needed.
    void recover() { connection_.recover(); }

    /// Ends the connection for good.
    void close()
    {
        closed_ = true;
        pulse_.cancel();
        connection_.end({Failure::fatal, Errc::shutdown});
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
            if (!reply.isError()) {
                connection_.served();
            }
        }
        for (const Listener& listener : incoming.listeners) {
            handler_(listener, incoming.kind, incoming.text);
        }
        if (incoming.kind == Kind::refused) {
            armPulse();
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

    void pulse()
    {
        for (const auto& channel : table_.refusedForNow()) {
            request("SUBSCRIBE", channel);
        }
        if (sentAt_.empty()) {
            bytes_.clear();
            appendCommand(bytes_, {"PING"});
            send({});
        }
    }

    void armPulse()
    {
        constexpr std::chrono::milliseconds untilAskedAgain{1000};
        pulse_.expires_after(table_.refusedForNow().empty() ? heartbeat_ : std::min(heartbeat_, untilAskedAgain));
        pulse_.async_wait([this](boost::system::error_code ec) {
            if (ec || !connection_.isConnected()) {
                return;
            }
            if (!table_.empty() && sentAt_.empty()) {
                pulse();
            }
            armPulse();
        });
    }

    AsyncConnection connection_;
    Table table_;
    std::deque<TimePoint> sentAt_; ///< when the table's unanswered requests were sent
    std::chrono::milliseconds heartbeat_;
    boost::asio::steady_timer pulse_;
    Handler handler_;
    std::function<void(bool, Reason)> report_;
    std::string bytes_;
    bool closed_ = false;
};

} // namespace redislock::detail
