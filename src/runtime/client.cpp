#include "redislock/client.hpp"

#include "redislock/error.hpp"
#include "runtime/engine.hpp"

#include <utility>

namespace redislock {

namespace {

constexpr std::size_t maxNameBytes = 1024;

std::shared_ptr<detail::NamedLock> stateOf(const std::shared_ptr<detail::Engine>& engine, std::string name)
{
    if (name.empty() || name.size() > maxNameBytes) {
        throw LockError(Errc::invalidArgument, "lock name of " + std::to_string(name.size()) +
                                                   " bytes: a name has 1 to " + std::to_string(maxNameBytes));
    }
    return engine->named(std::move(name));
}

} // namespace

Client::Client(std::string_view url) : Client(Config::fromUrl(url)) {}

Client::Client(Config config) : engine_(detail::Engine::make(std::move(config))) {}

Client& Client::operator=(Client&& other) noexcept
{
    if (this != &other) {
        if (engine_) {
            shutdown();
        }
        engine_ = std::move(other.engine_);
    }
    return *this;
}

Client::~Client()
{
    if (engine_) {
        shutdown();
    }
}

RedisLock Client::getLock(std::string name) const
{
    return RedisLock(stateOf(engine_, std::move(name)));
}

std::function<RedisLock(std::string)> Client::locks() const
{
    return [engine = engine_](std::string name) { return RedisLock(stateOf(engine, std::move(name))); };
}

void Client::connect() const
{
    std::error_code ec;
    connect(ec);
    if (ec) {
        throw LockError(ec, "connect to " + config().endpoint.str());
    }
}

void Client::connect(std::error_code& ec) const
{
    engine_->connect(ec);
}

bool Client::shutdown(std::chrono::milliseconds timeout) noexcept
{
    return engine_->shutdown(timeout);
}

const std::string& Client::id() const noexcept
{
    return engine_->id();
}

const Config& Client::config() const noexcept
{
    return engine_->config();
}

} // namespace redislock
