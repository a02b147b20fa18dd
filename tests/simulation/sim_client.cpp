#include "simulation/sim_client.hpp"

#include "redislock/detail/protocol/key_schema.hpp"
#include "simulation/loss_checker.hpp"
#include "simulation/operation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace redislock::simulation {

using detail::HoldLevels;

SimClient::SimClient(const World& world, std::shared_ptr<Host> host, const Config& config, std::size_t names,
                     std::uint64_t seed)
    : world_(world),
      host_(std::move(host)),
      config_(config),
      random_(seed),
      commands_(world.network, host_, Purpose::commands, config.commandTimeout, config.connectTimeout, random_),
      renewalConnection_(world.network, host_, Purpose::renewals,
                         renewalTimeout(config.watchdogTimeout, config.commandTimeout),
                         renewalTimeout(config.watchdogTimeout, config.commandTimeout), random_),
      subscriber_(world.network, host_, config.commandTimeout, config.commandTimeout, random_,
                  [this](std::size_t index, SimSubscriber::Table::Incoming::Kind kind) { onChannel(index, kind); })
{
    for (std::size_t i = 0; i < names; ++i) {
        names_.push_back(std::make_unique<NamedLock>());
        names_.back()->name = fmt::format("stock:{}", i);
        names_.back()->channel = detail::lockChannel(names_.back()->name);
        names_.back()->index = i;
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
    hold->holder = fmt::format("{}:{}", host_->name(), ++lastHolder_);
    hold->owner = owner;
    hold->command.hold = hold.get();
    return hold;
}

void SimClient::prepareLock(Call& call, std::chrono::milliseconds lease, std::uint32_t count, Situation situation)
{
    call.request.script = &detail::scripts::redisLockLock;
    call.request.name = call.hold->lock->name;
    call.request.arguments = {call.hold->holder, std::to_string(lease.count()), std::to_string(count)};
    call.request.number = nextRequest();
    call.count = count;
    call.situation = situation;
    call.mode = Call::Mode::awaited;
}

void SimClient::prepareUnlock(Call& call, std::chrono::milliseconds lease, std::uint32_t count)
{
    call.request.script = &detail::scripts::redisLockUnlock;
    call.request.name = call.hold->lock->name;
    call.request.arguments = {call.hold->holder, std::to_string(count), std::to_string(lease.count()),
                              call.hold->lock->channel};
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
        world_.checker.believes(hold.lock->name, hold.holder, trueTime(), host_->trueTime(hold.deadline));
    }
}

void SimClient::grant(Hold& hold, std::uint32_t level, const detail::AcquireResult& result)
{
    hold.levels.granted(level, result.validUntil);
    if (hold.phase == Hold::Phase::acquiring) {
        hold.grantedAt = host_->now();
        hold.lock->local.add(hold.shared_from_this());
    }
    hold.phase = Hold::Phase::held;
    hold.deadline = hold.levels.validUntil();
    hold.renewedAt = result.sentAt;
    watch(hold, result.sentAt);
    tellBelief(hold);
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

void SimClient::forEachSituation(const std::function<void(Situation, std::size_t name)>& tell) const
{
    for (const auto& named : names_) {
        for (const auto& hold : named->local.holds()) {
            if (hold->renewal.state() == detail::RenewMachine::State::sleeping) {
                tell(Situation::renewalSleeping, named->index);
            } else if (hold->renewal.state() == detail::RenewMachine::State::asking) {
                tell(Situation::renewalAsking, named->index);
            }
        }
    }
    for (const auto& weak : releasing_) {
        if (const auto hold = weak.lock()) {
            if (hold->release.state() == detail::ReleaseMachine::State::asking) {
                tell(Situation::releaseAsking, hold->lock->index);
            } else if (hold->release.state() == detail::ReleaseMachine::State::backingOff) {
                tell(Situation::releaseBackingOff, hold->lock->index);
            }
        }
    }
}

std::string SimClient::residue() const
{
    std::string left;
    for (const auto& named : names_) {
        if (!named->local.holds().empty() || !named->waiters.empty() || !named->oneShots.empty() || named->subscribed ||
            named->unansweredReleases != 0 || named->releaseWatchers != 0) {
            left += fmt::format(" {}: {} holds, {} waiters, {} releases;", named->name, named->local.holds().size(),
                                named->waiters.size() + named->oneShots.size(), named->unansweredReleases);
        }
    }
    if (!renewals_.empty() || !deadlines_.empty() || subscriber_.channels() != 0 || !commands_.idle()) {
        left += fmt::format(" {} renewals, {} deadlines, {} channels", renewals_.size(), deadlines_.size(),
                            subscriber_.channels());
    }
    return left;
}

} // namespace redislock::simulation
