#include "simulation/sim_connection.hpp"

#include "core/renewal_call.hpp"
#include "simulation/request.hpp"

#include <utility>
#include <vector>

namespace redislock::simulation {

using detail::Call;
using detail::Failure;

void SimConnection::enqueue(std::shared_ptr<Call> call, std::shared_ptr<Call> behind)
{
    for (auto* each : {&call, &behind}) {
        if (*each == nullptr) {
            continue;
        }
        if ((*each)->pending) {
            throw Violation("calls", "a call that is on a connection was queued again");
        }
        (*each)->form = Call::Form::bySha;
        (*each)->pending = true;
        numbers_[each->get()] = ++lastRequest_;
        queue_.push(std::move(*each));
    }
    connectIfNeeded();
    write();
}

namespace {

/// Nothing is renewed after its end, however long the renewal waited for a connection.
void expectHeld(const Call& call)
{
    const auto* renewals = dynamic_cast<const detail::RenewalCall*>(&call);
    for (const auto& item : renewals ? renewals->items() : std::vector<detail::RenewalCall::Item>()) {
        if (item.asked && item.hold->phase != detail::Hold::Phase::held) {
            throw Violation("T2 no renewal after the end", "a renewal is sent of a hold that has ended");
        }
    }
}

} // namespace

void SimConnection::write()
{
    if (state_ != State::connected || leaving_ || queue_.unwritten() == 0) {
        return;
    }
    const std::size_t first = queue_.size() - queue_.unwritten();
    queue_.written(host_->now());
    for (std::size_t i = first; i < queue_.size(); ++i) {
        Call& call = *queue_[i];
        auto request = requestOf(call);
        expectHeld(call);
        request.number = numbers_.at(&call);
        const Situation situation = situationOf(call, request);
        network_.send(link_, std::move(request), situation);
    }
    armTimeout();
}

void SimConnection::armTimeout()
{
    if (timeoutArmed_ || queue_.oldestSent() == TimePoint::max()) {
        return;
    }
    timeoutArmed_ = true;
    host_->at(queue_.oldestSent() + timeout_, [this] {
        timeoutArmed_ = false;
        if (state_ == State::connected && host_->now() >= saturatingAdd(queue_.oldestSent(), timeout_)) {
            network_.close(link_);
            return disconnect({Failure::lostReply, Errc::unreachable});
        }
        armTimeout();
    });
}

detail::Fault SimConnection::giveUp(Call& call)
{
    if (!withdraw(call)) {
        call.mode = Call::Mode::abandoned;
        return {Failure::lostReply, Errc::unreachable};
    }
    return {Failure::notConnected, Errc::unreachable};
}

bool SimConnection::withdraw(Call& call)
{
    if ((state_ == State::connected && !leaving_) || !queue_.erase(call)) {
        return false;
    }
    numbers_.erase(&call);
    call.pending = false;
    return true;
}

void SimConnection::clear()
{
    while (queue_.abandon() != nullptr) {
    }
}

void SimConnection::received(Reply reply)
{
    const auto call = queue_.answered();
    if (call == nullptr) {
        network_.close(link_);
        return disconnect({Failure::lostReply, Errc::badReply});
    }
    if (detail::isDemotion(reply)) {
        leaving_ = true;
    } else {
        policy_.served();
    }
    if (detail::isNoScript(reply) && call->form == Call::Form::bySha && call->mode != Call::Mode::abandoned &&
        call->isWanted(host_->now())) {
        call->form = Call::Form::byText;
        queue_.push(call);
        write();
    } else {
        call->reply = std::move(reply);
        finish(call, nullptr);
    }
    if (leaving_ && state_ == State::connected && queue_.unanswered() == 0) {
        network_.close(link_);
        disconnect({Failure::demoted, Errc::serverRefused});
    }
}

void SimConnection::finish(const std::shared_ptr<Call>& call, const detail::Fault* fault)
{
    numbers_.erase(call.get());
    call->pending = false;
    call->outcome = {.replied = fault == nullptr, .fault = fault == nullptr ? detail::Fault{} : *fault};
    switch (call->mode) {
    case Call::Mode::awaited:
        return told_(*call);
    case Call::Mode::detached:
        return call->finished();
    case Call::Mode::abandoned:
        break;
    }
}

void SimConnection::opened(LinkId link)
{
    state_ = State::connected;
    link_ = link;
    std::vector<std::shared_ptr<Call>> unwanted;
    for (auto left = queue_.size(); left > 0; --left) { // each leaves the queue, and joins it again if it is to be sent
        auto call = queue_.abandon();
        if (!call->isWanted(host_->now())) {
            unwanted.push_back(std::move(call));
            continue;
        }
        call->form = Call::Form::bySha;
        queue_.push(std::move(call));
    }
    write();
    const detail::Fault fault{Failure::notConnected, Errc::unreachable};
    for (const auto& call : unwanted) {
        finish(call, &fault);
    }
}

void SimConnection::connectFailed()
{
    state_ = State::disconnected;
    policy_.ended(host_->now(), random_, true);
    const detail::Fault fault{Failure::notConnected, Errc::unreachable};
    for (auto left = queue_.size(); left > 0; --left) {
        finish(queue_.abandon(), &fault);
    }
    connectIfNeeded();
}

/// Ends written calls; unwritten calls wait for the next connection.
void SimConnection::disconnect(detail::Fault fault)
{
    leaving_ = false;
    state_ = State::disconnected;
    policy_.ended(host_->now(), random_, queue_.unanswered() > 0);
    std::vector<std::shared_ptr<Call>> ended;
    for (auto left = queue_.unanswered(); left > 0; --left) {
        ended.push_back(queue_.abandon());
    }
    for (const auto& call : ended) {
        finish(call, &fault);
    }
    connectIfNeeded();
}

void SimConnection::connectIfNeeded()
{
    if (state_ == State::disconnected && !queue_.empty()) {
        state_ = State::connecting;
        network_.connect(host_, *this, purpose_, policy_.notBefore(), connectTimeout_);
    }
}

} // namespace redislock::simulation
