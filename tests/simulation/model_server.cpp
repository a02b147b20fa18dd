#include "simulation/model_server.hpp"

#include <algorithm>
#include <utility>

namespace redislock::simulation {

namespace {

Keyspace::Words keysOf(const Request& request)
{
    Keyspace::Words keys{request.name};
    keys.insert(keys.end(), request.otherKeys.begin(), request.otherKeys.end());
    return keys;
}

} // namespace

ModelServer::ModelServer(LuaRuntime& lua, std::function<void(LinkId, const Reply&)> push)
    : lua_(lua), push_(std::move(push))
{
    keyspace_.publish = [this](const std::string& channel, const std::string& message) {
        return publish(channel, message);
    };
    keyspace_.listeners = [this](const std::string& channel) {
        const auto found = listeners_.find(channel);
        return found == listeners_.end() ? 0 : static_cast<std::int64_t>(found->second.size());
    };
}

Reply ModelServer::execute(const Request& request, LinkId from, std::int64_t nowMs)
{
    if (!wrote) {
        return run(request, from, nowMs);
    }
    const auto before = keyspace_.keys();
    Reply reply = run(request, from, nowMs);
    if (keyspace_.touched() || keyspace_.keys() != before) {
        wrote(from);
    }
    return reply;
}

Reply ModelServer::run(const Request& request, LinkId from, std::int64_t nowMs)
{
    switch (request.verb) {
    case Request::Verb::script:
        return runScript(request, nowMs);
    case Request::Verb::del: {
        auto words = keysOf(request);
        words.insert(words.begin(), "DEL");
        keyspace_.beginScript(nowMs);
        return keyspace_.execute(words);
    }
    case Request::Verb::subscribe: {
        auto& listeners = listeners_[request.name];
        if (std::find(listeners.begin(), listeners.end(), from) == listeners.end()) {
            listeners.push_back(from);
        }
        return subscription("subscribe", request.name, from);
    }
    case Request::Verb::unsubscribe:
        std::erase(listeners_[request.name], from);
        return subscription("unsubscribe", request.name, from);
    case Request::Verb::ping:
    case Request::Verb::wait:
        break;
    }
    return {Reply::Kind::status, 0, "PONG", {}};
}

Reply ModelServer::runScript(const Request& request, std::int64_t nowMs)
{
    if (request.byText) {
        scripts_.insert(request.script->sha1);
    } else if (!scripts_.contains(request.script->sha1)) {
        return {Reply::Kind::error, 0, "NOSCRIPT No matching script. Please use EVAL.", {}};
    }
    keyspace_.beginScript(nowMs);
    return lua_.run(*request.script, keyspace_, keysOf(request), request.arguments);
}

Reply ModelServer::subscription(const char* what, const std::string& channel, LinkId link) const
{
    std::int64_t count = 0;
    for (const auto& [name, listeners] : listeners_) {
        count += std::count(listeners.begin(), listeners.end(), link);
    }
    Reply reply{Reply::Kind::array, 0, {}, {}};
    reply.elements.push_back({Reply::Kind::text, 0, what, {}});
    reply.elements.push_back({Reply::Kind::text, 0, channel, {}});
    reply.elements.push_back({Reply::Kind::integer, count, {}, {}});
    return reply;
}

std::int64_t ModelServer::publish(const std::string& channel, const std::string& message)
{
    const auto found = listeners_.find(channel);
    if (found == listeners_.end()) {
        return 0;
    }
    Reply push{Reply::Kind::array, 0, {}, {}};
    for (const auto& part : {std::string("message"), channel, message}) {
        push.elements.push_back({Reply::Kind::text, 0, part, {}});
    }
    for (const LinkId link : found->second) {
        push_(link, push);
    }
    return static_cast<std::int64_t>(found->second.size());
}

void ModelServer::disconnected(LinkId link)
{
    for (auto& [channel, listeners] : listeners_) {
        std::erase(listeners, link);
    }
}

void ModelServer::restart(Data data)
{
    scripts_.clear();
    listeners_.clear();
    if (data == Data::lost) {
        keyspace_.clear();
    }
}

void ModelServer::takeOver(ModelServer& other)
{
    keyspace_.load(other.keyspace_.keys());
    keyspace_.refusal = Refusal::none;
    scripts_ = other.scripts_;
    listeners_ = std::exchange(other.listeners_, {});
}

std::size_t ModelServer::subscriptions() const noexcept
{
    std::size_t count = 0;
    for (const auto& [channel, listeners] : listeners_) {
        count += listeners.size();
    }
    return count;
}

} // namespace redislock::simulation
