#include "client/node.hpp"

#include "core/renewing.hpp"
#include "values/system/process.hpp"

#include <boost/asio/post.hpp>

#include <chrono>
#include <utility>

namespace redislock::detail {

namespace {

constexpr std::chrono::milliseconds sweepPause{2};
constexpr std::chrono::milliseconds heartbeat{2000};

/// Tells of one connection.
std::function<void(bool, Reason)> reporter(const Node::Listener& listener, const char* purpose)
{
    return [listener, purpose, wasUp = false](bool up, Reason error) mutable {
        listener.report(purpose, up, error);
        if (!up) {
            listener.ended();
        } else if (std::exchange(wasUp, true)) {
            listener.madeAgain();
        }
    };
}

} // namespace

Node::Node(boost::asio::io_context& io, const Config& config, const std::string& connectionName, LastErrors& lastErrors,
           const Listener& listener)
    : io_(io),
      madeAgain_(listener.madeAgain),
      connector(io, config, connectionName, lastErrors, listener.warned),
      commands(hooks(lastErrors, listener), config.commandTimeout, freshSeed()),
      renewals(io, connector, renewalTimeout(config.watchdogTimeout, config.commandTimeout), freshSeed(),
               reporter(listener, "renewals"), [this](const std::string& address) { demotedSoon(address); }),
      subscriber(io, connector, config.commandTimeout, heartbeat, freshSeed(), reporter(listener, "notifications")),
      confirmations(io, connector, config.commandTimeout, freshSeed(), reporter(listener, "confirmations"),
                    [this](const std::string& address) { demotedSoon(address); }),
      sweepTimer_(io)
{
    if (config.sentinels) {
        sentinels_.emplace(io, config, connectionName, lastErrors, listener.warned, connector, [this] { moved(); });
        connector.locateBy(*sentinels_);
    }
    sweepTimer_.onRing([this] { sweep(); });
    renewals.lendTo(commands, [this] { sweepTimer_.set(BootClock::now()); });
}

/// What the connection of the calling threads needs from the client's thread.
ThreadLink::Background Node::hooks(LastErrors& lastErrors, const Listener& listener)
{
    ThreadLink::Background hooks;
    hooks.connect = [this](TimePoint notBefore) {
        connector.connect(
            this, notBefore, std::chrono::milliseconds::max(),
            [this](Connected result) { connected(std::move(result)); },
            [this](Cause stage) { commands.reached(stage); });
    };
    hooks.replace = [this](TimePoint notBefore) {
        connector.connect(this, notBefore, std::chrono::milliseconds::max(), [this](Connected result) {
            commands.replacement(std::move(result.stream), result.replaceAt);
        });
    };
    hooks.hurry = [this](TimePoint soonest) { connector.hurry(this, soonest); };
    hooks.demoted = [this](const std::string& address) { demotedSoon(address); };
    hooks.sweepSoon = [this] { sweepSoon(); };
    hooks.refused = [&lastErrors](const Reply& reply) { lastErrors.noteReply(reply); };
    hooks.report = reporter(listener, "commands");
    return hooks;
}

void Node::connected(Connected result)
{
    if (result.fault) {
        if (auto given = renewals.give(); !given.fault) {
            result = std::move(given);
        }
    }
    if (result.fault) {
        return commands.connectFailed(*result.fault);
    }
    commands.connected(std::move(result.stream), result.replaceAt);
}

/// The server has lost its office: nothing more is sent to it, and what it still answers counts no more.
void Node::moved()
{
    commands.cut();
    renewals.cut();
    subscriber.cut();
    confirmations.cut();
    connector.beginAgain();
    madeAgain_(); // the connections may not be needed otherwise
}

/// One of the connections has learned that its server is no master any more. Any thread.
void Node::demotedSoon(const std::string& address)
{
    boost::asio::post(io_, [this, address] {
        commands.leave(address);
        renewals.leave(address);
        subscriber.leave(address);
        confirmations.leave(address);
    });
}

void Node::sweepSoon() noexcept
{
    sweepTimer_.set(BootClock::now() + sweepPause);
}

void Node::sweep()
{
    if (commands.sweep()) {
        sweepSoon();
    }
    renewals.takeBack();
}

void Node::recover()
{
    connector.recover();
    if (sentinels_) {
        sentinels_->recover();
    }
    renewals.recover();
    subscriber.recover();
    confirmations.recover();
    sweepTimer_.wait();
}

void Node::close()
{
    if (sentinels_) {
        sentinels_->close();
    }
    connector.close();
    renewals.close();
    subscriber.close();
    confirmations.close();
    sweepTimer_.close();
}

} // namespace redislock::detail
