/// @file
/// The protocol of a connection that listens to channels.
#pragma once

#include "link/protocol.hpp"
#include "link/request/channels.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace redislock::detail {

/// All channels of a client, on one connection. After every (re)subscription, and for every message, each listener
/// concerned is told. A PING every few seconds notices a connection that died silently. What the server refuses for now
/// is asked for again every second.
class Subscriptions final : public Protocol {
public:
    /// @param timeout for an answer. @param heartbeat the time between two PINGs
    /// @param asks at a node to which the slot of all channels is just being moved: it answers for the slot only behind
    /// ASKING, which a connection can send no more once it has subscribed. So all channels must be wanted before
    Subscriptions(std::chrono::nanoseconds timeout, std::chrono::nanoseconds heartbeat, std::uint64_t seed,
                  bool asks = false)
        : Protocol(seed), timeout_(timeout), heartbeat_(heartbeat), asks_(asks)
    {
    }

    /// Makes a listener hear of a channel until drop(). The listener must not call want() or drop().
    void want(const std::string& channel, const ChannelListener& listener);
    void drop(const std::string& channel, const ChannelListener& listener);
    /// Ends the subscriptions to sharded channels for which @p isToGo holds, and takes out their listeners.
    using Taken = std::vector<std::pair<std::string, std::vector<ChannelListener>>>;
    Taken take(const std::function<bool(const std::string& channel)>& isToGo);
    /// Whether the server has ended a subscription, since this was asked last.
    bool takeEnded() noexcept { return std::exchange(hasEnded_, false); }

    [[nodiscard]] const std::unordered_map<std::string, std::vector<ChannelListener>>& listeners() const noexcept
    {
        return table_.listeners();
    }
    [[nodiscard]] std::size_t channels() const noexcept { return table_.size(); }
    [[nodiscard]] std::size_t unanswered() const noexcept { return table_.unanswered(); }
    /// Messages may come at any time.
    [[nodiscard]] bool isIdle() const noexcept override { return false; }
    [[nodiscard]] TimePoint dueAt() const noexcept override;
    [[nodiscard]] bool timeIsOver(TimePoint now) override;
    [[nodiscard]] Heard received(Reply& reply, TimePoint now, FinishedCalls& finished) override;

private:
    using Kind = SubscriptionTable<ChannelListener>::Incoming::Kind;

    [[nodiscard]] bool isNeeded() const noexcept override { return !table_.empty(); }
    [[nodiscard]] bool owes() const noexcept override { return !table_.empty(); }
    /// The next connection asks for all channels anew, and then every listener tries once, as after a lost connection.
    [[nodiscard]] bool isAnswered() const noexcept override { return true; }
    void begin(TimePoint now, FinishedCalls& finished) override;
    void written(TimePoint now) noexcept override;
    void end(Fault fault, bool onlyWritten, FinishedCalls& finished) noexcept override;
    enum class Verb : std::uint8_t { subscribe, unsubscribe, ping };
    void request(Verb verb, const std::string& channel);
    void subscribe(const std::string& channel, const ChannelListener& listener);
    void armPulse(TimePoint now) noexcept;

    const std::chrono::nanoseconds timeout_;
    const std::chrono::nanoseconds heartbeat_;
    const bool asks_;
    SubscriptionTable<ChannelListener> table_;
    std::deque<TimePoint> sentAt_; ///< when the table's unanswered requests were written; max(): not yet
    TimePoint nextPulse_{};
    bool hasEnded_ = false;
};

} // namespace redislock::detail
