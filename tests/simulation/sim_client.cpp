#include "simulation/sim_client.hpp"

#include "core/machine/lock_answer.hpp"
#include "core/renewal_call.hpp"
#include "simulation/loss_checker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace redislock::simulation {

using detail::HoldCall;

namespace {

constexpr std::chrono::seconds heartbeat{2};

Config observedBy(Config config, Observer& observer)
{
    config.observer = std::shared_ptr<Observer>(std::shared_ptr<void>(), &observer);
    return config;
}

/// Most clients that use locks have ids of a version that tells them from Redisson's.
std::string idOf(const Host& host, bool usesLocks, std::uint64_t seed)
{
    return usesLocks && seed % 4 != 0 ? fmt::format("{:_<14}8", host.name()) : host.name();
}

} // namespace

SimClient::Owner SimClient::make(const World& world, std::shared_ptr<Host> host, const Config& config,
                                 const std::vector<View>& views, std::uint64_t seed)
{
    auto id = idOf(*host, !views.empty(), seed);
    const std::shared_ptr<SimClient> client(new SimClient(world, std::move(host), config, std::move(id), seed),
                                            [](SimClient* c) { delete c; });
    client->self_ = client;
    for (const View& view : views) {
        client->names_.push_back(NamedLock::of(client, client->core_, KindTraits::of(view.kind), view.name));
    }
    return Owner(client.get());
}

SimClient::SimClient(const World& world, std::shared_ptr<Host> host, const Config& config, std::string id,
                     std::uint64_t seed)
    : world_(world),
      host_(std::move(host)),
      config_(observedBy(config, *this)),
      commands_(way(Purpose::commands, config.connectTimeout), config.commandTimeout, seed, lastRequest_),
      background_(way(Purpose::renewals, detail::renewalTimeout(config.watchdogTimeout, config.commandTimeout)),
                  detail::renewalTimeout(config.watchdogTimeout, config.commandTimeout), seed + 1, lastRequest_),
      confirming_(way(Purpose::confirmations, config.connectTimeout), config.commandTimeout, seed + 4, lastRequest_),
      subscriber_(way(Purpose::notifications, config.connectTimeout), config.commandTimeout, heartbeat, seed + 2),
      core_(*this, config_, std::move(id), seed + 3)
{
}

Carrier::Way SimClient::way(Purpose purpose, TimePoint::duration connectTimeout)
{
    return {world_.network,
            host_,
            purpose,
            connectTimeout,
            [this] { wakeAnswered(); },
            [this] {
                post([this] {
                    const detail::Inside inside(*this);
                    core_.unsettle();
                });
            }};
}

/// Wakes the threads whose calls have ended.
void SimClient::wakeAnswered()
{
    for (const auto& [call, thread] : sleepers_) {
        if ((call->signal.waitUntil(TimePoint{}) & detail::Signal::done) != 0) {
            thread->wake();
        }
    }
}

void SimClient::End::operator()(SimClient* client) const
{
    const auto self = std::exchange(client->self_, nullptr); // the reference may be the last one
    client->observe();
    for (const auto& [holder, belief] : std::exchange(client->beliefs_, {})) {
        client->world_.checker.ends(belief.name, holder);
    }
    while (detail::BackgroundRun* const run = client->core_.runs.popDue(TimePoint::max())) {
        run->drop();
    }
    client->commands_.drop();
    client->background_.drop();
    client->confirming_.drop();
    client->core_.close();
    client->names_.clear();
    client->ended_.clear();
    client->counters_.clear();
    for (const auto& call : std::exchange(client->unawaited_, {})) {
        call->requester = nullptr; // nobody learns of its end
    }
}

std::vector<std::string> SimClient::close()
{
    auto held = lost_;
    for (const auto& [holder, belief] : beliefs_) {
        held.push_back(holder);
    }
    ended_ = core_.close();
    observe();
    return held;
}

std::shared_ptr<detail::NamedCounter> SimClient::counter(detail::CounterKind kind, const std::string& name)
{
    auto counter = detail::NamedCounter::of(shared_from_this(), core_, kind, name);
    if (std::ranges::find(counters_, counter) == counters_.end()) {
        counters_.push_back(counter);
    }
    return counter;
}

// --- Beliefs -----------------------------------------------------------------------------------------------

void SimClient::observe()
{
    if (self_ == nullptr) {
        return;
    }
    for (const auto& holder : std::exchange(renewals_, {})) {
        world_.checker.renews(holder);
    }
    for (const auto& [name, holder, requests] : std::exchange(passed_, {})) {
        world_.trace(host_->name(), "passes {} on", holder);
        world_.checker.passes(name, holder, requests, trueTime());
        stops_.erase(holder); // of the hold that ended
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
                const auto thread = hold->owner == 0 ? holder : fmt::format("{}/{}", host_->name(), hold->owner);
                world_.checker.believes({named->name, holder, thread, isShared}, trueTime(), host_->trueTime(until));
            }
            beliefs_.insert({holder, {named->name, until}});
        }
    }
    for (const auto& [holder, belief] : before) {
        world_.checker.ends(belief.name, holder);
        stops_.erase(holder);
    }
}

void SimClient::expectGranted(const detail::Acquired& acquired, const Durability& asked)
{
    observe();
    const Hold& hold = *acquired.hold;
    const auto holder = holderOf(hold);
    const auto first = tokens_.try_emplace(holder, acquired.token).first;
    world_.checker.expectToken(holder, first->second, acquired.token);
    world_.checker.expectCount(hold.lock->name, holder, hold.levels.count(), trueTime());
    if (hold.levels.leaseOf(acquired.level, std::chrono::milliseconds(-1)).count() < 0) {
        renewed_.insert(holder);
    }
    if (world_.told) {
        world_.told(hold, holder, asked);
    }
    constexpr std::uint64_t some = 4;
    if (static_cast<std::uint64_t>(hold.id) % some == 0) {
        stops_.try_emplace(holder, core_.stopToken(*acquired.hold, StopAt::lost));
    }
}

/// Called in the middle of the hold's end, when the hold is still in the list of its name. It must not throw: observe()
/// does the rest.
void SimClient::lost(const LockEvent& event, LossReason /*reason*/) noexcept
{
    for (const auto& named : names_) {
        for (const auto& hold : named->local.holds()) {
            if (hold->phase != Hold::Phase::lost || holderOf(*hold) != event.holder) {
                continue; // another hold, or its outer levels were over and it is given back
            }
            const TimePoint deadline{TimePoint::duration(hold->deadline.load())};
            const auto lease = config_.watchdogTimeout;
            const auto stop = stops_.find(holderOf(*hold));
            losses_.push_back({.end = {.holder = std::string(event.holder),
                                       .lease = lease,
                                       .commandTimeout = config_.commandTimeout,
                                       .renewedAt = deadline - (detail::deadlineOf(TimePoint{}, lease) - TimePoint{}),
                                       .deadline = deadline},
                               .told = stop == stops_.end() ? std::stop_token() : stop->second,
                               .isEarly = now() < deadline,
                               .isRenewed = renewed_.contains(holderOf(*hold)) && hold->levels.isRenewed() &&
                                            hold->renewal.state() != detail::RenewMachine::State::idle});
        }
    }
}

void SimClient::released(const LockEvent& event, Unlocked how, std::chrono::nanoseconds /*held*/) noexcept
{
    if (how == Unlocked::passedOn) {
        passed_.push_back({std::string(event.name), std::string(event.holder), lastRequest_});
    }
}

/// If a hold was lost because its time was over, it must have been renewed as long as that was possible.
void SimClient::judge(const Loss& loss)
{
    world_.trace(host_->name(), "lost {}{}", loss.end.holder, loss.isEarly ? ", before its time" : "");
    if (loss.told.stop_possible()) {
        host_->post([holder = loss.end.holder, told = loss.told] { // after the task that stops the token
            if (!told.stop_requested()) {
                throw Violation("T1 lost signal", holder + " was lost, and its stop token does not say so");
            }
        });
    }
    lost_.push_back(loss.end.holder);
    if (core_.isClosing()) {
        return;
    }
    if (loss.isEarly) {
        world_.checker.toldGone(loss.end.holder, "the server");
    } else if (loss.isRenewed) { // otherwise it is not renewed yet: its renewed level is being acquired
        expectNoChance(loss.end, *host_, lastTrouble);
    }
}

// --- detail::Port --------------------------------------------------------------------------------------------------

/// A violation cannot be thrown out of this function.
void SimClient::exit() noexcept
{
    if (self_ != nullptr && !std::exchange(observesSoon_, true)) {
        world_.scheduler.at(trueTime(), [weak = weak_from_this()] {
            if (const auto self = weak.lock()) {
                self->observesSoon_ = false;
                self->observe();
            }
        });
    }
}

bool SimClient::submit(detail::Lane lane, std::shared_ptr<detail::Call> call, std::shared_ptr<detail::Call> behind)
{
    if (self_ == nullptr) {
        return false;
    }
    if (lane != detail::Lane::confirming) { // which asks about holds that may be lost meanwhile
        note(call);
    }
    connection(lane).enqueue(std::move(call), std::move(behind));
    return true;
}

void SimClient::submitIfConnected(std::vector<std::shared_ptr<detail::Call>> calls)
{
    for (RequestCarrier* const connection : {&commands_, &background_}) {
        if (self_ != nullptr && connection->link().takesRequests()) {
            for (auto& call : calls) {
                connection->enqueue(std::move(call));
            }
            return;
        }
    }
}

/// Notes a call for which no thread waits.
void SimClient::note(const std::shared_ptr<detail::Call>& call)
{
    if (const auto asked = std::dynamic_pointer_cast<detail::ScriptCall>(call)) {
        if (asked->mode == detail::Call::Mode::detached && std::ranges::find(unawaited_, asked) == unawaited_.end()) {
            judgeUnawaited();
            unawaited_.push_back(asked);
        }
        return;
    }
    if (const auto* renewals = dynamic_cast<const detail::RenewalCall*>(call.get())) {
        for (const auto& item : renewals->items()) {
            renewals_.push_back(holderOf(*item.hold));
        }
        return;
    }
    const auto about = std::dynamic_pointer_cast<HoldCall>(call);
    if (about == nullptr || about->mode != detail::Call::Mode::detached) {
        return;
    }
    if (about->verb() == HoldCall::Verb::unlock) {
        std::erase_if(releases_, [&](const Release& each) { return each.call.expired() || each.call.lock() == about; });
        releases_.push_back({about, about->hold().lock->name});
    }
}

/// Removes the calls that are over.
void SimClient::judgeUnawaited()
{
    std::erase_if(unawaited_, [this](const auto& call) {
        const bool isOver = call.use_count() == 1;
        gaveUp_ = gaveUp_ || (isOver && (!call->outcome.replied || call->reply.isError()));
        return isOver;
    });
}

bool SimClient::gaveUp()
{
    judgeUnawaited();
    return gaveUp_;
}

void SimClient::fail(const std::shared_ptr<detail::Call>& call, Errc why)
{
    if (self_ != nullptr) {
        detail::FinishedCalls finished;
        commands_.link().fail(call, why, finished);
    }
    wakeAnswered();
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
    for (const auto& each : sleepers_) {
        if (each.call == &call) {
            each.thread->wake();
        }
    }
}

void SimClient::alarm(TimePoint when) noexcept
{
    host_->at(when, [this, number = ++alarms_] {
        if (number == alarms_) {
            core_.ring();
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

// --- For the world -------------------------------------------------------------------------------------------------

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
        if (call != nullptr && !call->isIdle() && call->verb() == HoldCall::Verb::unlock) {
            tell(call->pending ? Situation::releaseAsking : Situation::releaseBackingOff, name);
        }
    }
    for (const auto& call : unawaited_) {
        if (call.use_count() > 1) {
            tell(call->pending ? Situation::releaseAsking : Situation::releaseBackingOff, {});
        }
    }
}

bool SimClient::pausesNotDurable() const
{
    bool found = false;
    for (const auto& named : names_) {
        named->askers.forEach([&](const Waiter& waiter) { found = found || waiter.comesBack; });
    }
    return found;
}

std::string SimClient::residue() const
{
    std::string left;
    for (const auto& named : names_) {
        if (!named->local.holds().empty() || !named->waiters.empty() || !named->askers.empty() ||
            named->listening != detail::Listening::no || named->releases.underWay()) {
            left +=
                fmt::format(" {}: {} holds, {} waiters, {} releases;", named->name, named->local.holds().size(),
                            named->waiters.size() + named->askers.size(), named->releases.underWay() ? "some" : "no");
        }
    }
    for (const auto& counter : counters_) {
        if (!counter->waiters().empty() || counter->listening() != detail::Listening::no ||
            counter->releases().underWay()) {
            left += fmt::format(" {}: {} waiters, {} releases;", counter->name, counter->waiters().size(),
                                counter->releases().underWay() ? "some" : "no");
        }
    }
    if (core_.renewing.watched() != 0 || core_.isAnythingUnderWay() || subscriber_.channels() != 0 ||
        !commands_.link().queue().empty() || !background_.link().queue().empty() || isConfirming()) {
        left += fmt::format(" {} deadlines, {} channels, {}", core_.renewing.watched(), subscriber_.channels(),
                            core_.isAnythingUnderWay() ? "something under way" : "nothing under way");
    }
    return left;
}

} // namespace redislock::simulation
