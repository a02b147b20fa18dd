#include "simulation/network.hpp"

#include <vector>

namespace redislock::simulation {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

std::string describe(const Request& request)
{
    switch (request.verb) {
    case Request::Verb::subscribe:
        return "SUBSCRIBE " + request.name;
    case Request::Verb::unsubscribe:
        return "UNSUBSCRIBE " + request.name;
    case Request::Verb::ping:
        return "PING";
    case Request::Verb::del:
        return "DEL " + request.name;
    case Request::Verb::wait:
        return "WAIT " + request.arguments.at(0) + " " + request.arguments.at(1);
    case Request::Verb::script:
        break;
    }
    std::string text(request.script->name);
    text += request.byText ? " (by text) " : " ";
    text += request.name;
    for (const auto& argument : request.arguments) {
        text += ' ' + argument;
    }
    return text;
}

std::string describe(const Reply& reply)
{
    switch (reply.kind) {
    case Reply::Kind::nil:
        return "nil";
    case Reply::Kind::integer:
        return std::to_string(reply.integer);
    case Reply::Kind::array:
        return reply.elements.empty() ? "()" : describe(reply.elements[0]);
    default:
        return reply.text;
    }
}

} // namespace

bool Network::hits(Fault fault, const Line& link, std::optional<Situation> situation)
{
    if (!faults_ || !plan_.hits(fault, chance_)) {
        return false;
    }
    trace_(link.host->name(), "fault: {}", faultNames[static_cast<std::size_t>(fault)]);
    observer_.hit(fault, *link.host, link.purpose, situation);
    return true;
}

VirtualTime Network::latency()
{
    return microseconds(50) + VirtualTime(static_cast<std::int64_t>(chance_.unit() * chance_.unit() * 2e6));
}

/// A delay from a little to longer than most leases and time-outs.
VirtualTime Network::late()
{
    const double scale = chance_.unit();
    return milliseconds(1) + VirtualTime(static_cast<std::int64_t>(scale * scale * scale * 8e9));
}

void Network::connect(const std::shared_ptr<Host>& host, Endpoint& endpoint, Purpose purpose, TimePoint notBefore,
                      TimePoint::duration timeout)
{
    host->at(std::max(notBefore, host->now()),
             [this, host, &endpoint, purpose, timeout] { attempt(host, endpoint, purpose, timeout); });
}

void Network::attempt(const std::shared_ptr<Host>& host, Endpoint& endpoint, Purpose purpose,
                      TimePoint::duration timeout)
{
    const auto roundTrip = latency() + latency();
    if (faults_ && plan_.hits(Fault::connectLost, chance_)) {
        trace_(host->name(), "fault: connect lost");
        observer_.hit(Fault::connectLost, *host, purpose, std::nullopt);
        return host->at(host->now() + timeout, [&endpoint] { endpoint.connectFailed(); });
    }
    host->arrive(scheduler_.now() + roundTrip, [this, host, &endpoint, purpose] {
        if (isDown()) {
            return endpoint.connectFailed();
        }
        const LinkId id = ++lastLink_;
        links_[id] = {.host = host, .endpoint = &endpoint, .purpose = purpose, .term = term_};
        observer_.opened(*host, purpose);
        endpoint.opened(id);
    });
}

void Network::send(LinkId id, Request sent, std::optional<Situation> situation)
{
    const auto request = std::make_shared<const Request>(std::move(sent));
    Line& link = links_.at(id);
    if (trace_.isOn()) {
        trace_(link.host->name(), "sends #{} {}", request->number, describe(*request));
    }
    link.requestsVanish = link.requestsVanish || hits(Fault::requestLost, link, situation);
    if (link.requestsVanish) {
        return;
    }
    auto arrival = scheduler_.now() + latency();
    if (hits(Fault::requestLate, link, situation)) {
        arrival += late();
    }
    arrival = std::max(arrival, link.lastRequest);
    link.lastRequest = arrival;
    if (request->verb == Request::Verb::script && hits(Fault::requestDoubled, link, situation)) {
        scheduler_.at(arrival + late(), [this, request, term = link.term] {
            if (!isDown() && term == term_) {
                serverProcess_.run([this, request] { execute(*request, 0, std::nullopt); }, nullptr);
            }
        });
    }
    scheduler_.at(arrival, [this, id, request, situation] { deliver(id, request, situation); });
}

void Network::deliver(LinkId id, const std::shared_ptr<const Request>& request, std::optional<Situation> situation)
{
    serverProcess_.run(
        [this, id, request, situation] {
            const auto link = links_.find(id);
            if (link == links_.end() || !link->second.openAtServer) {
                return;
            }
            if (link->second.waits) {
                return link->second.behind.push_back(
                    [this, id, request, situation] { deliver(id, request, situation); });
            }
            execute(*request, id, situation);
        },
        nullptr);
}

/// @param from zero: the request is a copy, whose answer nobody gets.
void Network::execute(const Request& request, LinkId from, std::optional<Situation> situation)
{
    const bool isAtFormer = from != 0 && links_.at(from).term != term_;
    if (request.verb == Request::Verb::wait) {
        trace_("server", "#{} {}", request.number, describe(request));
        links_.at(from).waits = true;
        return observer_.waits(from, request, isAtFormer);
    }
    if (isAtFormer) {
        const Reply reply = former_->execute(request, from, millisecondOf(scheduler_.now()));
        trace_("former", "#{} {} -> {}", request.number, describe(request), describe(reply));
        observer_.executedByFormer(request);
        return answer(from, reply, situation);
    }
    if (from == 0) {
        witness_.copied(request);
    }
    witness_.before(request, scheduler_.now());
    const Reply reply = server_->execute(request, from, millisecondOf(scheduler_.now()));
    if (trace_.isOn()) {
        trace_("server", "{}#{} {} -> {}", from == 0 ? "copy of " : "", request.number, describe(request),
               describe(reply));
    }
    witness_.after(request, reply, scheduler_.now());
    observer_.executed(request, reply);
    if (from != 0) {
        answer(from, reply, situation);
    }
}

void Network::push(LinkId id, const Reply& message)
{
    const auto link = links_.find(id);
    if (!silent_ && link != links_.end() && !hits(Fault::messageLost, link->second, std::nullopt)) {
        answer(id, message, std::nullopt);
    }
}

void Network::answerWait(LinkId id, const Reply& reply)
{
    const auto link = links_.find(id);
    if (link == links_.end() || !link->second.openAtServer) {
        return;
    }
    link->second.waits = false;
    trace_("server", "WAIT of {} -> {}", link->second.host->name(), reply.integer);
    answer(id, reply, Situation::queryAsking);
    for (const Task& task : std::exchange(link->second.behind, {})) {
        task();
    }
}

void Network::answer(LinkId id, const Reply& reply, std::optional<Situation> situation)
{
    Line& link = links_.at(id);
    link.repliesVanish = link.repliesVanish || hits(Fault::replyLost, link, situation);
    if (link.repliesVanish) {
        return;
    }
    auto arrival = scheduler_.now() + latency();
    if (hits(Fault::replyLate, link, situation)) {
        arrival += late();
    }
    arrival = std::max(arrival, link.lastReply);
    link.lastReply = arrival;
    link.host->arrive(arrival, [this, id, shared = std::make_shared<const Reply>(reply), situation] {
        receive(id, *shared, situation);
    });
}

void Network::receive(LinkId id, const Reply& reply, std::optional<Situation> situation)
{
    const auto isOpen = [&] {
        const auto link = links_.find(id);
        return link != links_.end() && link->second.endpoint != nullptr;
    };
    if (!isOpen()) {
        return;
    }
    links_.at(id).endpoint->received(reply);
    // If a client waits for another reply, it cannot tell a doubled reply from that one; for other clients the reply is
    // unsolicited.
    if (situation && isOpen() && links_.at(id).endpoint->unanswered() == 0 &&
        hits(Fault::replyDoubled, links_.at(id), situation)) {
        links_.at(id).endpoint->received(reply);
    }
}

void Network::close(LinkId id)
{
    Line& link = links_.at(id);
    link.endpoint = nullptr;
    // the end of the connection travels behind the bytes that were sent before it
    scheduler_.at(std::max(scheduler_.now() + latency(), link.lastRequest), [this, id] { endAtServer(id); });
}

void Network::endAtServer(LinkId id)
{
    serverProcess_.run(
        [this, id] {
            const auto link = links_.find(id);
            if (link == links_.end()) {
                return server_->disconnected(id);
            }
            serverOf(link->second).disconnected(id);
            link->second.openAtServer = false;
            if (link->second.endpoint == nullptr) {
                links_.erase(link);
            }
        },
        nullptr);
}

void Network::cut(LinkId id)
{
    Line& link = links_.at(id);
    if (!link.openAtServer) {
        return;
    }
    const bool atOnce = chance_.unit() < 0.5; // otherwise everything under way still arrives
    link.openAtServer = !atOnce;
    scheduler_.at(atOnce ? scheduler_.now() : std::max(scheduler_.now(), link.lastRequest),
                  [this, id] { endAtServer(id); });
    link.repliesVanish = true;
    link.host->arrive(scheduler_.now() + latency(), [this, id] {
        const auto found = links_.find(id);
        if (found == links_.end()) {
            return;
        }
        Endpoint* endpoint = std::exchange(found->second.endpoint, nullptr);
        if (!found->second.openAtServer) {
            links_.erase(found);
        }
        if (endpoint != nullptr) {
            endpoint->closed();
        }
    });
}

void Network::cutOne()
{
    if (links_.empty()) {
        return;
    }
    auto link = links_.begin();
    std::advance(link, static_cast<std::ptrdiff_t>(chance_.unit() * static_cast<double>(links_.size())));
    if (link->second.endpoint != nullptr) {
        trace_(link->second.host->name(), "fault: cut");
        observer_.hit(Fault::connectionCut, *link->second.host, link->second.purpose, std::nullopt);
        cut(link->first);
    }
}

void Network::cutAll(bool onlyFormer)
{
    std::vector<LinkId> ids;
    for (const auto& [id, link] : links_) {
        if (!onlyFormer || link.term != term_) {
            ids.push_back(id);
        }
    }
    for (const LinkId id : ids) {
        cut(id);
        if (const auto link = links_.find(id); link != links_.end()) {
            link->second.openAtServer = false; // the process is gone: nothing that is under way is executed
        }
    }
}

void Network::failOver(ModelServer& former) noexcept
{
    former_ = &former;
    ++term_;
}

void Network::drop(const Host& host)
{
    for (auto& [id, link] : links_) {
        if (link.host.get() == &host && link.endpoint != nullptr) {
            link.endpoint = nullptr;
            scheduler_.at(std::max(scheduler_.now() + latency(), link.lastRequest),
                          [this, id = id] { endAtServer(id); });
        }
    }
}

} // namespace redislock::simulation
