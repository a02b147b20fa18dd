#include "simulation/sim_subscriber.hpp"

#include <utility>

namespace redislock::simulation {

namespace {

constexpr std::chrono::seconds heartbeat{2};

} // namespace

SimSubscriber::SimSubscriber(Network& network, std::shared_ptr<Host> host, TimePoint::duration timeout,
                             TimePoint::duration connectTimeout, Random& random)
    : network_(network), host_(std::move(host)), timeout_(timeout), connectTimeout_(connectTimeout), random_(random)
{
}

void SimSubscriber::want(const std::string& channel, const detail::ChannelListener& listener)
{
    const bool first = table_.want(channel, listener);
    if (state_ != State::connected) {
        open();
    } else if (first) {
        request(Request::Verb::subscribe, channel);
    } else { // if it is not confirmed yet, the confirmation will come
        detail::tell(listener, Table::Incoming::Kind::confirmed, {});
    }
}

void SimSubscriber::drop(const std::string& channel, const detail::ChannelListener& listener)
{
    if (table_.drop(channel, listener) && state_ == State::connected) {
        request(Request::Verb::unsubscribe, channel);
    }
}

void SimSubscriber::request(Request::Verb verb, const std::string& channel)
{
    table_.sent(channel);
    sentAt_.push_back(host_->now());
    Request request;
    request.verb = verb;
    request.name = channel;
    network_.send(link_, std::move(request), std::nullopt);
    armTimeout();
}

void SimSubscriber::open()
{
    if (state_ == State::disconnected) {
        state_ = State::connecting;
        network_.connect(host_, *this, Purpose::notifications, policy_.notBefore(), connectTimeout_);
    }
}

void SimSubscriber::opened(LinkId link)
{
    state_ = State::connected;
    link_ = link;
    sentAt_.clear();
    for (const auto& channel : table_.connected()) {
        request(Request::Verb::subscribe, channel);
    }
    armPulse();
}

void SimSubscriber::connectFailed()
{
    disconnected();
}

void SimSubscriber::disconnected()
{
    state_ = State::disconnected;
    policy_.ended(host_->now(), random_, !table_.empty());
    sentAt_.clear();
    if (!table_.empty()) {
        open();
    }
}

void SimSubscriber::received(Reply reply)
{
    const auto before = table_.unanswered();
    const auto incoming = table_.received(reply);
    if (table_.unanswered() < before) {
        sentAt_.pop_front();
        policy_.served();
    }
    for (const auto& listener : incoming.listeners) {
        detail::tell(listener, incoming.kind, incoming.text);
    }
    if (incoming.kind == Table::Incoming::Kind::unexpected) {
        network_.close(link_);
        disconnected();
    }
}

void SimSubscriber::armPulse()
{
    host_->at(host_->now() + heartbeat, [this, link = link_] {
        if (state_ != State::connected || link != link_) {
            return;
        }
        if (!table_.empty() && sentAt_.empty()) {
            request(Request::Verb::ping, {});
        }
        armPulse();
    });
}

void SimSubscriber::armTimeout()
{
    if (timeoutArmed_ || sentAt_.empty()) {
        return;
    }
    timeoutArmed_ = true;
    host_->at(sentAt_.front() + timeout_, [this] {
        timeoutArmed_ = false;
        if (state_ == State::connected && !sentAt_.empty() && host_->now() >= sentAt_.front() + timeout_) {
            network_.close(link_);
            return disconnected();
        }
        armTimeout();
    });
}

} // namespace redislock::simulation
