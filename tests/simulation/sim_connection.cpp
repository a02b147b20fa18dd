#include "simulation/sim_connection.hpp"

#include <utility>
#include <vector>

namespace redislock::simulation {

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
        (*each)->request.byText = false;
        (*each)->pending = true;
        queue_.push(std::move(*each));
    }
    connectIfNeeded();
    write();
}

void SimConnection::write()
{
    if (state_ != State::connected || leaving_ || queue_.unwritten() == 0) {
        return;
    }
    const std::size_t first = queue_.size() - queue_.unwritten();
    queue_.written(host_->now());
    for (std::size_t i = first; i < queue_.size(); ++i) {
        network_.send(link_, queue_[i]->request, queue_[i]->situation);
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
    if ((state_ == State::connected && !leaving_) || !queue_.erase(call)) {
        call.mode = Call::Mode::abandoned;
        return {Failure::lostReply, Errc::unreachable};
    }
    call.pending = false;
    return {Failure::notConnected, Errc::unreachable};
}

void SimConnection::received(Reply reply)
{
    const auto call = queue_.answered();
    if (call == nullptr) {
        network_.close(link_);
        return disconnect({Failure::lostReply, Errc::badReply});
    }
    if (reply.isError() && detail::classify(reply.text).failure == Failure::demoted) {
        leaving_ = true;
    } else {
        policy_.served();
    }
    if (reply.isError() && reply.text.starts_with("NOSCRIPT") && !call->request.byText &&
        call->mode != Call::Mode::abandoned) {
        call->request.byText = true;
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
    call->pending = false;
    call->replied = fault == nullptr;
    call->fault = fault == nullptr ? detail::Fault{} : *fault;
    if (call->mode != Call::Mode::abandoned) {
        call->finished(*call);
    }
}

void SimConnection::opened(LinkId link)
{
    state_ = State::connected;
    link_ = link;
    for (std::size_t i = 0; i < queue_.size(); ++i) {
        queue_[i]->request.byText = false;
    }
    write();
}

void SimConnection::connectFailed()
{
    state_ = State::disconnected;
    policy_.ended(host_->now(), random_);
    const detail::Fault fault{Failure::notConnected, Errc::unreachable};
    for (auto left = queue_.size(); left > 0; --left) {
        finish(queue_.abandon(), &fault);
    }
    connectIfNeeded();
}

/// What was written is ended; what was not waits for the next connection.
void SimConnection::disconnect(detail::Fault fault)
{
    leaving_ = false;
    state_ = State::disconnected;
    policy_.ended(host_->now(), random_);
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
