#include "link/subscriptions.hpp"

#include "link/request/patience.hpp"
#include "wire/command.hpp"

#include <algorithm>
#include <chrono>

namespace redislock::detail {

void Subscriptions::want(const std::string& channel, const ChannelListener& listener)
{
    const bool isFirst = patiently([&] { return table_.want(channel, listener); });
    if (!isOpen()) {
        return;
    }
    if (isFirst) {
        request("SUBSCRIBE", channel);
    } else { // perhaps confirmed already; if not, the listener will hear of that once more
        tell(listener, Kind::confirmed, {});
    }
}

void Subscriptions::drop(const std::string& channel, const ChannelListener& listener)
{
    if (table_.drop(channel, listener) && isOpen()) {
        request("UNSUBSCRIBE", channel);
    }
}

/// @param channel empty for PING
void Subscriptions::request(std::string_view verb, const std::string& channel)
{
    sentAt_.push_back(TimePoint::max());
    table_.sent(channel);
    channel.empty() ? appendCommand(bytes_, {verb}) : appendCommand(bytes_, {verb, channel});
}

void Subscriptions::written(TimePoint now) noexcept
{
    std::ranges::replace(sentAt_, TimePoint::max(), now);
}

void Subscriptions::begin(TimePoint now, FinishedCalls& /*finished*/)
{
    bytes_.clear();
    sentAt_.clear(); // of an attempt to begin for which there was no memory
    for (const auto& channel : table_.connected()) {
        request("SUBSCRIBE", channel);
    }
    armPulse(now);
}

void Subscriptions::end(Fault /*fault*/, bool /*onlyWritten*/, FinishedCalls& /*finished*/) noexcept
{
    sentAt_.clear();
}

Protocol::Heard Subscriptions::received(Reply& reply, TimePoint now, FinishedCalls& /*finished*/)
{
    const auto before = table_.unanswered();
    const auto incoming = table_.received(reply);
    if (table_.unanswered() < before) {
        sentAt_.pop_front();
        if (!reply.isError()) {
            policy_.served();
        }
    }
    for (const auto& listener : incoming.listeners) {
        tell(listener, incoming.kind, incoming.text);
    }
    if (incoming.kind == Kind::refused) {
        armPulse(now);
    }
    return incoming.kind == Kind::unexpected ? Heard::unexpected : Heard::expected;
}

void Subscriptions::armPulse(TimePoint now) noexcept
{
    constexpr std::chrono::seconds untilAskedAgain{1};
    nextPulse_ = now + (table_.refusedForNow().empty() ? heartbeat_ : std::min(heartbeat_, {untilAskedAgain}));
}

TimePoint Subscriptions::dueAt() const noexcept
{
    if (!isOpen()) {
        return TimePoint::max();
    }
    return sentAt_.empty() ? nextPulse_ : std::min(nextPulse_, saturatingAdd(sentAt_.front(), timeout_));
}

bool Subscriptions::timeIsOver(TimePoint now)
{
    if (!sentAt_.empty() && now >= saturatingAdd(sentAt_.front(), timeout_)) {
        return true;
    }
    if (now >= nextPulse_) {
        if (!table_.empty() && table_.unanswered() == 0) {
            for (const auto& channel : table_.refusedForNow()) {
                request("SUBSCRIBE", channel);
            }
            if (!hasBytes()) {
                request("PING", {});
            }
        }
        armPulse(now);
    }
    return false;
}

} // namespace redislock::detail
