#include "support/fault_proxy.hpp"

#include "redislock/testing/redis_server.hpp"
#include "support/fault_connection.hpp"
#include "support/fault_rules.hpp"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <ctime>
#include <list>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace redislock::test {
namespace {

using proxy::Clock;
using proxy::Connection;

sockaddr_in ipv4(const std::string& host, std::uint16_t port)
{
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) {
        throw std::invalid_argument("FaultProxy: not an IPv4 address: " + host);
    }
    return address;
}

const sockaddr* asSockaddr(const sockaddr_in& address) noexcept
{
    return reinterpret_cast<const sockaddr*>(&address);
}

void check(bool ok, const char* what)
{
    if (!ok) {
        throw std::system_error(errno, std::generic_category(), std::string("FaultProxy: ") + what);
    }
}

void sendAtOnce(int socket) noexcept
{
    const int on = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

} // namespace

Action Action::delay(std::chrono::milliseconds time)
{
    Action action(Kind::delay);
    action.time_ = time;
    return action;
}

Action Action::truncate(std::size_t count)
{
    Action action(Kind::truncate);
    action.count_ = count;
    return action;
}

Action Action::replace(std::string bytes)
{
    Action action(Kind::replace);
    action.bytes_ = std::move(bytes);
    return action;
}

Action Action::split(std::chrono::microseconds pace)
{
    Action action(Kind::split);
    action.time_ = pace;
    return action;
}

class FaultProxy::Engine {
public:
    explicit Engine(const sockaddr_in& upstream) : upstream_(upstream)
    {
        listen();
        thread_ = std::thread([this] { run(); });
    }

    ~Engine()
    {
        stop();
        connections_.clear();
        ::close(listener_);
        ::close(wake_);
    }

    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    std::uint16_t port() const noexcept { return port_.number(); }

    /// Runs @p function under the mutex, then wakes the thread so that it sees the change.
    template <class Function>
    auto change(Function function)
    {
        const std::lock_guard lock(mutex_);
        wake(); // the thread goes on when it gets the mutex
        return function();
    }

    template <class Function>
    auto look(Function function) const
    {
        const std::lock_guard lock(mutex_);
        return function();
    }

    template <class Predicate>
    bool await(std::chrono::milliseconds timeout, Predicate predicate) const
    {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, timeout, predicate);
    }

    void stop()
    {
        change([this] { stopping_ = true; });
        thread_.join();
    }

    void closeAll(Close how)
    {
        std::unique_lock lock(mutex_);
        closeAll_ = how;
        wake();
        changed_.wait(lock, [this] { return !closeAll_; });
    }

    void refuse()
    {
        change([this] {
            // Unlike a closed socket, a socket that was shut down keeps its port and stops listening at once.
            listening_ = false;
            ::shutdown(listener_, SHUT_RD);
        });
    }

    void accept()
    {
        change([this] {
            check(::listen(listener_, SOMAXCONN) == 0, "listen");
            listening_ = true;
        });
    }

    void resume()
    {
        change([this] {
            shared_.stalled = false;
            for (auto& connection : connections_) {
                connection.resume();
            }
        });
    }

    // Guarded by the mutex: use change(), look() and await().
    proxy::Shared shared_;
    sockaddr_in upstream_;
    sockaddr_in source_ = ipv4("0.0.0.0", 0); ///< any
    std::list<Connection> connections_;
    std::size_t accepted_ = 0;

private:
    void wake() const noexcept
    {
        const std::uint64_t one = 1;
        [[maybe_unused]] const auto ignored = ::write(wake_, &one, sizeof(one)); // fails only when it is awake anyway
    }

    void listen()
    {
        wake_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        check(wake_ >= 0 && listener_ >= 0, "socket");
        const int on = 1; // for accept(), while connections of the same port go on
        ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        // Not port 0: a socket keeps its port over refuse() and accept() only if the port was given by number.
        const auto address = ipv4("127.0.0.1", port());
        check(::bind(listener_, asSockaddr(address), sizeof(address)) == 0, "bind");
        check(::listen(listener_, SOMAXCONN) == 0, "listen");
    }

    void run()
    {
        std::unique_lock lock(mutex_);
        while (!stopping_) {
            const auto now = Clock::now();
            auto polled = toPoll(now);
            const auto timeout = untilDue(now);
            lock.unlock();
            ::ppoll(polled.data(), polled.size(), timeout ? &*timeout : nullptr, nullptr);
            lock.lock();
            std::uint64_t ignored = 0;
            while (::read(wake_, &ignored, sizeof(ignored)) > 0) {
            }
            acceptClients();
            transfer(polled);
            changed_.notify_all();
        }
    }

    /// The wake-up, the listener, then two entries for each connection.
    std::vector<pollfd> toPoll(Clock::time_point now) const
    {
        std::vector<pollfd> entries{{wake_, POLLIN, 0}, {listening_ ? listener_ : -1, POLLIN, 0}};
        for (const auto& connection : connections_) {
            entries.push_back(shared_.stalled ? pollfd{-1, 0, 0} : connection.clientPoll(now));
            entries.push_back(shared_.stalled ? pollfd{-1, 0, 0} : connection.serverPoll(now));
        }
        return entries;
    }

    /// How long poll() may sleep; empty: until something happens.
    std::optional<timespec> untilDue(Clock::time_point now) const
    {
        auto due = Clock::time_point::max();
        for (const auto& connection : connections_) {
            due = std::min(due, connection.nextDue(now));
        }
        if (shared_.stalled || due == Clock::time_point::max()) {
            return std::nullopt;
        }
        const auto left = std::chrono::nanoseconds(due - now).count();
        return timespec{left / 1'000'000'000, left % 1'000'000'000};
    }

    void acceptClients()
    {
        while (listening_) {
            const int client = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
            if (client < 0) {
                return;
            }
            const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
            sendAtOnce(client);
            sendAtOnce(server);
            // The first read reports a failure.
            static_cast<void>(::bind(server, asSockaddr(source_), sizeof(source_)));
            static_cast<void>(::connect(server, asSockaddr(upstream_), sizeof(upstream_)));
            connections_.emplace_back(shared_, ++accepted_, client, server);
        }
    }

    void transfer(const std::vector<pollfd>& polled)
    {
        if (closeAll_) {
            for (auto& connection : connections_) {
                connection.close(*closeAll_);
            }
            closeAll_.reset();
        }
        // Connections accepted after toPoll() come last and have no entries yet.
        auto connection = connections_.begin();
        for (std::size_t i = 2; i + 1 < polled.size() && !shared_.stalled; i += 2, ++connection) {
            if ((polled[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
                connection->readClient();
            }
            if ((polled[i + 1].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
                connection->readServer();
            }
            connection->flush(Clock::now());
        }
        connections_.remove_if([](const Connection& each) { return each.closed(); });
    }

    mutable std::mutex mutex_;
    mutable std::condition_variable changed_;
    bool stopping_ = false;
    bool listening_ = true;
    std::optional<Close> closeAll_;
    int listener_ = -1;
    int wake_ = -1;
    const testing::detail::ReservedPort port_ = testing::detail::ReservedPort::any();
    std::thread thread_;
};

FaultProxy::FaultProxy(const testing::RedisServer& server) : FaultProxy(server.host(), server.port())
{
    const auto url = server.url();
    const auto address = url.find(server.host() + ":");
    scheme_ = url.substr(0, address);
    options_ = url.substr(std::min(url.find('?', address), url.size()));
    if (server.tls()) {
        passBytes();
    }
}

FaultProxy::FaultProxy(const std::string& host, std::uint16_t port)
    : engine_(std::make_unique<Engine>(ipv4(host, port)))
{
}

FaultProxy::~FaultProxy() = default;

std::uint16_t FaultProxy::port() const noexcept
{
    return engine_->port();
}

std::string FaultProxy::url() const
{
    return scheme_ + host() + ":" + std::to_string(port()) + options_;
}

void FaultProxy::passBytes()
{
    engine_->change([&] { engine_->shared_.passesBytes = true; });
}

void FaultProxy::setUpstream(const std::string& host, std::uint16_t port)
{
    engine_->change([&, address = ipv4(host, port)] { engine_->upstream_ = address; });
}

void FaultProxy::connectFrom(const std::string& host)
{
    engine_->change([&, address = ipv4(host, 0)] { engine_->source_ = address; });
}

void FaultProxy::setUpstream(const testing::RedisServer& server)
{
    setUpstream(server.host(), server.port());
}

RuleId FaultProxy::add(Rule rule)
{
    return engine_->change([&] { return engine_->shared_.rules.add(std::move(rule)); });
}

RuleId FaultProxy::add(Match match, Action action, std::size_t limit)
{
    return add(Rule{std::move(match), std::move(action), limit});
}

void FaultProxy::remove(RuleId id)
{
    engine_->change([&] { engine_->shared_.rules.remove(id); });
}

void FaultProxy::clear()
{
    engine_->change([&] { engine_->shared_.rules.clear(); });
}

std::size_t FaultProxy::hits(RuleId id) const
{
    return engine_->look([&] { return engine_->shared_.rules.hits(id); });
}

bool FaultProxy::awaitHits(RuleId id, std::size_t count, std::chrono::milliseconds timeout) const
{
    return engine_->await(timeout, [&] { return engine_->shared_.rules.hits(id) >= count; });
}

namespace {

std::size_t countText(const std::deque<LoggedRequest>& log, std::string_view text)
{
    const auto hasText = [&](const LoggedRequest& request) {
        const auto& words = request.arguments;
        return proxy::isCommand(words, text) || std::any_of(words.begin() + 1, words.end(), [&](const auto& word) {
                   return word.find(text) != std::string::npos;
               });
    };
    return static_cast<std::size_t>(std::count_if(log.begin(), log.end(), hasText));
}

std::size_t countMatches(const std::deque<LoggedRequest>& log, const Match& match)
{
    const auto isMatch = [&](const LoggedRequest& request) { return proxy::matches(match, request.arguments); };
    return static_cast<std::size_t>(std::count_if(log.begin(), log.end(), isMatch));
}

} // namespace

std::size_t FaultProxy::requests(std::string_view text) const
{
    return engine_->look([&] { return countText(engine_->shared_.log, text); });
}

std::size_t FaultProxy::requests(const Match& match) const
{
    return engine_->look([&] { return countMatches(engine_->shared_.log, match); });
}

bool FaultProxy::awaitRequests(std::string_view text, std::size_t count, std::chrono::milliseconds timeout) const
{
    return engine_->await(timeout, [&] { return countText(engine_->shared_.log, text) >= count; });
}

bool FaultProxy::awaitRequests(const Match& match, std::size_t count, std::chrono::milliseconds timeout) const
{
    return engine_->await(timeout, [&] { return countMatches(engine_->shared_.log, match) >= count; });
}

std::vector<LoggedRequest> FaultProxy::requestLog() const
{
    return engine_->look([&] { return std::vector(engine_->shared_.log.begin(), engine_->shared_.log.end()); });
}

void FaultProxy::clearRequestLog()
{
    engine_->change([&] { engine_->shared_.log.clear(); });
}

void FaultProxy::closeAll(Close how)
{
    engine_->closeAll(how);
}

void FaultProxy::refuse()
{
    engine_->refuse();
}

void FaultProxy::accept()
{
    engine_->accept();
}

void FaultProxy::stall()
{
    engine_->change([&] { engine_->shared_.stalled = true; });
}

void FaultProxy::resume()
{
    engine_->resume();
}

std::size_t FaultProxy::connections() const
{
    return engine_->look([&] {
        const auto& all = engine_->connections_;
        const auto there = [](const Connection& connection) { return connection.clientIsThere(); };
        return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), there));
    });
}

std::size_t FaultProxy::accepted() const
{
    return engine_->look([&] { return engine_->accepted_; });
}

std::size_t FaultProxy::resets() const
{
    return engine_->look([&] { return engine_->shared_.resets; });
}

} // namespace redislock::test
