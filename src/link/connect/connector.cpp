#include "link/connect/connector.hpp"

#include "link/connect/attempt.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace redislock::detail {

namespace asio = boost::asio;

Connector::Connector(asio::io_context& io, const Config& config, const std::string& name, LastErrors& lastErrors,
                     std::function<void(std::string what)> warn, ServerKind kind)
    : io_(io),
      endpoint_(config.endpoint),
      handshake_{config.username,
                 config.password,
                 config.database,
                 name,
                 kind,
                 kind == ServerKind::node && config.notifications == Notifications::sharded},
      timeout_(config.connectTimeout),
      lastErrors_(lastErrors),
      warn_(std::move(warn)),
      tlsTimer_(io)
{
    if (config.credentials) {
        credentials_.emplace(io, config, lastErrors);
    }
    if (config.tls) {
        tls_.emplace(*config.tls, warn_);
    }
}

/// The TLS session of a new connection to a server; null: there is to be none.
std::unique_ptr<TlsSession> Connector::secured(const Endpoint& server)
{
    if (!tls_) {
        return nullptr;
    }
    tls_->look(BootClock::now());
    if (tls_->lookAgainAt() != TimePoint::max()) {
        tlsTimer_.expires_after(tls_->lookAgainAt() - BootClock::now());
        tlsTimer_.async_wait([this](boost::system::error_code ec) {
            if (!ec) {
                tls_->look(BootClock::now());
            }
        });
    }
    return tls_->context().session(locator_ != nullptr ? locator_->tlsName(server) : server.host);
}

void Connector::connect(const void* whose, TimePoint notBefore, std::chrono::milliseconds limit,
                        std::function<void(Connected)> handler, std::function<void(Cause)> reached)
{
    asio::post(io_, [this, whose, notBefore, limit, handler = std::move(handler), reached = std::move(reached)]() {
        if (closed_) {
            return;
        }
        std::shared_ptr<Attempt> attempt;
        try {
            attempt = std::make_shared<Attempt>(whose, *this, handler, reached);
            for (const auto& each : attempts_) {
                if (const auto earlier = each.lock()) {
                    earlier->giveWay(whose);
                }
            }
            start(attempt, notBefore, limit);
        } catch (...) { // out of memory: nobody else would report the attempt's end
            attempt ? attempt->fail() : handler({Stream{}, Fault{}});
            throw;
        }
    });
}

void Connector::start(const std::shared_ptr<Attempt>& attempt, TimePoint notBefore, std::chrono::milliseconds limit)
{
    std::erase_if(attempts_, [](const auto& past) { return past.expired(); });
    attempts_.push_back(attempt);
    attempt->start(notBefore, limit, std::min(limit, timeout_));
}

void Connector::probe(const Endpoint& at, std::function<void(const std::optional<Fault>&)> handler)
{
    const auto ended = [handler = std::move(handler)](const Connected& result) { handler(result.fault); };
    const auto attempt = std::make_shared<Attempt>(
        nullptr, *this, ended, [](Cause) {}, at);
    try {
        start(attempt, BootClock::now(), timeout_);
    } catch (...) { // out of memory
        attempt->fail();
        throw;
    }
}

void Connector::beginAgain()
{
    const auto attempts = attempts_; // those that begin are no part of it
    for (const auto& each : attempts) {
        const auto attempt = each.lock();
        if (const auto again = attempt ? attempt->beginAgain() : nullptr) {
            start(again, BootClock::now(), again->limit());
        }
    }
}

void Connector::hurry(const void* whose, TimePoint when)
{
    asio::post(io_, [this, whose, when] {
        for (const auto& each : attempts_) {
            if (const auto attempt = each.lock()) {
                attempt->hurry(whose, when);
            }
        }
    });
}

void Connector::warnOnce(const char* what)
{
    if (!std::exchange(hasWarned_, true)) {
        warn_(endpoint_.str() + ": " + what);
    }
}

void Connector::recover()
{
    endAttempts(&Attempt::fail);
}

void Connector::close()
{
    closed_ = true;
    tlsTimer_.cancel();
    if (credentials_) {
        credentials_->close();
    }
    endAttempts(&Attempt::cancel);
}

void Connector::endAttempts(void (Attempt::*how)())
{
    while (!attempts_.empty()) {
        const auto running = attempts_.back().lock();
        attempts_.pop_back();
        if (running != nullptr) {
            (running.get()->*how)();
        }
    }
}

} // namespace redislock::detail
