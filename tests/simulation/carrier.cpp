#include "simulation/carrier.hpp"

#include "core/renewal_call.hpp"
#include "simulation/request.hpp"

#include <utility>

namespace redislock::simulation {

using detail::Protocol;

void Carrier::work()
{
    while (protocol().hasBytes()) {
        std::string bytes;
        protocol().takeBytes(bytes, now());
        send(bytes);
    }
    if (const auto when = protocol().attemptAt()) {
        protocol().connecting();
        way_.network.connect(way_.host, *this, way_.purpose, *when, way_.connectTimeout);
    }
    setTimer();
}

void Carrier::setTimer()
{
    const TimePoint due = protocol().dueAt();
    if (due >= timerAt_) {
        return;
    }
    timerAt_ = due;
    way_.host->at(due, [this, due] {
        if (due == timerAt_) {
            timerAt_ = TimePoint::max();
        }
        if (now() >= protocol().dueAt() && protocol().timeIsOver(now())) {
            way_.network.close(link_);
            return lose(Cause::silent);
        }
        work();
    });
}

void Carrier::opened(LinkId link)
{
    link_ = link;
    {
        detail::FinishedCalls finished;
        protocol().opened(now(), finished);
        work();
    }
    if (std::exchange(wasOpen_, true)) {
        way_.madeAgain();
    }
    way_.afterwards();
}

void Carrier::connectFailed()
{
    {
        detail::FinishedCalls finished;
        protocol().failed({detail::Failure::notConnected, Errc::unreachable}, now(), finished);
        work();
    }
    way_.afterwards();
}

void Carrier::received(Reply reply)
{
    {
        detail::FinishedCalls finished;
        const bool isUnexpected = protocol().received(reply, now(), finished) == Protocol::Heard::unexpected;
        if (isUnexpected || protocol().isOver()) {
            way_.network.close(link_);
            return lose(Cause::connectionLost);
        }
        work();
    }
    way_.afterwards();
}

void Carrier::lose(detail::Reason why)
{
    {
        detail::FinishedCalls finished;
        (void)protocol().lost({detail::Failure::lostReply, why}, now(), finished);
        work();
    }
    way_.afterwards();
}

namespace {

/// Nothing is renewed after its end, however long the renewal waited for a connection. A grant that replicas must have
/// is renewed before its caller knows of it; a hold whose replicas are asked about may be lost meanwhile.
void expectHeld(const detail::Call& call, const Request& request)
{
    const bool onlyAsks = request.confirms && request.arguments.at(1) == std::to_string(minLease.count());
    const auto* renewals = dynamic_cast<const detail::RenewalCall*>(&call);
    for (const auto& item : renewals ? renewals->items() : std::vector<detail::RenewalCall::Item>()) {
        const auto phase = item.hold->phase.load();
        if (item.asked && !onlyAsks && phase != detail::Hold::Phase::held && phase != detail::Hold::Phase::acquiring) {
            throw Violation("T2 no renewal after the end", "a renewal is sent of a hold that has ended");
        }
    }
}

} // namespace

void RequestCarrier::enqueue(std::shared_ptr<detail::Call> call, std::shared_ptr<detail::Call> behind)
{
    for (const auto* each : {call.get(), behind.get()}) {
        if (each != nullptr) {
            if (each->pending) {
                throw Violation("calls", "a call that is on a connection was queued again");
            }
            numbers_[each] = ++lastRequest_;
        }
    }
    detail::FinishedCalls finished;
    (void)link_->enqueue(std::move(call), std::move(behind), now(), finished);
    work();
}

/// The bytes are those of the last calls of the queue.
void RequestCarrier::send(std::string_view bytes)
{
    auto requests = requestsIn(bytes);
    const auto& queue = link_->queue();
    const std::size_t first = queue.size() - requests.size();
    for (std::size_t i = 0; i < requests.size(); ++i) {
        detail::Call& call = *queue[first + i];
        noteKind(call, requests[i]);
        requests[i].number = numbers_.at(&call);
        requests[i].confirms = way_.purpose == Purpose::confirmations;
        expectHeld(call, requests[i]);
        const Situation situation = situationOf(call, requests[i]);
        Carrier::send(std::move(requests[i]), situation);
    }
}

void ListeningCarrier::send(std::string_view bytes)
{
    for (auto& request : requestsIn(bytes)) {
        Carrier::send(std::move(request), std::nullopt);
    }
}

} // namespace redislock::simulation
