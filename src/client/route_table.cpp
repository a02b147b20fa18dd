// Whom a route asks which node has which slots, and what it learns.
#include "client/route.hpp"

#include "client/route_parts.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <bitset>
#include <chrono>
#include <new>
#include <utility>

namespace redislock::detail {

namespace {

constexpr std::chrono::milliseconds recheck{1};
constexpr std::chrono::milliseconds unusedFor{5000}; ///< then the connections to a node that has no slots end
/// In a cluster of no more masters, all nodes are made before requests wait for them; connections are made later.
constexpr std::size_t madeAtOnce = 16;

} // namespace

void Route::workSoon() noexcept
{
    cluster_->timer.set(BootClock::now());
}

void Route::work()
{
    Cluster& cluster = *cluster_;
    if (cluster.isClosed) {
        return;
    }
    makeWanted();
    handOn();
    echo();
    bool isUsed = false;
    forEach([&](Node& node) { isUsed = isUsed || node.commands.isConnected() || node.renewals.isConnected(); });
    for (;;) {
        std::optional<Server> question;
        SlotSet moved;
        bool isHopeless = false;
        {
            const std::lock_guard lock(cluster.mutex);
            moved = cluster.machine.takeMoved();
            question = cluster.machine.takeQuestion(BootClock::now(), isUsed);
            isHopeless = cluster.machine.isHopeless();
        }
        if (moved.any()) {
            apply(moved);
        } else if (!at(ClusterMachine::entry)->subscriber.isEmpty()) {
            moveChannels();
        }
        if (isHopeless) {
            endParked();
        }
        if (!question) {
            break;
        }
        ask(*question);
    }
    const std::lock_guard lock(cluster.mutex);
    cluster.timer.set(std::min(cluster.machine.dueAt(isUsed), std::exchange(cluster.recheckAt, TimePoint::max())));
}

/// Makes the nodes for which requests wait, and lets these begin again.
void Route::makeWanted()
{
    std::bitset<ClusterMachine::mostServers> wanted;
    {
        const std::lock_guard lock(cluster_->mutex);
        wanted = std::exchange(cluster_->wanted, {});
    }
    if (wanted.none()) {
        return;
    }
    for (std::size_t i = 1; i < wanted.size(); ++i) {
        if (wanted[i] && at(static_cast<Server>(i)) == nullptr) {
            (void)make(static_cast<Server>(i));
        }
    }
    cluster_->recheckAt = BootClock::now() + recheck; // a request may be on its way to the first node
}

void Route::ask(Server server)
{
    const auto question = std::make_shared<Question>(cluster_->self, server);
    if (at(server) == nullptr && !make(server)) {
        const std::lock_guard lock(cluster_->mutex);
        return cluster_->machine.failed(server, BootClock::now());
    }
    question->call->mode = Call::Mode::detached;
    question->call->requester = question;
    question->call->server = server;
    question->call->isHurried = true;
    at(server)->renewals.enqueue(question->call);
    at(server)->renewals.flush();
}

void Route::answered(const Question& question)
{
    const Call& call = *question.call;
    const bool isTable = call.outcome.replied && !call.reply.isError();
    if (!isTable) {
        const Fault fault = call.outcome.replied ? classify(call.reply.text) : call.outcome.fault;
        cluster_->failed(fault);
    }
    if (!isTable || !told(question.by, call.reply, question.askedAt)) {
        const std::lock_guard lock(cluster_->mutex);
        cluster_->machine.failed(question.by, BootClock::now());
    }
    workSoon();
}

/// A node tells its table. @return false if it is of no use
bool Route::told(Server by, const Reply& slots, TimePoint askedAt)
{
    Cluster& cluster = *cluster_;
    auto table = clusterTableOf(slots);
    if (!table || table->ranges.empty()) {
        return table.has_value();
    }
    Endpoint asked;
    {
        const std::lock_guard lock(cluster.mutex);
        asked = cluster.machine.at(by);
    }
    for (auto& node : table->nodes) {
        node.announced.host = node.announced.host.empty() ? asked.host : node.announced.host;
        const auto at = mapped(cluster.config.addressMap, node.announced, lastErrors_);
        node.at = at.value_or(node.announced);
        node.isMapped = at.has_value();
    }
    bool isOwn = false;
    {
        const std::lock_guard lock(cluster.mutex);
        isOwn = cluster.machine.told(by, *table, askedAt, BootClock::now());
        for (std::size_t i = 1; table->ranges.size() <= madeAtOnce && i < cluster.machine.count(); ++i) {
            cluster.wanted[i] = cluster.wanted[i] || cluster.machine.ownsSlots(static_cast<Server>(i));
        }
    }
    if (!isOwn) {
        lastErrors_.note(Cause::otherCluster, asked.str());
        listener_.warned(asked.str() + ": the node belongs to another cluster, and is not used");
        return false;
    }
    cluster.fault.reset();
    cluster.letGoTimer.set(BootClock::now() + unusedFor);
    boost::asio::post(io_, [this] { endParked(); });
    workSoon();
    return true;
}

/// An error reply may be news.
void Route::noted(Server by, const Reply& reply) noexcept
try {
    const auto where = Redirection::from(reply.text);
    if (!where && !reply.text.starts_with("CLUSTERDOWN")) {
        return;
    }
    {
        const std::lock_guard lock(cluster_->mutex);
        where ? cluster_->machine.redirected(by, *where, BootClock::now())
              : cluster_->machine.troubled(by, BootClock::now());
    }
    workSoon();
} catch (const std::bad_alloc&) { // the next one tells it again
}

void Route::tried(Server server, const std::optional<Fault>& fault)
{
    if (fault) {
        cluster_->failed(*fault);
    }
    {
        const std::lock_guard lock(cluster_->mutex);
        cluster_->machine.tried(server, !fault, BootClock::now());
    }
    workSoon();
}

/// @param found told where a node is; for the first one, which is none, that what waits there belongs elsewhere
void Route::locate(Server server, Locator::Found found)
{
    Endpoint where;
    bool isMapped = true;
    {
        const std::lock_guard lock(cluster_->mutex);
        where = cluster_->machine.at(server);
        isMapped = cluster_->machine.isMapped(server);
        if (server == ClusterMachine::entry) {
            cluster_->machine.search();
        }
    }
    if (!isMapped) {
        return found(nullptr, {Failure::fatal, Cause::addressNotMapped});
    }
    if (!where.host.empty()) {
        return found(&where, {});
    }
    cluster_->parked.push_back(std::move(found));
    workSoon();
}

Fault Route::absence()
{
    {
        const std::lock_guard lock(cluster_->mutex);
        if (cluster_->machine.state() != ClusterMachine::State::searching) {
            return {Failure::moved, Cause::redirected};
        }
    }
    return cluster_->fault.value_or(Fault{Failure::notConnected, Cause::connectTimedOut});
}

/// A table is known, or none can be had: ends what waits for that.
void Route::endParked()
{
    const Fault why = absence();
    for (const auto& found : std::exchange(cluster_->parked, {})) {
        found(nullptr, why);
    }
}

} // namespace redislock::detail
