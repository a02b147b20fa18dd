#include "support/deployments.hpp"

#include <algorithm>
#include <fstream>
#include <optional>
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

} // namespace redislock::test
