#include "link/subscriptions.hpp"

#include "link/request/patience.hpp"
#include "wire/command.hpp"

#include <algorithm>
#include <chrono>

namespace redislock::detail {

void Subscriptions::want(const std::string& channel, const ChannelListener& listener)
{
    if (channel.starts_with('*')) { // heard twice, and confirmed twice
        subscribe(channel.substr(1), listener);
        return subscribe('>' + channel.substr(1), listener);
    }
    subscribe(channel, listener);
}

void Subscriptions::subscribe(const std::string& channel, const ChannelListener& listener)
{
    const bool isFirst = patiently([&] { return table_.want(channel, listener); });
    if (!isOpen()) {
        return;
    }
    if (isFirst) {
        request(Verb::subscribe, table_.keyOf(channel));
    } else { // perhaps confirmed already; if not, the listener will hear of that once more
        tell(listener, Kind::confirmed, {});
    }
}

void Subscriptions::drop(const std::string& channel, const ChannelListener& listener)
{
    if (channel.starts_with('*')) {
        drop(channel.substr(1), listener);
        return drop('>' + channel.substr(1), listener);
    }
    if (table_.drop(channel, listener) && isOpen()) {
        request(Verb::unsubscribe, table_.keyOf(channel));
    }
}

Subscriptions::Taken Subscriptions::take(const std::function<bool(const std::string&)>& isToGo)
{
    auto taken = table_.take(isToGo);
    for (const auto& [channel, listeners] : taken) {
        if (isOpen()) {
            request(Verb::unsubscribe, channel);
        }
    }
    return taken;
}

void Subscriptions::request(Verb verb, const std::string& channel)
{
    sentAt_.push_back(TimePoint::max());
    table_.sent(channel, verb == Verb::unsubscribe);
    if (verb == Verb::ping) {
        return appendCommand(bytes_, {"PING"});
    }
    const bool isSharded = channel.starts_with('>');
    const auto name = std::string_view(channel).substr(isSharded ? 1 : 0);
    const std::string_view words[2][2] = {{"SUBSCRIBE", "UNSUBSCRIBE"}, {"SSUBSCRIBE", "SUNSUBSCRIBE"}};
    appendCommand(bytes_, {words[isSharded ? 1 : 0][verb == Verb::unsubscribe ? 1 : 0], name});
}

void Subscriptions::written(TimePoint now) noexcept
{
    std::ranges::replace(sentAt_, TimePoint::max(), now);
}

void Subscriptions::begin(TimePoint now, FinishedCalls& /*finished*/)
{
    bytes_.clear();
    sentAt_.clear(); // of an attempt to begin for which there was no memory
    const auto channels = table_.connected();
    if (asks_) {
        appendCommand(bytes_, {"ASKING"});
        appendHeader(bytes_, '*', 1 + channels.size());
        appendArgument(bytes_, std::string_view("SSUBSCRIBE"));
        table_.sent({});
        sentAt_.push_back(TimePoint::max());
    }
    for (const auto& channel : channels) {
        if (asks_) {
            appendArgument(bytes_, std::string_view(channel).substr(1));
            table_.sent(channel);
            sentAt_.push_back(TimePoint::max());
        } else {
            request(Verb::subscribe, channel);
        }
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
    if (incoming.kind == Kind::ended) { // asked for once more soon, if no other node turns out to have the slot
        hasEnded_ = true;
    } else if (incoming.kind == Kind::unsharded) {
        for (const auto& channel : table_.channels()) {
            request(Verb::subscribe, channel);
        }
    } else {
        for (const auto& listener : incoming.listeners) {
            tell(listener, incoming.kind, incoming.text);
        }
    }
    if (incoming.kind == Kind::refused || incoming.kind == Kind::ended) {
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
                request(Verb::subscribe, channel);
            }
            if (!hasBytes()) {
                request(Verb::ping, {});
            }
        }
        armPulse(now);
    }
    return false;
}

} // namespace redislock::detail
