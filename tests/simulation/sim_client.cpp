#include "simulation/sim_client.hpp"

#include "redislock/detail/logic/lease.hpp"
#include "simulation/loss_checker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace redislock::simulation {

using detail::HoldCall;

namespace {

Config observedBy(Config config, Observer& observer)
{
    config.observer = std::shared_ptr<Observer>(std::shared_ptr<void>(), &observer);
    return config;
}

} // namespace

SimClient::Owner SimClient::make(const World& world, std::shared_ptr<Host> host, const Config& config,
                                 const std::vector<View>& views, std::uint64_t seed)
{
    const std::shared_ptr<SimClient> client(new SimClient(world, std::move(host), config, seed),
                                            [](SimClient* c) { delete c; });
    client->self_ = client;
    for (const View& view : views) {
        auto named = std::make_shared<NamedLock>(client, client->core_, view.kind, view.name);
        (void)client->core_.knownOrAdd(*named);
        client->names_.push_back(std::move(named));
    }
    return Owner(client.get());
}

SimClient::SimClient(const World& world, std::shared_ptr<Host> host, const Config& config, std::uint64_t seed)
    : world_(world),
      host_(std::move(host)),
      config_(observedBy(config, *this)),
      random_(seed),
      commands_(world.network, host_, Purpose::commands, config.commandTimeout, config.connectTimeout, random_,
                lastRequest_, [this](detail::Call& call) { wake(call); }),
      background_(world.network, host_, Purpose::renewals,
                  renewalTimeout(config.watchdogTimeout, config.commandTimeout),
                  renewalTimeout(config.watchdogTimeout, config.commandTimeout), random_, lastRequest_),
      subscriber_(world.network, host_, config.commandTimeout, config.commandTimeout, random_),
      core_(*this, config_, host_->name(), random_.next())
{
}

void SimClient::End::operator()(SimClient* client) const
{
    const auto self = std::exchange(client->self_, nullptr); // what it knows may be the last to know it
    client->observe();
    for (const auto& [holder, belief] : std::exchange(client->beliefs_, {})) {
        client->world_.checker.ends(belief.name, holder);
    }
    client->commands_.clear();
    client->background_.clear();
    client->core_.close();
    client->names_.clear();
}

// --- What it believes --------------------------------------------------------------------------------------------------

void SimClient::observe()
{
    if (self_ == nullptr) {
        return;
    }
    for (const auto& holder : std::exchange(renewals_, {})) {
        world_.checker.renews(holder);
    }
    for (const Loss& loss : std::exchange(losses_, {})) {
        judge(loss);
    }
    std::map<std::string, Belief> before;
    before.swap(beliefs_);
    for (const auto& named : names_) {
        for (const auto& hold : named->local.holds()) {
            if (hold->phase != Hold::Phase::held) {
                continue;
            }
            const auto holder = holderOf(*hold);
            const auto until = hold->validUntil();
            const auto known = before.extract(holder);
            if (known.empty() || known.mapped().until != until) {
                const bool isShared = named->traits().asking == detail::Asking::each;
                world_.checker.believes(
                    {named->name, holder, fmt::format("{}/{}", host_->name(), hold->owner), isShared}, trueTime(),
                    host_->trueTime(until));
            }
            beliefs_.insert({holder, {named->name, until}});
        }
    }
    for (const auto& [holder, belief] : before) {
        world_.checker.ends(belief.name, holder);
    }
}

void SimClient::expectGranted(const detail::Acquired& acquired)
{
    observe();
    const Hold& hold = *acquired.hold;
    const auto holder = holderOf(hold);
    const auto first = tokens_.try_emplace(holder, acquired.token).first;
    world_.checker.expectToken(holder, first->second, acquired.token);
    world_.checker.expectCount(hold.lock->name, holder, hold.levels.count(), trueTime());
}

/// Told in the middle of what ends the hold, which is still among those of its name. It cannot throw: what follows is for observe().
void SimClient::lost(const LockEvent& event) noexcept
{
    for (const auto& named : names_) {
        for (const auto& hold : named->local.holds()) {
            if (hold->phase != Hold::Phase::lost || holderOf(*hold) != event.holder) {
                continue; // not that one, or its outer levels were over and it is given back
            }
            const TimePoint deadline{TimePoint::duration(hold->deadline.load())};
            const auto lease = config_.watchdogTimeout;
            losses_.push_back(
                {.end = {.holder = std::string(event.holder),
                         .lease = lease,
                         .commandTimeout = config_.commandTimeout,
                         .renewedAt = deadline - (detail::deadlineOf(TimePoint{}, lease) - TimePoint{}),
                         .deadline = deadline},
                 .isEarly = now() < deadline,
                 .isRenewed = hold->levels.isRenewed() && hold->renewal.state() != detail::RenewMachine::State::idle});
        }
    }
}

/// One that its time took from it was renewed as long as that was possible.
void SimClient::judge(const Loss& loss)
{
    world_.trace(host_->name(), "lost {}{}", loss.end.holder, loss.isEarly ? ", as the server says" : "");
    if (loss.isEarly) {
        world_.checker.toldGone(loss.end.holder, "the server");
    } else if (loss.isRenewed) { // otherwise it is not, or not yet: the level that asks for it is being acquired
        expectNoChance(loss.end, *host_, lastTrouble);
    }
}

// --- detail::Port ------------------------------------------------------------------------------------------------------

bool SimClient::submit(detail::Lane lane, std::shared_ptr<detail::Call> call, std::shared_ptr<detail::Call> behind)
{
    note(call);
    (lane == detail::Lane::commands ? commands_ : background_).enqueue(std::move(call), std::move(behind));
    return true;
}

/// What no thread waits for.
void SimClient::note(const std::shared_ptr<detail::Call>& call)
{
    const auto about = std::dynamic_pointer_cast<HoldCall>(call);
    if (about == nullptr || about->mode != detail::Call::Mode::detached) {
        return;
    }
    if (about->verb() == HoldCall::Verb::renew) {
        renewals_.push_back(holderOf(about->hold()));
    } else if (about->verb() == HoldCall::Verb::unlock) {
        std::erase_if(releases_, [&](const Release& each) { return each.call.expired() || each.call.lock() == about; });
        releases_.push_back({about, about->hold().lock->name});
    }
}

void SimClient::fail(const std::shared_ptr<detail::Call>& call, Errc why)
{
    if (call->pending && commands_.withdraw(*call)) {
        call->outcome = {.fault = {detail::Failure::fatal, why}};
        wake(*call);
    }
}

void SimClient::want(std::string channel, detail::ChannelListener listener)
{
    host_->post(
        [this, channel = std::move(channel), listener = std::move(listener)] { subscriber_.want(channel, listener); });
}

void SimClient::drop(std::string channel, detail::ChannelListener listener)
{
    host_->post(
        [this, channel = std::move(channel), listener = std::move(listener)] { subscriber_.drop(channel, listener); });
}

void SimClient::wake(detail::Call& call) noexcept
{
    if (const auto found = sleepers_.find(&call); found != sleepers_.end()) {
        found->second->wake();
    }
}

void SimClient::alarm(TimePoint when) noexcept
{
    host_->at(when, [this, number = ++alarms_] {
        if (number == alarms_) {
            core_.renewing.ring();
            observe();
        }
    });
}

void SimClient::after(TimePoint when, std::function<void()> what)
{
    host_->at(when, [this, what = std::move(what)] {
        what();
        observe();
    });
}

void SimClient::post(std::function<void()> what)
{
    host_->post(std::move(what));
}

void SimClient::tell(std::function<void(Observer&)> what)
{
    what(*this);
}

void SimClient::finished(HoldCall& call) noexcept
{
    const auto end = core_.finished(call);
    if (end.asking != nullptr) {
        end.asking->answered(call);
    }
    // what is found cannot be thrown in here
    world_.scheduler.at(trueTime(), [weak = weak_from_this()] {
        if (const auto self = weak.lock()) {
            self->observe();
        }
    });
}

void SimClient::heard(NamedLock& lock, HolderId of, detail::Notice notice)
{
    core_.waking.heard(lock, of, notice);
    observe();
}

// --- For the world -----------------------------------------------------------------------------------------------------

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
    for (const auto& [weak, name] : releases_) {
        const auto call = weak.lock();
        if (call == nullptr || call->verb() != HoldCall::Verb::unlock) {
            continue;
        }
        if (call->release.state() == detail::ReleaseMachine::State::asking) {
            tell(Situation::releaseAsking, name);
        } else if (call->release.state() == detail::ReleaseMachine::State::backingOff) {
            tell(Situation::releaseBackingOff, name);
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
    if (core_.renewing.watched() != 0 || core_.isAnythingUnderWay() || subscriber_.channels() != 0 ||
        !commands_.idle() || !background_.idle()) {
        left += fmt::format(" {} deadlines, {} channels, {}", core_.renewing.watched(), subscriber_.channels(),
                            core_.isAnythingUnderWay() ? "something under way" : "nothing under way");
    }
    return left;
}

} // namespace redislock::simulation
