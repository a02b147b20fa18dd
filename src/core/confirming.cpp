#include "core/confirming.hpp"

#include "core/core.hpp"
#include "link/request/call.hpp"
#include "wire/assert.hpp"
#include "wire/command.hpp"

#include <algorithm>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace redislock::detail {

/// The first half of a packet.
class Confirming::Renewal final : public RenewalCall {
public:
    using RenewalCall::RenewalCall;

    void finished() noexcept override { items().front().hold->lock->core->confirming.ended(*this); }

    std::vector<Confirmation*> questions; ///< in the order of the holds; null: withdrawn
    bool hasEnded = false;
};

/// The second half.
class Confirming::WaitCall final : public Call {
public:
    WaitCall(std::shared_ptr<Renewal> of, Durability durability, std::chrono::milliseconds time)
        : renewal(std::move(of)), wanted(durability)
    {
        serverWaits = time;
        mode = Mode::detached;
    }

    void encode(std::string& out, Form /*by*/) override
    {
        const bool onDisk = wanted.level == Durability::Level::disk;
        appendHeader(out, '*', onDisk ? 4 : 3);
        appendArgument(out, onDisk ? std::string_view("WAITAOF") : std::string_view("WAIT"));
        if (onDisk) {
            appendArgument(out, std::int64_t{1}); // the master's own file
        }
        appendArgument(out, std::int64_t{wanted.count});
        appendArgument(out, std::int64_t{serverWaits.count()});
    }
    [[nodiscard]] bool isScript() const noexcept override { return false; }
    [[nodiscard]] Slot slot() const noexcept override { return renewal->slot(); }
    [[nodiscard]] bool isWanted(TimePoint now) const noexcept override { return renewal->isWanted(now); }
    void finished() noexcept override { renewal->items().front().hold->lock->core->confirming.ended(*this); }

    /// Whether so many have what was written before. Nothing for a reply that the command cannot give.
    [[nodiscard]] std::optional<bool> isEnough() const noexcept
    {
        if (wanted.level == Durability::Level::replicas) {
            return reply.kind == Reply::Kind::integer ? std::optional(reply.integer >= wanted.count) : std::nullopt;
        }
        const auto& numbers = reply.elements;
        const auto isNumber = [](const Reply& each) { return each.kind == Reply::Kind::integer; };
        if (reply.kind != Reply::Kind::array || numbers.size() != 2 || !std::ranges::all_of(numbers, isNumber)) {
            return std::nullopt;
        }
        return numbers[0].integer >= 1 && numbers[1].integer >= wanted.count;
    }

    const std::shared_ptr<Renewal> renewal;
    const Durability wanted;
    bool hasEnded = false;
    bool isAfterRenewal = false; ///< the renewal was answered before; otherwise it was sent once more, as a text
};

void Confirming::ask(Confirmation& confirmation)
{
    REDISLOCK_ASSERT(confirmation.state == Confirmation::State::none);
    waiting_.push_back(&confirmation);
    confirmation.state = Confirmation::State::asked;
    if (!isUnderWay(confirmation.hold->lock->slot) && !std::exchange(isSending_, true)) {
        core_.port.post([this] { // by then others have asked too
            const Inside lock(core_.port);
            isSending_ = false;
            send();
        });
    }
}

void Confirming::withdraw(Confirmation& confirmation) noexcept
{
    if (confirmation.state != Confirmation::State::asked) {
        return;
    }
    confirmation.state = Confirmation::State::none;
    std::erase(waiting_, &confirmation);
    for (const auto& each : underWay_) {
        std::ranges::replace(each->renewal->questions, &confirmation, nullptr);
    }
}

bool Confirming::isUnderWay(Slot slot) const noexcept
{
    return std::ranges::any_of(underWay_, [&](const auto& each) { return each->slot() == slot; });
}

void Confirming::send()
{
    const auto isFree = [this](const Confirmation* each) { return !isUnderWay(each->hold->lock->slot); };
    for (auto next = std::ranges::find_if(waiting_, isFree); next != waiting_.end();
         next = std::ranges::find_if(waiting_, isFree)) {
        underWay_.reserve(underWay_.size() + 1);
        const auto wait = underWay_.emplace_back(packet(**next, core_.port.now()));
        bool isSent = false;
        try {
            isSent = core_.port.submit(Lane::confirming, wait->renewal, wait);
        } catch (const std::bad_alloc&) { // the clocks of its operations end their wait; later ones do not wait for it
            underWay_.pop_back();
            throw;
        }
        if (!isSent) {
            underWay_.pop_back();
            for (Confirmation* each : wait->renewal->questions) {
                judge(*each, {Next::refuse, Errc::shutdown}, core_.port.now());
            }
        }
    }
}

/// A packet: with the grant that waits longest, those of the same slot, durability and script.
std::shared_ptr<Confirming::WaitCall> Confirming::packet(const Confirmation& first, TimePoint now)
{
    const ScriptUse& use = first.hold->lock->traits().renew;
    const auto isLike = [&](const Confirmation* each) {
        const Durability& wanted = each->wanted;
        return wanted.level == first.wanted.level && wanted.count == first.wanted.count &&
               each->hold->lock->traits().renew.script == use.script &&
               each->hold->lock->slot == first.hold->lock->slot;
    };
    const std::size_t most = now < oneByOneUntil_ ? 1 : std::min(Renewing::mostAtOnce, waiting_.size());
    const auto renewal = std::make_shared<Renewal>(use, most);
    renewal->questions.reserve(most);
    TimePoint until = TimePoint::max();
    for (Confirmation* each : waiting_) {
        if (renewal->questions.size() < most && isLike(each)) {
            renewal->add(*each->hold, each->lease);
            renewal->questions.push_back(each);
            until = std::min(until, each->until);
        }
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now);
    auto wait = std::make_shared<WaitCall>(renewal, first.wanted, std::max(left, std::chrono::milliseconds(1)));
    std::erase_if(waiting_, [&](Confirmation* each) {
        return std::ranges::find(renewal->questions, each) != renewal->questions.end();
    });
    return wait;
}

void Confirming::ended(Renewal& renewal) noexcept
{
    std::shared_ptr<WaitCall> over; // destroyed without the mutex: its holds may keep the client alive
    const Inside lock(core_.port);
    renewal.hasEnded = true;
    over = takeEnded(renewal);
    if (over != nullptr) {
        judge(*over, core_.port.now());
    }
}

/// The packet of that renewal, which is no longer under way. @return null: its other half is
std::shared_ptr<Confirming::WaitCall> Confirming::takeEnded(const Renewal& renewal) noexcept
{
    const auto found = std::ranges::find(underWay_, &renewal, [](const auto& each) { return each->renewal.get(); });
    if (found == underWay_.end() || !(*found)->hasEnded || !renewal.hasEnded) {
        return nullptr;
    }
    const auto wait = std::move(*found);
    underWay_.erase(found);
    return wait;
}

void Confirming::ended(WaitCall& wait) noexcept
{
    std::shared_ptr<WaitCall> over;
    const Inside lock(core_.port);
    wait.hasEnded = true;
    wait.isAfterRenewal = wait.renewal->hasEnded;
    over = takeEnded(*wait.renewal);
    if (over != nullptr) {
        judge(wait, core_.port.now());
    }
}

/// Both halves of a packet have ended: answers the questions, or asks them again, and sends the next packet.
void Confirming::judge(const WaitCall& wait, TimePoint now) noexcept
{
    const Verdict all = verdictOn(wait, now);
    const auto& items = wait.renewal->items();
    const auto asked = static_cast<std::size_t>(std::ranges::count_if(items, &RenewalCall::Item::asked));
    std::size_t which = 0;
    try {
        for (std::size_t i = 0; i < items.size(); ++i) {
            if (Confirmation* const question = wait.renewal->questions[i]; question != nullptr) {
                question->renewedAt = wait.renewal->sentAt;
                const auto renewed = RenewAnswer::from(wait.renewal->reply, asked, which);
                judge(*question, all.next == Next::judgeEach ? verdictOn(*question, wait, renewed) : all, now);
            }
            which += items[i].asked ? 1 : 0;
        }
        send();
    } catch (const std::bad_alloc&) { // the clocks of the others end their wait
        return;
    }
}

/// What the answers mean for all holds of a packet.
Confirming::Verdict Confirming::verdictOn(const WaitCall& wait, TimePoint now) noexcept
{
    const auto refusal = [](const Fault& fault) {
        const bool isFinal = fault.failure == Failure::fatal || fault == unknownRefusal;
        return Verdict{Next::refuse, isFinal ? fault.error : Reason(Errc::notDurable)};
    };
    const Renewal& renewal = *wait.renewal;
    if (wait.outcome.replied && wait.reply.isError()) { // whatever became of the renewal
        return refusal(classify(wait.reply.text));
    }
    for (const Call* half : {static_cast<const Call*>(&renewal), static_cast<const Call*>(&wait)}) {
        if (!half->outcome.replied) {
            const Fault& fault = half->outcome.fault;
            const bool isBeingMoved = half->asks; // a fail-over of the node that had the slot would lose the grant
            return fault.failure == Failure::fatal ? refusal(fault)
                   : isBeingMoved                  ? Verdict{Next::refuse, Errc::notDurable}
                                                   : Verdict{Next::askAgain};
        }
    }
    if (!wait.isAfterRenewal) {
        return {Next::askAgain};
    }
    if (renewal.reply.isError()) {
        const Fault fault = classify(renewal.reply.text);
        const bool mayBeOfOne = fault.failure == Failure::fatal || fault == unknownRefusal;
        if (mayBeOfOne && renewal.items().size() > 1) {
            oneByOneUntil_ = now + core_.config.watchdogTimeout;
            return {Next::askAgain};
        }
        return refusal(fault);
    }
    return {Next::judgeEach};
}

/// What the answers mean for one hold. @param renewed its answer to the renewal
Confirming::Verdict Confirming::verdictOn(const Confirmation& confirmation, const WaitCall& wait,
                                          const std::optional<RenewAnswer>& renewed) noexcept
{
    const auto isEnough = wait.isEnough();
    if (!renewed || !isEnough) {
        core_.port.unfit(isEnough ? wait.renewal->reply : wait.reply);
        return {Next::refuse, Errc::badReply};
    }
    if (renewed->kind != RenewAnswer::Kind::renewed) {
        return {Next::refuse, renewed->kind == RenewAnswer::Kind::wrongType ? Errc::wrongType : Errc::notDurable};
    }
    if (*isEnough) {
        return {Next::confirm};
    }
    // the time of the packet was that of the most hurried one
    const bool hadItsTime = confirmation.until <= wait.sentAt + wait.serverWaits;
    return hadItsTime ? Verdict{Next::refuse, Errc::notDurable} : Verdict{Next::askAgain};
}

void Confirming::judge(Confirmation& confirmation, const Verdict& verdict, TimePoint now)
{
    using State = Confirmation::State;
    if (verdict.next == Next::askAgain && now < confirmation.until) {
        return waiting_.push_back(&confirmation);
    }
    confirmation.state = verdict.next == Next::confirm ? State::confirmed : State::refused;
    confirmation.why = verdict.next == Next::refuse ? verdict.why : Reason(Errc::notDurable);
    wakeOperation(core_.port, *confirmation.call, confirmation.run);
}

} // namespace redislock::detail
