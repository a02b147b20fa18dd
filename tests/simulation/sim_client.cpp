#include "simulation/sim_client.hpp"

#include "redislock/detail/protocol/key_schema.hpp"
#include "simulation/loss_checker.hpp"
#include "simulation/operation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace redislock::simulation {

using detail::HoldLevels;

std::string NamedLock::channel() const
{
    if (traits().channelPrefix.empty()) {
        return {};
    }
    const auto all = detail::prefixed(traits().channelPrefix, name);
    return traits().asking == detail::Asking::queue ? all + ":" : all;
}

SimClient::SimClient(const World& world, std::shared_ptr<Host> host, const Config& config,
                     const std::vector<View>& views, std::uint64_t seed)
    : world_(world),
      host_(std::move(host)),
      config_(config),
      random_(seed),
      commands_(world.network, host_, Purpose::commands, config.commandTimeout, config.connectTimeout, random_),
      renewalConnection_(world.network, host_, Purpose::renewals,
                         renewalTimeout(config.watchdogTimeout, config.commandTimeout),
                         renewalTimeout(config.watchdogTimeout, config.commandTimeout), random_),
      subscriber_(world.network, host_, config.commandTimeout, config.commandTimeout, random_,
                  [this](Listener listener, SimSubscriber::Table::Incoming::Kind kind, std::string_view) {
                      onChannel(listener, kind);
                  })
{
    for (const View& view : views) {
        names_.push_back(std::make_unique<NamedLock>(view, names_.size()));
    }
}

/// A process that is gone believes nothing.
SimClient::~SimClient()
{
    for (const auto& named : names_) {
        for (const auto& hold : named->local.holds()) {
            world_.checker.ends(named->name, hold->holder);
        }
    }
}

std::chrono::milliseconds SimClient::leaseTime(Lease lease) const noexcept
{
    return lease.isRenewed() ? config_.watchdogTimeout : lease.fixed();
}

detail::AcquireMachine::Settings SimClient::settingsFor(Wait wait, Lease lease) const noexcept
{
    detail::AcquireMachine::Settings settings;
    settings.lease = leaseTime(lease);
    settings.wait = wait;
    settings.pollInterval = config_.pollInterval;
    settings.commandTimeout = config_.commandTimeout;
    settings.unreachableAfter = config_.unreachableAfter;
    return settings;
}

std::shared_ptr<Hold> SimClient::takeHold(NamedLock& named, std::uint64_t owner)
{
    auto hold = std::make_shared<Hold>();
    hold->lock = &named;
    hold->id = ++lastHolder_;
    hold->holder = fmt::format("{}:{}{}", host_->name(), hold->id, named.traits().holderSuffix);
    hold->owner = owner;
    hold->command.hold = hold.get();
    return hold;
}

/// This thread's valid hold of the other half of a read/write lock; null without one.
Hold* SimClient::otherHalf(const NamedLock& named, std::uint64_t owner)
{
    for (const auto& other : names_) {
        if (other->name == named.name && other->kind != named.kind) {
            return validHold(*other, owner);
        }
    }
    return nullptr;
}

void SimClient::prepareLock(Call& call, std::chrono::milliseconds lease, std::uint32_t count, Situation situation)
{
    const detail::KindTraits& kind = call.hold->lock->traits();
    std::vector<std::string> arguments{call.hold->holder, std::to_string(lease.count()), std::to_string(count)};
    if (kind.keepsPlace) {
        arguments.push_back(std::to_string(count > 1 ? 0 : call.place.count()));
    }
    if (kind.asking == detail::Asking::queue) {
        arguments.push_back(call.hold->lock->channel());
    } else if (kind.asking == detail::Asking::each) {
        arguments.push_back(count > 1 ? std::string() : call.writer);
    }
    call.request.run(kind, &detail::KindTraits::lock, call.hold->lock->name, std::move(arguments));
    call.request.number = nextRequest();
    call.count = count;
    call.situation = situation;
    call.mode = Call::Mode::awaited;
}

void SimClient::prepareUnlock(Call& call, std::chrono::milliseconds lease, std::uint32_t count)
{
    const NamedLock& named = *call.hold->lock;
    call.request.run(named.traits(), &detail::KindTraits::unlock, named.name,
                     {call.hold->holder, std::to_string(count), std::to_string(lease.count()), named.channel()});
    call.request.number = nextRequest();
    call.count = count;
    call.situation = Situation::releaseAsking;
    call.mode = Call::Mode::awaited;
}

std::shared_ptr<Call> SimClient::takeCommand(Hold& hold)
{
    if (hold.commandTaken || hold.command.pending) {
        auto call = std::shared_ptr<Call>(new Call(), [keep = hold.shared_from_this()](Call* c) { delete c; });
        call->hold = &hold;
        return call;
    }
    hold.commandTaken = true;
    return {hold.shared_from_this(), &hold.command};
}

void SimClient::putBackCommand(const Call& call) noexcept
{
    if (&call == &call.hold->command) {
        call.hold->commandTaken = false;
    }
}

void SimClient::tellBelief(Hold& hold)
{
    if (hold.phase == Hold::Phase::held) {
        const bool isShared = hold.lock->traits().asking == detail::Asking::each;
        world_.checker.believes(
            {hold.lock->name, hold.holder, fmt::format("{}/{}", host_->name(), hold.owner), isShared}, trueTime(),
            host_->trueTime(hold.deadline));
    }
}

void SimClient::grant(Hold& hold, std::uint32_t level, const detail::AcquireResult& result)
{
    hold.levels.granted(level, result.validUntil);
    if (hold.phase == Hold::Phase::acquiring) {
        hold.grantedAt = host_->now();
        hold.lock->local.add(hold.shared_from_this());
    }
    if (hold.phase == Hold::Phase::acquiring) {
        hold.token = result.token;
    }
    hold.phase = Hold::Phase::held;
    hold.deadline = hold.levels.validUntil();
    hold.renewedAt = result.sentAt;
    watch(hold, result.sentAt);
    tellBelief(hold);
    world_.checker.expectToken(hold.holder, hold.token, result.token);
    world_.checker.expectCount(hold.lock->name, hold.holder, hold.levels.count(), trueTime());
}

Hold* SimClient::validHold(NamedLock& named, std::uint64_t owner)
{
    Hold* own = named.local.of(owner);
    if (own != nullptr && host_->now() >= own->validUntil()) {
        lose(*own, nullptr);
        own = nullptr;
    }
    return own;
}

void SimClient::forEachSituation(const std::function<void(Situation, const std::string& name)>& tell) const
{
    for (const auto& named : names_) {
        for (const auto& hold : named->local.holds()) {
            if (hold->renewal.state() == detail::RenewMachine::State::sleeping) {
                tell(Situation::renewalSleeping, named->name);
            } else if (hold->renewal.state() == detail::RenewMachine::State::asking) {
                tell(Situation::renewalAsking, named->name);
            }
        }
    }
    for (const auto& weak : releasing_) {
        if (const auto hold = weak.lock()) {
            if (hold->release.state() == detail::ReleaseMachine::State::asking) {
                tell(Situation::releaseAsking, hold->lock->name);
            } else if (hold->release.state() == detail::ReleaseMachine::State::backingOff) {
                tell(Situation::releaseBackingOff, hold->lock->name);
            }
        }
    }
}

std::string SimClient::residue() const
{
    std::string left;
    for (const auto& named : names_) {
        if (!named->local.holds().empty() || !named->waiters.empty() || !named->askers.empty() || named->subscribed ||
            named->releases.underWay() || named->releaseWatchers != 0) {
            left +=
                fmt::format(" {}: {} holds, {} waiters, {} releases;", named->name, named->local.holds().size(),
                            named->waiters.size() + named->askers.size(), named->releases.underWay() ? "some" : "no");
        }
    }
    if (!renewals_.empty() || !deadlines_.empty() || subscriber_.channels() != 0 || !commands_.idle()) {
        left += fmt::format(" {} renewals, {} deadlines, {} channels", renewals_.size(), deadlines_.size(),
                            subscriber_.channels());
    }
    return left;
}

} // namespace redislock::simulation
