#include "client/route.hpp"

#include "link/request/calls.hpp"
#include "values/printable.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <bitset>
#include <chrono>
#include <exception>
#include <new>
#include <optional>
#include <system_error>
#include <utility>

namespace redislock::detail {

namespace {

constexpr std::chrono::milliseconds recheck{1};
constexpr std::chrono::milliseconds unusedFor{5000}; ///< then the connections to a node that has no slots end

/// The name of a channel, without the mark.
std::string_view nameOf(std::string_view channel) noexcept
{
    return channel.substr(channel.starts_with('>') || channel.starts_with('*') ? 1 : 0);
}

} // namespace

/// What a route keeps of a cluster.
struct Route::Cluster {
    Cluster(boost::asio::io_context& io, Route& route, const Config& settings, std::string name)
        : self(&route, [](Route*) {}),
          config(settings),
          connectionName(std::move(name)),
          timer(io),
          watchTimer(io),
          letGoTimer(io)
    {
    }

    std::shared_ptr<Route> self; ///< for questions, which may outlast the route; owns nothing
    const Config config;
    const std::string connectionName;
    std::mutex mutex; ///< guards what follows
    ClusterMachine machine;
    std::bitset<ClusterMachine::mostServers> wanted; ///< nodes that are to be made
    std::bitset<ClusterMachine::mostServers> used;   ///< nodes that were given a request

    // on the io_context's thread
    std::vector<std::unique_ptr<Place>> places; ///< by number
    std::vector<Locator::Found> parked;
    std::optional<Fault> fault; ///< of the last attempt to reach a node of the configuration
    Alarm timer;
    Alarm watchTimer;
    Alarm letGoTimer;
    std::atomic<bool> watches{false};
    std::atomic<bool> wasUsed{false}; ///< since the last watch
    TimePoint recheckAt = TimePoint::max();
    bool isClosed = false;
};

/// Where one node is.
class Route::Place final : public Locator {
public:
    Place(Route& of, Server server) noexcept : of_(of), server_(server) {}

    void locate(Found found) override { of_.locate(server_, std::move(found)); }
    void tried(const Endpoint& /*at*/, const std::optional<Fault>& fault) override { of_.tried(server_, fault); }
    bool told(const Reply& slots) override
    {
        return of_.told(server_, slots, BootClock::now() - ClusterMachine::askAgainAfter); // at least as old
    }
    void noted(const Reply& reply) noexcept override { of_.noted(server_, reply); }
    [[nodiscard]] std::string tlsName(const Endpoint& /*at*/) const override
    {
        const std::lock_guard lock(of_.cluster_->mutex);
        return of_.cluster_->machine.tlsName(server_);
    }
    [[nodiscard]] Fault absence() const override { return of_.absence(); }

private:
    Route& of_;
    const Server server_;
};

/// A question for the table.
struct Route::Question final : Requester {
    Question(const std::shared_ptr<Route>& route, Server server) : of(route), by(server), askedAt(BootClock::now()) {}

    void answered(Call& /*call*/) noexcept override
    {
        if (const auto route = of.lock()) {
            try {
                route->answered(*this);
            } catch (...) { // out of memory: asked again later
                const std::lock_guard lock(route->cluster_->mutex);
                route->cluster_->machine.failed(by, BootClock::now());
            }
        }
    }

    const std::weak_ptr<Route> of;
    const Server by;
    const TimePoint askedAt;
    std::shared_ptr<CommandCall> call =
        std::make_shared<CommandCall>(std::vector<std::string>{"CLUSTER", "SLOTS"});
};

Route::Route(boost::asio::io_context& io, const Config& config, std::string connectionName, LastErrors& lastErrors,
             const Node::Listener& listener)
    : io_(io), listener_(listener), lastErrors_(lastErrors)
{
    if (config.cluster.empty()) {
        owned_.push_back(std::make_unique<Node>(io, config, connectionName, lastErrors, listener));
        nodes_[0] = owned_.back().get();
        return;
    }
    cluster_ = std::make_unique<Cluster>(io, *this, config, std::move(connectionName));
    for (const auto& seed : config.cluster) {
        cluster_->machine.addSeed(seed);
    }
    (void)make(ClusterMachine::entry);
    cluster_->timer.onRing([this] { work(); });
    cluster_->watchTimer.onRing([this] { watch(); });
    cluster_->letGoTimer.onRing([this] { letGo(); });
}

Route::~Route() = default;

/// Makes the node of that number. @return false: the system has no descriptors for it
bool Route::make(Server server)
{
    auto& places = cluster_->places;
    while (places.size() <= server) {
        places.push_back(std::make_unique<Place>(*this, static_cast<Server>(places.size())));
    }
    try {
        owned_.push_back(std::make_unique<Node>(io_, cluster_->config, cluster_->connectionName, lastErrors_,
                                                listenerOf(server), places[server].get()));
    } catch (const std::system_error&) {
        if (server == ClusterMachine::entry) {
            throw;
        }
        return false;
    }
    Node& node = *owned_.back();
    node.subscriber.ended = [this] {
        const std::lock_guard lock(cluster_->mutex);
        cluster_->machine.doubt();
        workSoon();
    };
    nodes_[server].store(&node, std::memory_order_release);
    count_ = std::max<std::size_t>(count_, server + 1U);
    return true;
}

/// Tells of one node what the client is told, and the machine of its connections.
Node::Listener Route::listenerOf(Server server)
{
    Node::Listener own = listener_;
    if (server == ClusterMachine::entry) { // it is never connected
        own.report = [](const char*, bool, Reason) {};
        own.ended = [] {};
    }
    own.madeAgain = [this, server](const SlotSet*) {
        SlotSet slots;
        {
            const std::lock_guard lock(cluster_->mutex);
            slots = cluster_->machine.slotsOf(server);
        }
        listener_.madeAgain(&slots);
    };
    own.ended = [this, ended = own.ended] { // perhaps because another is the master now
        {
            const std::lock_guard lock(cluster_->mutex);
            cluster_->machine.doubt();
        }
        workSoon();
        ended();
    };
    return own;
}

// --- Requests -------------------------------------------------------------------------------------------------------

Node& Route::chooseInCluster(Call& call)
{
    Cluster& cluster = *cluster_;
    const Slot slot = call.slot();
    bool isMissing = false;
    Node* node = nullptr;
    {
        const std::lock_guard lock(cluster.mutex);
        const auto target = call.asks && slot != noSlot ? cluster.machine.targetOf(slot) : ClusterMachine::entry;
        call.isAsking = target != ClusterMachine::entry;
        call.asks = false;
        const auto owner = slot == noSlot ? ClusterMachine::entry : cluster.machine.serverOf(slot);
        call.server = call.isAsking ? target : owner == ClusterMachine::entry ? cluster.machine.any() : owner;
        node = at(call.server);
        if (node == nullptr) {
            isMissing = true;
            cluster.wanted.set(call.server);
            call.server = ClusterMachine::entry;
            call.isAsking = false;
            node = at(call.server);
        }
        cluster.used.set(call.server);
    }
    if (isMissing) {
        workSoon();
    }
    cluster.wasUsed.store(true, std::memory_order_relaxed);
    if (!cluster.watches.load(std::memory_order_relaxed) && !cluster.watches.exchange(true)) {
        cluster.watchTimer.set(BootClock::now() + ClusterMachine::silentAfter);
    }
    return *node;
}

std::vector<std::string> Route::ids()
{
    if (cluster_ == nullptr) {
        return {};
    }
    const std::lock_guard lock(cluster_->mutex);
    return cluster_->machine.ids();
}

// --- The table ------------------------------------------------------------------------------------------------------

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
        cluster_->fault = !cluster_->fault || fault.failure == Failure::fatal ? fault : *cluster_->fault;
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
        try {
            node.at = cluster.config.addressMap ? cluster.config.addressMap(node.announced) : node.announced;
        } catch (const std::bad_alloc&) {
            throw;
        } catch (const std::exception& e) {
            lastErrors_.note(Cause::addressNotMapped, node.announced.str() + ": " + printable(e.what()));
        } catch (...) {
            lastErrors_.note(Cause::addressNotMapped, node.announced.str());
        }
    }
    bool isOwn = false;
    {
        const std::lock_guard lock(cluster.mutex);
        isOwn = cluster.machine.told(by, *table, askedAt, BootClock::now());
    }
    if (!isOwn) {
        lastErrors_.note(Cause::otherCluster, asked.str());
        listener_.warned(asked.str() + ": the node belongs to another cluster, and is not used");
        return false;
    }
    cluster.fault.reset();
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
        where ? cluster_->machine.redirected(by, *where, BootClock::now()) : cluster_->machine.doubt();
    }
    workSoon();
} catch (const std::bad_alloc&) { // the next one tells it again
}

void Route::tried(Server server, const std::optional<Fault>& fault)
{
    if (fault) {
        cluster_->fault = !cluster_->fault || fault->failure == Failure::fatal ? *fault : *cluster_->fault;
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
    {
        const std::lock_guard lock(cluster_->mutex);
        where = cluster_->machine.at(server);
        if (server == ClusterMachine::entry) {
            cluster_->machine.search();
        }
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

// --- When slots move ------------------------------------------------------------------------------------------------

void Route::apply(const SlotSet& moved)
{
    handOn();
    moveChannels();
    listener_.madeAgain(&moved);
    cluster_->letGoTimer.set(BootClock::now() + unusedFor);
}

/// Has what waits at a node begin again if it belongs elsewhere now, and leaves nodes that are silent and have lost slots.
void Route::handOn()
{
    const TimePoint now = BootClock::now();
    for (std::size_t i = 0; i < count_; ++i) {
        const auto server = static_cast<Server>(i);
        Node* const node = at(server);
        if (node == nullptr) {
            continue;
        }
        const auto isElsewhere = [this, server](const Call& call) {
            const Server owner = ownerOf(call.slot());
            return owner != server && at(owner) != nullptr;
        };
        bool hasLost = false;
        {
            const std::lock_guard lock(cluster_->mutex);
            hasLost = cluster_->machine.takeLoss(server);
        }
        node->handOn(isElsewhere, hasLost && node->owesSince() < now - ClusterMachine::silentAfter);
    }
}

/// To whom a request about that slot is to be sent.
Route::Server Route::ownerOf(Slot slot)
{
    const std::lock_guard lock(cluster_->mutex);
    const Server owner = slot == noSlot ? ClusterMachine::entry : cluster_->machine.serverOf(slot);
    return owner == ClusterMachine::entry ? cluster_->machine.any() : owner;
}

Node& Route::nodeForChannel(const std::string& channel)
{
    if (cluster_ == nullptr) {
        return *at(0);
    }
    const Server server = ownerOf(slotOf(nameOf(channel)));
    const bool isThere = at(server) != nullptr || make(server);
    return *at(isThere ? server : ClusterMachine::entry);
}

void Route::want(const std::string& channel, const ChannelListener& listener)
{
    nodeForChannel(channel).subscriber.want(channel, listener);
}

void Route::drop(const std::string& channel, const ChannelListener& listener)
{
    forEach([&](Node& node) { node.subscriber.drop(channel, listener); });
}

/// Listens to each channel at the node that has its slot now.
void Route::moveChannels()
{
    Subscriptions::Taken taken;
    forEach([&](Node& node) {
        if (!node.subscriber.isEmpty()) {
            for (auto& each :
                 node.subscriber.take([&](const std::string& channel) { return &nodeForChannel(channel) != &node; })) {
                taken.push_back(std::move(each));
            }
        }
    });
    for (const auto& [channel, listeners] : taken) {
        for (const auto& listener : listeners) {
            want(channel, listener);
        }
    }
}

// --- Nodes ----------------------------------------------------------------------------------------------------------

bool Route::keep(bool on)
{
    if (cluster_ == nullptr) {
        return at(0)->keep(on);
    }
    bool mayBeUnheard = false;
    for (std::size_t i = 1; i < count_; ++i) {
        bool isInUse = false;
        {
            const std::lock_guard lock(cluster_->mutex);
            isInUse = cluster_->used[i] && cluster_->machine.ownsSlots(static_cast<Server>(i));
        }
        if (Node* const node = at(static_cast<Server>(i)); node != nullptr && (isInUse || !on)) {
            mayBeUnheard = node->keep(on) || mayBeUnheard;
        }
    }
    return mayBeUnheard;
}

/// Ends the connections to nodes that have no slots any more.
void Route::letGo()
{
    for (std::size_t i = 1; i < count_; ++i) {
        const auto server = static_cast<Server>(i);
        {
            const std::lock_guard lock(cluster_->mutex);
            if (cluster_->machine.ownsSlots(server)) {
                continue;
            }
            cluster_->used.reset(i);
        }
        if (Node* const node = at(server); node != nullptr && node->subscriber.isEmpty()) {
            node->letGo();
            const std::lock_guard lock(cluster_->mutex);
            cluster_->machine.release(server);
        }
    }
}

/// Notices nodes that are silent, as long as requests are under way.
void Route::watch()
{
    Cluster& cluster = *cluster_;
    if (cluster.isClosed) {
        return;
    }
    const TimePoint now = BootClock::now();
    bool isOwed = false;
    for (std::size_t i = 1; i < count_; ++i) {
        Node* const node = at(static_cast<Server>(i));
        const TimePoint since = node != nullptr ? node->owesSince() : TimePoint::max();
        isOwed = isOwed || since != TimePoint::max();
        if (since != TimePoint::max() && now >= since + ClusterMachine::silentAfter) {
            const std::lock_guard lock(cluster.mutex);
            cluster.machine.silent(static_cast<Server>(i), now);
            workSoon();
        }
    }
    handOn();
    cluster.watches = false;
    if ((cluster.wasUsed.exchange(false) || isOwed) && !cluster.watches.exchange(true)) {
        cluster.watchTimer.set(now + ClusterMachine::silentAfter);
    }
}

void Route::recover()
{
    forEach([](Node& node) { node.recover(); });
    if (cluster_ != nullptr) {
        cluster_->timer.wait();
        cluster_->watchTimer.wait();
        cluster_->letGoTimer.wait();
        workSoon();
    }
}

void Route::close()
{
    if (cluster_ != nullptr) {
        cluster_->isClosed = true;
        cluster_->timer.close();
        cluster_->watchTimer.close();
        cluster_->letGoTimer.close();
        cluster_->parked.clear();
    }
    forEach([](Node& node) { node.close(); });
}

} // namespace redislock::detail
