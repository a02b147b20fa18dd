#include "watch/inspector.hpp"

#include "values/printable.hpp"
#include "values/server_text.hpp"
#include "values/system/process.hpp"
#include "wire/info.hpp"
#include "wire/key_schema.hpp"

#include <boost/uuid/random_generator.hpp>
#include <boost/uuid/uuid_io.hpp>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <unordered_set>
#include <utility>

namespace redislock::detail {

namespace {

constexpr const char* pageSize = "500"; ///< of keys, and of fields
constexpr std::size_t queuePage = 500;

std::chrono::seconds secondsIn(std::string_view text) noexcept
{
    std::int64_t count = 0;
    (void)std::from_chars(text.data(), text.data() + text.size(), count);
    return std::chrono::seconds(count);
}

} // namespace

Inspector::Inspector(const Config& config)
    : lastErrors_(serverText(config), config.password),
      config_(config),
      connectionName_(connectionNameOf(config, to_string(boost::uuids::random_generator()())))
{
    goTo(config.cluster.empty() ? config.endpoint : config.cluster.front());
}

std::vector<Reply> Inspector::ask(const Pipeline& requests)
{
    std::vector<Reply> replies;
    Pipeline asking;
    for (const auto& call : requests.calls()) {
        asking.add({"ASKING"}).add(call);
    }
    if (const auto fault = connection_->ask(asks_ ? asking : requests, replies)) {
        throw InspectionFailed{fault->error};
    }
    if (asks_) {
        std::size_t index = 0;
        std::erase_if(replies, [&index](const Reply&) { return index++ % 2 == 0; });
    }
    for (const auto& reply : replies) {
        if (const auto where = Redirection::from(reply.text); reply.isError() && where && !config_.cluster.empty()) {
            throw Redirected{{std::string(where->host.empty() ? at_.host : where->host), where->port, {}},
                             where->isOnce};
        }
    }
    return replies;
}

// --- Nodes -----------------------------------------------------------------------------------------------------------

void Inspector::goTo(const Endpoint& at)
{
    auto& connection = connections_[at.str()];
    if (connection == nullptr) {
        Config own = config_;
        own.endpoint = at;
        connection = std::make_unique<RequestConnection>(own, connectionName_, lastErrors_);
    }
    connection_ = connection.get();
    at_ = at;
    asks_ = false;
}

/// Asks the node here. @return whether it told
bool Inspector::readTable()
{
    const Reply reply = askOne({"CLUSTER", "SLOTS"});
    auto table = clusterTableOf(reply);
    if (!isGiven(reply, "+cluster|slots") || !table) {
        return false;
    }
    for (auto& node : table->nodes) {
        node.announced.host = node.announced.host.empty() ? at_.host : node.announced.host;
        node.at = config_.addressMap ? config_.addressMap(node.announced) : node.announced;
    }
    table_ = *std::move(table);
    return true;
}

std::vector<Endpoint> Inspector::masters()
{
    if (config_.cluster.empty()) {
        return {config_.endpoint};
    }
    std::vector<Endpoint> known;
    std::ranges::transform(table_.nodes, std::back_inserter(known), &ClusterTable::Node::at);
    known.insert(known.end(), config_.cluster.begin(), config_.cluster.end());
    std::optional<InspectionFailed> failed;
    for (const auto& at : known) {
        try {
            goTo(at);
            if (readTable()) {
                failed.reset();
                break;
            }
        } catch (const InspectionFailed& why) {
            failed = why;
        }
    }
    if (failed) {
        throw *std::move(failed);
    }
    std::vector<Endpoint> all;
    for (const auto& range : table_.ranges) {
        const Endpoint& at = table_.nodes[range.node].at;
        if (std::ranges::find(all, at) == all.end()) {
            all.push_back(at);
        }
    }
    return all;
}

void Inspector::goToOwnerOf(std::string_view name)
{
    if (config_.cluster.empty()) {
        return;
    }
    (void)masters();
    const Slot slot = slotOf(name);
    const auto range = std::ranges::find_if(
        table_.ranges, [slot](const auto& each) { return each.first <= slot && slot <= each.last; });
    if (range == table_.ranges.end()) {
        throw InspectionFailed{Cause::clusterDown};
    }
    goTo(table_.nodes[range->node].at);
}

template <class Question>
auto Inspector::atOwnerOf(std::string_view name, Question question)
{
    goToOwnerOf(name);
    for (int redirections = 0; redirections < 5; ++redirections) {
        try {
            return question();
        } catch (const Redirected& where) {
            goTo(where.at);
            asks_ = where.isOnce;
        }
    }
    throw InspectionFailed{Cause::redirected};
}

Reply Inspector::askOne(const std::vector<std::string>& words)
{
    return std::move(ask(Pipeline().add(words)).front());
}

bool Inspector::isGiven(const Reply& reply, const std::string& right, std::string_view key)
{
    if (!reply.isError()) {
        return true;
    }
    const Reason why = classify(reply.text).error;
    if (why != Errc::permissionDenied && why != Reason(Cause::unknownCommand)) {
        throw InspectionFailed{why};
    }
    noteMissing(why == Reason(Cause::keyDenied) ? "~" + std::string(key) : right);
    return false;
}

void Inspector::noteMissing(const std::string& right)
{
    if (std::find(missing_.begin(), missing_.end(), right) == missing_.end()) {
        missing_.push_back(right);
    }
}

// --- Where clients are -----------------------------------------------------------------------------------------------

void Inspector::readClients()
{
    clients_.clear();
    const Endpoint here = at_;
    for (const auto& at : masters()) {
        goTo(at);
        readClientsHere();
    }
    goTo(here);
}

void Inspector::readClientsHere()
{
    const Reply list = askOne({"CLIENT", "LIST", "TYPE", "normal"});
    if (!isGiven(list, "+client|list")) {
        return;
    }
    for (std::string_view left = list.text; !left.empty();) {
        const auto line = left.substr(0, left.find('\n'));
        left.remove_prefix(std::min(left.size(), line.size() + 1));
        if (auto identity = identityOf(fieldOf(line, "name"))) {
            const auto age = secondsIn(fieldOf(line, "age"));
            const auto idle = secondsIn(fieldOf(line, "idle"));
            auto id = identity->clientId;
            auto& client = clients_
                               .try_emplace(std::move(id), Whereabouts{*std::move(identity),
                                                                       std::string(fieldOf(line, "addr")), age, idle})
                               .first->second;
            client.age = std::max(client.age, age);
            client.idle = std::min(client.idle, idle);
        }
    }
}

void Inspector::locate(std::vector<LockHolder>& holders) const
{
    for (auto& holder : holders) {
        const auto found = clients_.find(holder.clientId);
        if (found != clients_.end()) {
            place(holder, found->second.identity, found->second.address);
            holder.connectedFor = found->second.age;
            holder.silentFor = found->second.idle;
        }
    }
}

// --- Rounds ----------------------------------------------------------------------------------------------------------

MonitorProgress Inspector::round(std::string_view pattern, const LockMonitor::Page& page)
{
    readClients();
    MonitorProgress progress;
    const auto all = masters();
    for (const auto& at : all) {
        goTo(at);
        progress.keys += countKeys();
    }
    std::unordered_set<std::string> seen; // SCAN may give a key twice, and a key may move to another node
    for (const auto& at : all) {
        goTo(at);
        if (!roundHere(pattern, page, progress, seen)) {
            break;
        }
    }
    return progress;
}

/// @return whether to go on.
bool Inspector::roundHere(std::string_view pattern, const LockMonitor::Page& page, MonitorProgress& progress,
                          std::unordered_set<std::string>& seen)
{
    const Endpoint here = at_;
    const std::uint64_t before = progress.examined;
    const std::uint64_t keysHere = countKeys();
    std::string cursor = "0";
    do {
        goTo(here);
        auto keys = nextKeys(pattern, cursor);
        progress.examined += std::stoul(pageSize);
        auto locks = inspectEach(keys, progress);
        if (progress.unreadable > 0) {
            noteMissing("~" + std::string(pattern));
        }
        std::erase_if(locks, [&](const LockReport& lock) { return !seen.insert(lock.name).second; });
        for (auto& lock : locks) {
            locate(lock.holders);
        }
        if (cursor == "0" && keysHere > 0) {
            progress.examined = before + keysHere;
        }
        progress.locks += locks.size();
        if (!page(locks, progress)) {
            return false;
        }
    } while (cursor != "0");
    return true;
}

std::uint64_t Inspector::countKeys()
{
    const Reply reply = askOne({"DBSIZE"});
    return isGiven(reply, "+dbsize") ? numberIn(reply).value_or(0) : 0;
}

std::vector<std::string> Inspector::nextKeys(std::string_view pattern, std::string& cursor)
{
    std::vector<std::string> request{"SCAN", cursor, "MATCH", std::string(pattern), "COUNT", pageSize};
    if (filtersTypes_) {
        request.insert(request.end(), {"TYPE", "hash"});
    }
    Reply reply = askOne(request);
    if (reply.isError() && filtersTypes_ && reply.text.find("syntax") != std::string::npos) {
        filtersTypes_ = false; // an older server, or a fake of one
        return nextKeys(pattern, cursor);
    }
    if (reply.isError()) {
        throw InspectionFailed{classify(reply.text).error};
    }
    if (reply.elements.size() != 2 || reply.elements[0].text.empty()) {
        throw InspectionFailed{Errc::badReply};
    }
    cursor = std::move(reply.elements[0].text);
    std::vector<std::string> keys;
    for (auto& key : reply.elements[1].elements) {
        keys.push_back(std::move(key.text));
    }
    return keys;
}

// --- Locks -----------------------------------------------------------------------------------------------------------

std::vector<LockReport> Inspector::inspect(const std::vector<std::string>& names, MonitorProgress& progress)
{
    Pipeline requests;
    for (const auto& name : names) {
        requests.add({"HGET", name, "mode"}).add({"HSCAN", name, "0", "COUNT", pageSize}).add({"PTTL", name});
    }
    auto replies = ask(requests);
    std::vector<LockReport> locks;
    for (std::size_t i = 0; i < names.size(); ++i) {
        const LockFields fields{std::move(replies[3 * i]), std::move(replies[3 * i + 1]),
                                std::move(replies[3 * i + 2])};
        const Reason why = whyHidden(fields);
        if (why == Errc::permissionDenied) {
            ++progress.unreadable;
        } else if (auto lock = why == Reason() ? reportOf(names[i], fields) : std::nullopt) {
            locks.push_back(*std::move(lock));
        } else if (why == Errc::wrongType || !isGone(fields)) {
            ++progress.others;
        }
    }
    lookAround(locks);
    return locks;
}

/// The same, also for names that are just being moved to other nodes.
std::vector<LockReport> Inspector::inspectEach(const std::vector<std::string>& names, MonitorProgress& progress)
{
    const MonitorProgress before = progress;
    try {
        return inspect(names, progress);
    } catch (const Redirected&) {
        progress = before;
    }
    std::vector<LockReport> all;
    for (const auto& name : names) {
        auto locks = atOwnerOf(name, [&] { return inspect({name}, progress); });
        std::ranges::move(locks, std::back_inserter(all));
    }
    return all;
}

/// Without these commands no lock can be told from another hash; but an error may also mean that a key is of another
/// type, or not to be read.
Reason Inspector::whyHidden(const LockFields& fields) const
{
    for (const Reply* reply : {&fields.mode, &fields.page, &fields.timeToLive}) {
        const Reason why = reply->isError() ? classify(reply->text).error : Reason();
        if (why == Errc::wrongType || why == Reason(Cause::keyDenied)) {
            return why;
        }
        if (reply->isError()) {
            throw InspectionFailed{why};
        }
    }
    return {};
}

/// Throws what is known of a key that may not be read or is not a lock, unless it is gone.
void Inspector::refuse(const std::string& name, bool isReadable)
{
    if (!isReadable) {
        noteMissing("~" + name);
        throw InspectionFailed{Cause::keyDenied, "the user lacks ~" + printable(name) + "; grant it"};
    }
    const Reply type = askOne({"TYPE", name});
    if (type.text != "none") {
        const auto what = isGiven(type, "+type") ? "the key is a " + printable(type.text) + ", not a lock" : "";
        throw InspectionFailed{Errc::wrongType, what};
    }
}

void Inspector::lookAround(std::vector<LockReport>& locks)
{
    Pipeline requests;
    for (const auto& lock : locks) {
        requests.add({"EXISTS", prefixed(tokenPrefix, lock.name)})
            .add({"LLEN", prefixed(queuePrefix, lock.name)})
            .add({"PUBSUB", "NUMSUB", channelOf(lock)})
            .add({"PUBSUB", config_.cluster.empty() ? "NUMSUB" : "SHARDNUMSUB", channelOf(lock)});
    }
    const auto replies = ask(requests);
    for (std::size_t i = 0; i < locks.size(); ++i) {
        const auto& token = replies[4 * i];
        const auto& queue = replies[4 * i + 1];
        const auto& listeners = replies[4 * i + 2];
        const auto& sharded = replies[4 * i + 3];
        const bool isForeign = queue.isError() && classify(queue.text).error == Errc::wrongType;
        LockSurroundings around;
        if (isGiven(token, "+exists", std::string(tokenPrefix) + ":*")) {
            around.hasToken = numberIn(token).value_or(0) > 0;
        }
        if (!isForeign && isGiven(queue, "+llen", std::string(queuePrefix) + ":*")) {
            around.queued = numberIn(queue);
        }
        if (isGiven(listeners, "+pubsub|numsub") && listeners.elements.size() == 2) {
            around.listeners = numberIn(listeners.elements[1]);
            if (!config_.cluster.empty() && around.listeners && sharded.elements.size() == 2) {
                *around.listeners += numberIn(sharded.elements[1]).value_or(0);
            }
        }
        addSurroundings(locks[i], around);
    }
}

std::optional<LockReport> Inspector::find(std::string_view name)
{
    auto found = atOwnerOf(name, [&] { return findHere(name); });
    if (found) {
        readClients();
        locate(found->holders);
        locate(found->queue);
    }
    return found;
}

std::optional<LockReport> Inspector::findHere(std::string_view name)
{
    MonitorProgress progress;
    auto found = inspect({std::string(name)}, progress);
    if (progress.unreadable + progress.others > 0) {
        refuse(std::string(name), progress.unreadable == 0);
    }
    if (found.empty()) {
        return std::nullopt;
    }
    LockReport& lock = found.front();
    readOtherHolders(lock);
    readQueue(lock);
    return std::move(lock);
}

void Inspector::readOtherHolders(LockReport& lock)
{
    if (!lock.hasMoreHolders) {
        return;
    }
    std::vector<LockHolder> all;
    std::unordered_set<std::string> seen; // HSCAN may give a field twice
    std::string cursor = "0";
    do {
        LockReport part;
        const Reply page = askOne({"HSCAN", lock.name, cursor, "COUNT", pageSize});
        if (!appendHolders(part, page)) {
            return; // something else has come in the lock's place
        }
        for (auto& holder : part.holders) {
            if (seen.insert(holder.name + (holder.writes ? ":write" : "")).second) {
                all.push_back(std::move(holder));
            }
        }
        cursor = page.elements[0].text;
    } while (cursor != "0");
    lock.holders = std::move(all);
    lock.hasMoreHolders = false;
}

void Inspector::readQueue(LockReport& lock)
{
    if (lock.kind != ObjectKind::fairLock) {
        return;
    }
    const auto key = prefixed(queuePrefix, lock.name);
    for (std::size_t from = 0;; from += queuePage) {
        const Reply page = askOne({"LRANGE", key, std::to_string(from), std::to_string(from + queuePage - 1)});
        if (!isGiven(page, "+lrange", std::string(queuePrefix) + ":*")) {
            return;
        }
        for (const auto& element : page.elements) {
            if (auto waiter = holderNamed(element.text)) {
                lock.queue.push_back(*std::move(waiter));
            }
        }
        if (page.elements.size() < queuePage) {
            return;
        }
    }
}

} // namespace redislock::detail
