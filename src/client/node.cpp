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
/// A node of a cluster may say of each slot who has it.
constexpr ReplyLimits tableLimits{1UL << 20U, 16UL << 20U};

/// Tells of one connection.
std::function<void(bool, Reason)> reporter(const Node::Listener& listener, const char* purpose)
{
    return [listener, purpose, wasUp = false](bool up, Reason error) mutable {
        listener.report(purpose, up, error);
        if (!up) {
            listener.ended();
        } else if (std::exchange(wasUp, true)) {
            listener.madeAgain(nullptr);
        }
    };
}

} // namespace

Node::Node(boost::asio::io_context& io, const Config& config, const std::string& connectionName, LastErrors& lastErrors,
           const Listener& listener, Locator* place)
    : io_(io),
      madeAgain_(listener.madeAgain),
      connector(io, config, connectionName, lastErrors, listener.warned,
                place != nullptr ? ServerKind::node : ServerKind::master),
      commands(hooks(listener), config.commandTimeout, freshSeed(), {}, place != nullptr),
      renewals(
          io, connector, renewalTimeout(config.watchdogTimeout, config.commandTimeout), freshSeed(),
          reporter(listener, "renewals"), [this](const std::string& address) { demotedSoon(address); },
          place != nullptr, place != nullptr ? tableLimits : ReplyLimits()),
      subscriber(io, connector, config.commandTimeout, heartbeat, freshSeed(), reporter(listener, "notifications")),
      confirmations(
          io, connector, config.commandTimeout, freshSeed(), reporter(listener, "confirmations"),
          [this](const std::string& address) { demotedSoon(address); }, place != nullptr),
      sweepTimer_(io)
{
    if (config.sentinels) {
        sentinels_.emplace(io, config, connectionName, lastErrors, listener.warned, connector, [this] { moved(); });
        connector.locateBy(*sentinels_);
    }
    if (place != nullptr) {
        connector.locateBy(*place);
    }
    sweepTimer_.onRing([this] { sweep(); });
    renewals.lendTo(commands, [this] { sweepTimer_.set(BootClock::now()); });
}

/// What the connection of the calling threads needs from the client's thread.
ThreadLink::Background Node::hooks(const Listener& listener)
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
    hooks.refused = [this](const Reply& reply, const Call* of) { connector.noteReply(reply, of); };
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
    madeAgain_(nullptr); // the connections may not be needed otherwise
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

void Node::handOn(const Link::IsElsewhere& isElsewhere, bool leaves)
{
    commands.handOn(isElsewhere, leaves);
    renewals.handOn(isElsewhere, leaves);
    confirmations.handOn(isElsewhere, leaves);
    if (leaves) {
        subscriber.cut();
    }
    renewals.takeBack();
}

void Node::letGo()
{
    renewals.keep(false);
    handOn([](const Call&) { return true; }, true);
}

bool Node::keep(bool on)
{
    const bool mayBeUnheard = on && !renewals.isKept() && !renewals.isConnected();
    renewals.keep(on);
    return mayBeUnheard;
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
