#include "client/route.hpp"

#include "client/route_parts.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <system_error>
#include <utility>

namespace redislock::detail {

namespace {

/// The name of a channel, without the mark.
std::string_view nameOf(std::string_view channel) noexcept
{
    return channel.substr(channel.starts_with('>') || channel.starts_with('*') ? 1 : 0);
}

} // namespace

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
    if (isShutDown_) {
        node.commands.shutdown(Errc::shutdown);
    }
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

void Route::shutdown(Errc why)
{
    isShutDown_ = true;
    forEach([why](Node& node) { node.commands.shutdown(why); });
}

std::vector<std::string> Route::ids()
{
    if (cluster_ == nullptr) {
        return {};
    }
    const std::lock_guard lock(cluster_->mutex);
    return cluster_->machine.ids();
}

// --- When slots move ------------------------------------------------------------------------------------------------

void Route::apply(const SlotSet& moved)
{
    handOn();
    moveChannels();
    listener_.madeAgain(&moved);
}

/// Has what waits at a node begin again if it belongs elsewhere now, and leaves nodes that are silent and have lost
/// slots.
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
            const bool isBound = call.slot() != noSlot || server == ClusterMachine::entry; // others may be asked here
            const Server owner = ownerOf(call.slot());
            return isBound && owner != server && at(owner) != nullptr;
        };
        bool hasLost = false;
        bool isInOffice = false;
        {
            const std::lock_guard lock(cluster_->mutex);
            hasLost = cluster_->machine.takeLoss(server);
            isInOffice = cluster_->machine.ownsSlots(server);
        }
        if (hasLost && !isInOffice) {
            (void)node->keep(false);
        }
        const bool isSilent = node->owesSince() < now - ClusterMachine::silentAfter;
        node->handOn(isElsewhere, isSilent && (hasLost || !isInOffice));
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
    if (cluster_ != nullptr) {
        echo();
    }
}

void Route::drop(const std::string& channel, const ChannelListener& listener)
{
    forEach([&](Node& node) { node.subscriber.drop(channel, listener); });
    if (cluster_ != nullptr && !cluster_->echoes.empty()) {
        workSoon();
    }
}

/// Listens at both sides of the slots that are being moved. A change of what is listened to takes a new connection.
void Route::echo()
{
    std::map<Slot, Server> open;
    {
        const std::lock_guard lock(cluster_->mutex);
        open = cluster_->machine.openSlots();
    }
    if (open.empty() && cluster_->echoes.empty()) {
        return;
    }
    std::map<Slot, Echo::Listeners> wanted;
    forEach([&](Node& node) {
        for (const auto& [channel, listeners] : node.subscriber.listeners()) {
            const Slot slot = slotOf(nameOf(channel));
            if (channel.starts_with('>') && open.contains(slot)) {
                wanted[slot].emplace(channel, listeners);
            }
        }
    });
    std::erase_if(cluster_->echoes, [&](auto& each) {
        const auto still = wanted.find(each.first);
        const bool stays =
            still != wanted.end() && still->second == each.second->listeners && open[each.first] == each.second->target;
        stays ? (void)wanted.erase(still) : end(std::move(each.second));
        return !stays;
    });
    for (auto& [slot, listeners] : wanted) {
        cluster_->echoes[slot] = std::make_shared<Echo>(*this, open[slot], std::move(listeners));
    }
}

/// Ends the connection; what was posted for it comes first.
void Route::end(std::shared_ptr<Echo> echo)
{
    echo->subscriber.close();
    echo->connector.close();
    boost::asio::post(io_, [echo = std::move(echo)] {});
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
    for (std::size_t i = 1; i < ClusterMachine::mostServers; ++i) {
        const auto server = static_cast<Server>(i);
        Node* const node = at(server);
        const bool isListenedTo = node != nullptr && !node->subscriber.isEmpty();
        {
            const std::lock_guard lock(cluster_->mutex);
            if (i >= cluster_->machine.count()) {
                return;
            }
            if (isListenedTo || cluster_->machine.ownsSlots(server)) {
                continue;
            }
            cluster_->used.reset(i);
            cluster_->machine.release(server);
        }
        if (node != nullptr) {
            node->letGo();
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
            cluster.machine.troubled(static_cast<Server>(i), now);
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
        for (const auto& [slot, each] : cluster_->echoes) {
            each->connector.recover();
            each->subscriber.recover();
        }
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
        for (auto& [slot, each] : std::exchange(cluster_->echoes, {})) {
            end(std::move(each));
        }
    }
    forEach([](Node& node) { node.close(); });
}

} // namespace redislock::detail
