#include "support/deployments.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

namespace redislock::test {

namespace {

/// A value in the answer to SENTINEL MASTER.
std::string fieldOf(const Value& reply, std::string_view name)
{
    for (std::size_t i = 0; i + 1 < reply.elements.size(); i += 2) {
        if (reply.elements[i].text() == name) {
            return reply.elements[i + 1].text();
        }
    }
    return {};
}

Value ask(const testing::RedisServer& sentinel, const char* what)
{
    RawRedis admin(sentinel);
    admin.setTimeout(std::chrono::seconds(1));
    return admin.command({"SENTINEL", what, "main"});
}

} // namespace

testing::RedisServer Sentinel::start(const testing::detail::TemporaryFolder& folder, std::uint16_t port, int quorum)
{
    const auto file = folder.path() / "sentinel.conf"; // which it writes anew now and then
    std::ofstream(file) << "sentinel monitor main 127.0.0.1 " << port << ' ' << quorum
                        << "\nsentinel down-after-milliseconds main 500\nsentinel failover-timeout main 3000\n"
                           "sentinel parallel-syncs main 2\n";
    return testing::RedisServer({.arguments = {file.string(), "--sentinel"}});
}

SentinelDeployment::SentinelDeployment()
{
    for (int i = 0; i < 3; ++i) {
        servers.emplace_back(testing::RedisServerOptions{
            .arguments = {"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"}});
        if (i > 0) {
            RawRedis(servers.back()).command({"REPLICAOF", "127.0.0.1", std::to_string(servers[0].port())});
        }
    }
    for (int i = 0; i < 3; ++i) {
        sentinels.emplace_back(servers[0].port(), 2);
    }
    heal();
}

std::string SentinelDeployment::url() const
{
    std::string url = "redis-sentinel://";
    for (const auto& each : sentinels) {
        url.append(url.ends_with('/') ? "" : ",").append("127.0.0.1:" + std::to_string(each.server().port()));
    }
    return url + "/main";
}

std::size_t SentinelDeployment::master()
{
    for (auto& each : sentinels) {
        try {
            const auto port = ask(each.server(), "GET-MASTER-ADDR-BY-NAME").elements.at(1).text();
            const auto found = std::ranges::find_if(
                servers, [&](const auto& server) { return std::to_string(server.port()) == port; });
            return static_cast<std::size_t>(found - servers.begin());
        } catch (const std::runtime_error&) { // that one is gone
            continue;
        }
    }
    throw std::runtime_error("no Sentinel answers");
}

bool SentinelDeployment::isSettled()
try {
    const auto own = std::to_string(servers.at(master()).port());
    return std::ranges::all_of(sentinels, [&](auto& each) {
        const auto reply = ask(each.server(), "MASTER");
        return fieldOf(reply, "port") == own && fieldOf(reply, "flags") == "master";
    });
} catch (const std::exception&) { // not there yet
    return false;
}

void SentinelDeployment::settle()
{
    if (!eventually([this] { return isSettled(); }, std::chrono::seconds(40))) {
        throw std::runtime_error("the Sentinels do not agree");
    }
}

bool SentinelDeployment::isWhole()
{
    try {
        if (!isSettled()) {
            return false;
        }
        for (auto& each : sentinels) {
            const auto reply = ask(each.server(), "MASTER");
            if (fieldOf(reply, "num-other-sentinels") != "2" || fieldOf(reply, "num-slaves") != "2") {
                return false;
            }
        }
        RawRedis admin(servers.at(master()));
        const auto info = admin.command({"INFO", "replication"}).text();
        return info.find("slave1:") != info.npos &&
               info.find("state=online", info.find("slave0:")) < info.find("slave1:") &&
               info.find("state=online", info.find("slave1:")) != info.npos;
    } catch (const std::exception&) { // not there yet
        return false;
    }
}

std::size_t SentinelDeployment::heal()
{
    for (auto& each : servers) {
        each.thaw();
        if (!each.isRunning()) {
            each.restart();
        }
    }
    for (auto& each : sentinels) {
        each.server().thaw();
        if (!each.server().isRunning()) {
            each.server().restart();
        }
    }
    const auto& named = servers.at(master());
    for (auto& each : servers) {
        RawRedis admin(each);
        if (each.port() != named.port() && admin.info("role") == "master") { // Sentinels take ten seconds for that
            admin.command({"REPLICAOF", named.host(), std::to_string(named.port())});
        }
    }
    if (!eventually([this] { return isWhole(); }, std::chrono::seconds(40))) {
        throw std::runtime_error("the Sentinels do not agree");
    }
    return master();
}

void SentinelDeployment::failOver()
{
    const bool hasBegun =
        eventually([this] { return !ask(sentinels[0].server(), "FAILOVER").isError(); }, std::chrono::seconds(20));
    if (!hasBegun) {
        throw std::runtime_error("no fail-over begins");
    }
}

Feed::Feed(const testing::RedisServer& server, const RawRedis::Arguments& command) : redis_(server), command_(command)
{
    if (redis_.command(command_).isError()) {
        throw std::runtime_error(command.front() + " was refused");
    }
    thread_ = std::jthread([this](const std::stop_token& end) { run(end); });
}

Feed::~Feed()
{
    thread_.request_stop();
}

std::vector<Feed::Item> Feed::items() const
{
    const std::lock_guard lock(mutex_);
    return items_;
}

void Feed::run(const std::stop_token& end)
{
    for (bool listens = true; !end.stop_requested();) {
        try {
            if (!listens) {
                redis_.send(command_);
                listens = true;
            }
            const auto came = redis_.receive(std::chrono::milliseconds(20));
            const auto now = std::chrono::system_clock::now();
            const Value* const last = !came ? nullptr : came->isArray() ? &came->elements.back() : &*came;
            if (last != nullptr && !last->isInteger()) { // else subscribed again
                const std::lock_guard lock(mutex_);
                items_.push_back({now, last->text()});
            }
        } catch (const std::runtime_error&) { // a server that is promoted ends its connections
            listens = false;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }
}

// --- Cluster --------------------------------------------------------------------------------------------------------

Cluster::Cluster(std::size_t masters, std::size_t replicas, const testing::RedisServerOptions& options,
                 Addresses addresses)
    : masters_(masters), addresses_(addresses)
{
    for (std::size_t i = 0; i < masters * (1 + replicas); ++i) {
        testing::RedisServerOptions own = options;
        own.arguments.insert(own.arguments.begin(),
                             {"--cluster-enabled", "yes", "--cluster-node-timeout", "1000",
                              "--cluster-replica-validity-factor", "0", "--repl-diskless-sync-delay", "0",
                              "--repl-ping-replica-period", "1"});
        if (addresses == Addresses::own) {
            own.arguments.insert(own.arguments.end(),
                                 {"--bind", "127.0.0.1", address(i), "--protected-mode", "no", "--bind-source-addr",
                                  address(i), "--cluster-announce-ip", address(i)});
        }
        nodes_.emplace_back(std::move(own));
    }
    for (std::size_t i = 0; i < masters; ++i) {
        RawRedis::Arguments add{"CLUSTER", "ADDSLOTS"}; // Redis 6 has no ADDSLOTSRANGE
        for (std::size_t slot = i * slots / masters; slot < (i + 1) * slots / masters; ++slot) {
            add.push_back(std::to_string(slot));
        }
        RawRedis admin(node(i));
        admin.command(add);
        admin.command({"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)});
    }
    for (std::size_t i = 1; i < size(); ++i) {
        RawRedis(node(0)).command({"CLUSTER", "MEET", address(i), std::to_string(node(i).port())});
    }
    for (std::size_t i = masters; i < size(); ++i) {
        const bool follows = eventually([&] {
            return !RawRedis(node(i)).command({"CLUSTER", "REPLICATE", idOf(i % masters)}).isError();
        });
        if (!follows) {
            throw std::runtime_error("a node does not become a replica");
        }
    }
    heal();
}

std::string Cluster::url(std::size_t i) const
{
    return "redis-cluster://127.0.0.1:" + std::to_string(node(i).port());
}

std::string Cluster::address(std::size_t i) const
{
    return addresses_ == Addresses::shared ? "127.0.0.1" : "127.0.0." + std::to_string(11 + i);
}

std::vector<std::string> Cluster::rulesToCutOff(std::size_t i) const
{
    std::vector<std::string> rules;
    for (std::size_t other = 0; other < size(); ++other) {
        if (other != i) {
            rules.push_back("ip saddr " + address(i) + " ip daddr " + address(other) + " counter drop");
            rules.push_back("ip saddr " + address(other) + " ip daddr " + address(i) + " counter drop");
        }
    }
    return rules;
}

std::string Cluster::idOf(std::size_t i) const
{
    return RawRedis(node(i)).command({"CLUSTER", "MYID"}).text();
}

/// What a node says that answers.
Value Cluster::told(const RawRedis::Arguments& command) const
{
    for (const auto& each : nodes_) {
        try {
            RawRedis admin(each);
            admin.setTimeout(std::chrono::milliseconds(300));
            return admin.command(command);
        } catch (const std::runtime_error&) { // that one is gone
            continue;
        }
    }
    throw std::runtime_error("no node answers");
}

/// The words of each line of CLUSTER NODES.
std::vector<std::vector<std::string>> Cluster::nodesTold() const
{
    std::istringstream lines(told({"CLUSTER", "NODES"}).text());
    std::vector<std::vector<std::string>> all;
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        all.emplace_back(std::istream_iterator<std::string>(words), std::istream_iterator<std::string>());
    }
    return all;
}

namespace {

bool isIn(const std::string& range, std::size_t slot)
{
    if (range.starts_with('[')) {
        return false;
    }
    const auto dash = range.find('-');
    const auto first = std::stoul(range);
    return first <= slot && slot <= (dash == std::string::npos ? first : std::stoul(range.substr(dash + 1)));
}

std::string portIn(const std::string& address)
{
    const auto colon = address.rfind(':', address.find('@'));
    return address.substr(colon + 1, address.find('@') - colon - 1);
}

} // namespace

std::size_t Cluster::ownerOf(const std::string& name) const
{
    const auto slot = static_cast<std::size_t>(told({"CLUSTER", "KEYSLOT", name}).integer());
    std::optional<std::size_t> owner;
    const auto find = [&] {
        for (const auto& words : nodesTold()) {
            const bool isOwner =
                words.at(2).find("master") != std::string::npos &&
                std::any_of(words.begin() + 8, words.end(), [&](const auto& each) { return isIn(each, slot); });
            for (std::size_t i = 0; isOwner && i < size(); ++i) {
                if (std::to_string(node(i).port()) == portIn(words[1])) {
                    owner = i;
                }
            }
        }
        return owner.has_value();
    };
    if (!eventually(find)) { // while a replica takes over, a node may say for a moment that nobody has the slot
        throw std::runtime_error("nobody has the slot");
    }
    return *owner;
}

std::size_t Cluster::masterWithout(const std::string& name) const
{
    const auto owner = ownerOf(name);
    for (std::size_t i = 0;; ++i) {
        if (const auto other = ownerOf("any" + std::to_string(i)); other != owner) {
            return other;
        }
    }
}

std::size_t Cluster::replicaOf(std::size_t master) const
{
    const auto nodes = nodesTold();
    const auto own = std::ranges::find_if(
        nodes, [&](const auto& words) { return portIn(words.at(1)) == std::to_string(node(master).port()); });
    for (const auto& words : nodes) {
        for (std::size_t i = 0; own != nodes.end() && words.at(3) == own->at(0) && i < size(); ++i) {
            if (std::to_string(node(i).port()) == portIn(words[1])) {
                return i;
            }
        }
    }
    throw std::runtime_error("the node has no replica");
}

bool Cluster::isWhole() const
try {
    const auto known = "cluster_known_nodes:" + std::to_string(size());
    for (const auto& each : nodes_) {
        RawRedis admin(each);
        admin.setTimeout(std::chrono::seconds(1));
        const auto info = admin.command({"CLUSTER", "INFO"}).text();
        const auto told = admin.command({"CLUSTER", "NODES"}).text();
        std::size_t replicas = 0;
        for (auto at = told.find("slave"); at != std::string::npos; at = told.find("slave", at + 1)) {
            ++replicas;
        }
        if (info.find("cluster_state:ok") == std::string::npos || info.find(known) == std::string::npos ||
            told.find("fail") != std::string::npos || replicas != size() - masters_ ||
            (admin.info("role") == "slave" && admin.info("master_link_status") != "up")) {
            return false;
        }
    }
    return true;
} catch (const std::runtime_error&) { // not there yet
    return false;
}

void Cluster::heal()
{
    for (auto& each : nodes_) {
        each.thaw();
        if (!each.isRunning()) {
            each.restart();
        }
    }
    if (!eventually([this] { return isWhole(); }, std::chrono::seconds(40))) {
        throw std::runtime_error("the nodes make no cluster");
    }
}

std::string keySlot(const testing::RedisServer& server, const std::string& key)
{
    return std::to_string(RawRedis(server).command({"CLUSTER", "KEYSLOT", key}).integer());
}

void Cluster::open(const std::string& name, std::size_t from, std::size_t to)
{
    const auto slot = keySlot(node(from), name);
    RawRedis(node(to)).command({"CLUSTER", "SETSLOT", slot, "IMPORTING", idOf(from)});
    RawRedis(node(from)).command({"CLUSTER", "SETSLOT", slot, "MIGRATING", idOf(to)});
}

void Cluster::moveKey(const std::string& key, std::size_t from, std::size_t to)
{
    RawRedis(node(from)).command({"MIGRATE", address(to), std::to_string(node(to).port()), key, "0", "5000"});
}

std::vector<std::string> Cluster::keysAt(const std::string& name, std::size_t node) const
{
    RawRedis admin(nodes_.at(node));
    std::vector<std::string> keys;
    for (const auto& key :
         admin.command({"CLUSTER", "GETKEYSINSLOT", keySlot(nodes_.at(node), name), "1000"}).elements) {
        keys.push_back(key.text());
    }
    return keys;
}

void Cluster::moveKeys(const std::string& name, std::size_t from, std::size_t to)
{
    for (const auto& key : keysAt(name, from)) {
        moveKey(key, from, to);
    }
}

void Cluster::abandon(const std::string& name, std::size_t to)
{
    RawRedis admin(node(to));
    for (const auto& key : keysAt(name, to)) {
        admin.command({"ASKING"});
        admin.command({"DEL", key});
    }
    admin.command({"CLUSTER", "SETSLOT", keySlot(node(to), name), "STABLE"});
}

void Cluster::close(const std::string& name, std::size_t to)
{
    const auto slot = keySlot(node(to), name);
    const auto owner = idOf(to);
    RawRedis(node(to)).command({"CLUSTER", "SETSLOT", slot, "NODE", owner});
    for (const auto& each : nodes_) {
        RawRedis(each).command({"CLUSTER", "SETSLOT", slot, "NODE", owner}); // replicas refuse it
    }
    awaitOwner(name, to);
}

void Cluster::awaitOwner(const std::string& name, std::size_t owner) const
{
    const auto moved =
        "MOVED " + keySlot(node(owner), name) + ' ' + address(owner) + ':' + std::to_string(node(owner).port());
    const auto isKnownTo = [&](const testing::RedisServer& each) {
        const auto answer = RawRedis(each).command({"EXISTS", name});
        return &each == &node(owner) ? !answer.isError() : answer.isError() && answer.text() == moved;
    };
    // A node that has not heard of the greatest epoch takes none for a slot that it gets: the next move would be lost.
    const auto epochs = [this] {
        std::set<std::string> told;
        for (const auto& each : nodes_) {
            const auto info = RawRedis(each).command({"CLUSTER", "INFO"}).text();
            const auto at = info.find("cluster_current_epoch:");
            told.insert(info.substr(at, info.find('\r', at) - at));
        }
        return told.size();
    };
    if (!eventually([&] { return std::ranges::all_of(nodes_, isKnownTo) && epochs() == 1; })) {
        throw std::runtime_error("the nodes do not agree who has the slot");
    }
}

} // namespace redislock::test
