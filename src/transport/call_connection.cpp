#include "transport/call_connection.hpp"

#include <utility>
#include <vector>

namespace redislock::detail {

CallConnection::CallConnection(boost::asio::io_context& io, Connector& connector, std::chrono::milliseconds timeout,
                               std::uint64_t seed, std::function<void(bool, Reason)> report)
    : connection_(io, connector, *this, timeout, seed), report_(std::move(report))
{
}

void CallConnection::enqueue(std::shared_ptr<Call> call)
{
    call->form = Call::Form::bySha;
    if (closed_) {
        return end(call, {false, {Failure::fatal, Errc::shutdown}});
    }
    call->pending = true;
    hurried_ = hurried_ || call->hurried;
    if (takesRequests()) {
        call->encode(bytes_, call->form);
    }
    queue_.push(std::move(call));
}

bool CallConnection::withdraw(Call& call)
{
    return !takesRequests() && queue_.erase(call);
}

void CallConnection::flush()
{
    const bool hurried = std::exchange(hurried_, false);
    if (!connection_.isConnected()) {
        if (needed()) {
            hurried ? connection_.hurry() : connection_.open();
        }
        return;
    }
    if (!leaving_ && queue_.unwritten() > 0) {
        if (queue_.unanswered() == 0 && !connection_.isSilent()) {
            return connection_.close({Failure::lostReply, Errc::badReply});
        }
        queue_.written(BootClock::now());
        connection_.send(std::exchange(bytes_, {}));
    }
}

void CallConnection::close()
{
    closed_ = true;
    connection_.end({Failure::fatal, Errc::shutdown});
    while (auto call = queue_.abandon()) {
        end(call, {false, {Failure::fatal, Errc::shutdown}});
    }
}

void CallConnection::onConnected()
{
    report_(true, {});
    bytes_.clear();
    std::vector<std::shared_ptr<Call>> unwanted;
    for (auto left = queue_.size(); left > 0; --left) { // each leaves the queue, and joins it again if still wanted
        auto call = queue_.abandon();
        if (!call->isWanted(BootClock::now())) {
            unwanted.push_back(std::move(call));
            continue;
        }
        call->form = Call::Form::bySha;
        call->encode(bytes_, Call::Form::bySha);
        queue_.push(std::move(call));
    }
    flush();
    for (const auto& call : unwanted) {
        end(call, {false, {Failure::notConnected, Cause::connectTimedOut}});
    }
}

bool CallConnection::onReply(Reply& reply)
{
    auto call = queue_.answered();
    if (call == nullptr) {
        return false;
    }
    if (isDemotion(reply)) {
        leave();
    } else {
        connection_.served();
    }
    if (isNoScript(reply) && call->form == Call::Form::bySha && call->mode != Call::Mode::abandoned &&
        call->isWanted(BootClock::now())) {
        call->form = Call::Form::byText;
        if (!leaving_) {
            call->encode(bytes_, call->form);
        }
        queue_.push(std::move(call));
        flush();
    } else {
        connection_.noteReply(reply);
        std::swap(call->reply, reply);
        end(call, {true, {}});
    }
    if (leaving_ && queue_.unanswered() == 0) {
        connection_.close({Failure::demoted, Cause::readOnly});
    }
    return true;
}

/// Sends nothing more on this connection. The due answers come first, then the next connection is made.
void CallConnection::leave()
{
    if (!std::exchange(leaving_, true)) {
        connection_.demoted();
        bytes_.clear();
    }
}

void CallConnection::onDisconnected(Fault fault)
{
    report_(false, fault.error);
    bytes_.clear();
    leaving_ = false;
    std::vector<std::shared_ptr<Call>> ended;
    // unwritten calls wait for the next connection, unless none could be made
    const bool wasConnected = fault.failure == Failure::lostReply || fault.failure == Failure::demoted;
    for (auto left = wasConnected ? queue_.unanswered() : queue_.size(); left > 0; --left) {
        ended.push_back(queue_.abandon());
    }
    for (const auto& call : ended) {
        end(call, {false, fault});
    }
}

void CallConnection::end(const std::shared_ptr<Call>& call, Outcome outcome)
{
    call->pending = false;
    call->outcome = outcome;
    call->finished();
}

} // namespace redislock::detail
