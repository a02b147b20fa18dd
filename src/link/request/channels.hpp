/// @file
/// Which channels one connection listens to, and who listens.
#pragma once

#include "wire/fault.hpp"
#include "wire/reply.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace redislock::detail {

/// The subscriptions of one subscriber connection. Pure: says what to send and what a frame means.
///
/// A channel is listened to while a listener wants it. Every confirmation of a SUBSCRIBE is passed to the channel's
/// listeners, even after the channel was dropped and wanted again meanwhile: a listener that hears it tries once, so no
/// order of confirmations can lose a wake-up. A channel that the server refuses for now is to be asked for again; its
/// listeners hear of the first refusal only. Not thread-safe.
///
/// The name of a sharded channel of a cluster stands here behind a `>`. The server ends the subscription to such a one
/// when its slot moves. Where there are no sharded channels at all, the other of that name takes the place.
///
/// @tparam Listener copied and compared; the owner finds the waiters by it.
template <class Listener>
class SubscriptionTable {
public:
    /// What a frame from the server means.
    struct Incoming {
        enum class Kind : std::uint8_t {
            nothing,    ///< an acknowledgement that needs no action
            confirmed,  ///< the listeners' channel is now listened to: try once
            message,    ///< the listeners' channel has a message: try once
            refused,    ///< the server does not allow the channel: poll
            ended,      ///< the server has ended the subscription, or will not begin it: another node has the slot
            unsharded,  ///< the server has no sharded channels: begin all subscriptions anew
            unexpected, ///< not a frame of this protocol: the connection must be closed
        };
        Kind kind = Kind::nothing;
        std::span<const Listener> listeners{}; ///< valid until the table changes
        std::string_view text{};               ///< of a message; valid until the frame changes
    };

    /// Adds a listener. @return whether a SUBSCRIBE must be sent (on an existing connection).
    bool want(const std::string& channel, Listener listener)
    {
        auto& listeners = channels_[keyOf(channel)];
        listeners.push_back(std::move(listener));
        return listeners.size() == 1;
    }

    /// Removes a listener, once. @return whether an UNSUBSCRIBE must be sent (on an existing connection).
    bool drop(const std::string& channel, const Listener& listener)
    {
        auto found = channels_.find(keyOf(channel));
        if (found == channels_.end() &&
            channel.starts_with('>')) { // perhaps taken from a table without sharded channels
            found = channels_.find(channel.substr(1));
        }
        if (found == channels_.end()) {
            return false;
        }
        auto& listeners = found->second;
        const auto wanted = std::find(listeners.begin(), listeners.end(), listener);
        if (wanted != listeners.end()) {
            listeners.erase(wanted);
        }
        if (!listeners.empty()) {
            return false;
        }
        refused_.erase(found->first);
        channels_.erase(found);
        return true;
    }

    /// Takes out the channels for which @p isToGo holds, with their listeners.
    template <class Predicate>
    std::vector<std::pair<std::string, std::vector<Listener>>> take(Predicate isToGo)
    {
        std::vector<std::pair<std::string, std::vector<Listener>>> taken;
        for (auto each = channels_.begin(); each != channels_.end();) {
            if (!isToGo(each->first)) {
                ++each;
                continue;
            }
            refused_.erase(each->first);
            taken.emplace_back(each->first, std::move(each->second));
            each = channels_.erase(each);
        }
        return taken;
    }

    /// The name under which a channel is kept.
    [[nodiscard]] std::string keyOf(const std::string& channel) const
    {
        return isUnsharded_ && channel.starts_with('>') ? channel.substr(1) : channel;
    }

    /// Notes a request that is being sent, so that its answer can be recognized. @param channel empty for PING.
    /// @param ends the request ends the subscription
    void sent(std::string channel, bool ends = false) { unanswered_.push_back({std::move(channel), ends}); }

    /// A new connection: no request is under way. @return the channels to subscribe to.
    std::vector<std::string> connected()
    {
        unanswered_.clear();
        refused_.clear();
        return channels();
    }

    [[nodiscard]] const std::unordered_map<std::string, std::vector<Listener>>& listeners() const noexcept
    {
        return channels_;
    }
    [[nodiscard]] std::vector<std::string> channels() const
    {
        std::vector<std::string> all;
        all.reserve(channels_.size());
        for (const auto& [channel, listeners] : channels_) {
            all.push_back(channel);
        }
        return all;
    }

    /// Reads a frame of the server.
    Incoming received(const Reply& frame)
    {
        if (frame.isError()) {
            return refused(frame.text);
        }
        if (frame.kind == Reply::Kind::status) {
            return answered(Incoming::Kind::nothing, {}); // +PONG on a connection without subscriptions
        }
        if (frame.kind != Reply::Kind::array || frame.elements.size() < 2) {
            return {Incoming::Kind::unexpected};
        }
        const std::string_view what = frame.elements[0].text;
        const std::string& channel = frame.elements[1].text;
        if (what == "smessage" || what == "ssubscribe" || what == "sunsubscribe") {
            return receivedSharded(what, frame);
        }
        if (what == "message") {
            const auto& text = frame.elements.size() > 2 ? frame.elements[2].text : frame.elements[0].text;
            return {Incoming::Kind::message, find(channel), text};
        }
        if (what == "subscribe") {
            refused_.erase(channel);
            return answered(Incoming::Kind::confirmed, channel);
        }
        if (what == "unsubscribe" || what == "pong") {
            return answered(Incoming::Kind::nothing, channel);
        }
        return {Incoming::Kind::unexpected};
    }

    /// The channels to subscribe to again.
    [[nodiscard]] const std::unordered_set<std::string>& refusedForNow() const noexcept { return refused_; }
    [[nodiscard]] bool empty() const noexcept { return channels_.empty(); }
    [[nodiscard]] std::size_t size() const noexcept { return channels_.size(); }
    [[nodiscard]] std::size_t unanswered() const noexcept { return unanswered_.size(); }

private:
    struct Request {
        std::string channel; ///< empty: PING
        bool ends;
    };

    std::span<const Listener> find(const std::string& channel) const
    {
        const auto found = channels_.find(channel);
        return found == channels_.end() ? std::span<const Listener>() : found->second;
    }

    Incoming answered(typename Incoming::Kind kind, const std::string& channel)
    {
        if (unanswered_.empty()) {
            // the server may end a subscription by itself; the subscription is then renewed with the connection
            return {Incoming::Kind::unexpected};
        }
        unanswered_.pop_front();
        const auto listeners = kind == Incoming::Kind::confirmed ? find(channel) : std::span<const Listener>();
        return {listeners.empty() ? Incoming::Kind::nothing : kind, listeners};
    }

    Incoming receivedSharded(std::string_view what, const Reply& frame)
    {
        const std::string channel = ">" + frame.elements[1].text;
        if (what == "smessage") {
            const auto& text = frame.elements.size() > 2 ? frame.elements[2].text : frame.elements[0].text;
            return {Incoming::Kind::message, find(channel), text};
        }
        if (what == "ssubscribe") {
            refused_.erase(channel);
            return answered(Incoming::Kind::confirmed, channel);
        }
        if (!unanswered_.empty() && unanswered_.front().ends && unanswered_.front().channel == channel) {
            return answered(Incoming::Kind::nothing, channel);
        }
        const auto listeners = find(channel);
        if (!listeners.empty()) {
            refused_.insert(channel);
        }
        return {listeners.empty() ? Incoming::Kind::nothing : Incoming::Kind::ended, listeners};
    }

    /// From now on sharded channels are kept as the others of their names.
    Incoming unsharded()
    {
        isUnsharded_ = true;
        for (auto& [channel, listeners] : take([](const std::string& each) { return each.starts_with('>'); })) {
            auto& all = channels_[channel.substr(1)];
            all.insert(all.end(), listeners.begin(), listeners.end());
        }
        return {Incoming::Kind::unsharded};
    }

    Incoming refused(std::string_view text)
    {
        if (unanswered_.empty()) {
            return {Incoming::Kind::unexpected};
        }
        const std::string channel = std::move(unanswered_.front().channel);
        unanswered_.pop_front();
        if (channel.starts_with('>') && classify(text).error == Reason(Cause::unknownCommand)) {
            return unsharded();
        }
        const auto listeners = find(channel);
        if (listeners.empty()) {
            return {};
        }
        if (text.starts_with("MOVED ") || text.starts_with("ASK ")) {
            refused_.insert(channel); // unless it is taken away meanwhile
            return {Incoming::Kind::ended, listeners};
        }
        const bool isForNow = classify(text).failure != Failure::fatal;
        const bool isKnown = isForNow ? !refused_.insert(channel).second : refused_.erase(channel) > 0;
        return isKnown ? Incoming{} : Incoming{Incoming::Kind::refused, listeners};
    }

    std::unordered_map<std::string, std::vector<Listener>> channels_;
    std::deque<Request> unanswered_;
    std::unordered_set<std::string> refused_; ///< for now
    bool isUnsharded_ = false;                ///< the server has no sharded channels
};

/// What a listener is told.
enum class Notice : std::uint8_t {
    confirmed, ///< from now on the listener misses nothing
    message,
    refused, ///< the listener will hear nothing
};

/// Whether messages on a channel are heard.
enum class Listening : std::uint8_t { no, asked, confirmed, refused };

/// Whether a waiter has to ask as often as a SpinLock's, since no message will wake it. @param attempts its requests so
/// far: who has polled once, and still waits for the subscription, does not count on it any more
constexpr bool isUnheard(Listening listening, std::uint32_t attempts) noexcept
{
    return listening == Listening::refused || (listening == Listening::asked && attempts >= 2);
}

/// Waits for messages on a channel. `hear` is called on the background thread, without a mutex.
struct ChannelListener {
    std::weak_ptr<void> whose;
    std::uint64_t part = 0; ///< tells several listeners of one owner apart
    void (*hear)(void* whose, std::uint64_t part, Notice notice, std::string_view text) = nullptr;

    friend bool operator==(const ChannelListener& a, const ChannelListener& b) noexcept
    {
        return a.part == b.part && !a.whose.owner_before(b.whose) && !b.whose.owner_before(a.whose);
    }
};

/// Tells a listener what came, if the listener is still there. @param text of a message
inline void tell(const ChannelListener& listener, SubscriptionTable<ChannelListener>::Incoming::Kind kind,
                 std::string_view text)
{
    using Kind = SubscriptionTable<ChannelListener>::Incoming::Kind;
    if (const auto whose = listener.whose.lock()) {
        const auto heard = kind == Kind::confirmed ? Notice::confirmed : Notice::refused;
        listener.hear(whose.get(), listener.part, kind == Kind::message ? Notice::message : heard, text);
    }
}

} // namespace redislock::detail
