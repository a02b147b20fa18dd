// What a core does when it hears that the server may be another one, or may have lost what it had.
#include "behaviour/recording_observer.hpp"
#include "core/core.hpp"
#include "unit/keeping_port.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace redislock::detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// Keeps all renewals, and tells the observer at once.
class NewsPort final : public KeepingPort {
public:
    explicit NewsPort(Observer& observer) : observer_(observer) {}

    bool submit(Lane lane, std::shared_ptr<Call> call, std::shared_ptr<Call> behind) override
    {
        if (auto renewal = std::dynamic_pointer_cast<RenewalCall>(call)) {
            renewals.push_back(renewal);
        }
        return KeepingPort::submit(lane, std::move(call), std::move(behind));
    }
    void tell(std::function<void(Observer&)> what) override { what(observer_); }

    std::vector<std::shared_ptr<RenewalCall>> renewals;

private:
    Observer& observer_;
};

bool isUnconfirmed(const HoldRef& hold)
{
    return hold->unconfirmed;
}

class News : public ::testing::Test {
protected:
    using Requests = std::vector<std::shared_ptr<RenewalCall>>;

    ~News() override
    {
        (void)core->close();
        dropRuns(*core, *port);
        port->renewals.clear(); // keep the holds, and these the port
        port->time += 1h;
    }

    HoldRef hold(const std::string& name, Lease lease = keepRenewing, LockKind kind = LockKind::redisLock)
    {
        HoldRef taken = core->takeHold(*NamedLock::of(port, *core, KindTraits::of(kind), name), 1, Lane::commands);
        grant(*taken, lease, port->time);
        return taken;
    }
    void grant(Hold& taken, Lease lease, TimePoint sentAt)
    {
        AcquireResult result;
        result.kind = AcquireResult::Kind::granted;
        result.sentAt = sentAt;
        result.validUntil = deadlineOf(sentAt, leaseTime(config, lease));
        core->grant(taken, taken.levels.add(lease, EndedBy::thread), result);
    }
    /// Time passes; the alarm goes off as it was set.
    Requests pass(milliseconds span)
    {
        const TimePoint until = port->time + span;
        while (port->alarmAt <= until) {
            port->time = std::max(port->time, std::exchange(port->alarmAt, TimePoint::max()));
            core->ring();
        }
        port->time = until;
        return std::exchange(port->renewals, {});
    }
    Requests afterNews()
    {
        core->unsettle();
        return pass(0ms);
    }
    static void answer(RenewalCall& call, char each = '1')
    {
        call.outcome.replied = true;
        call.reply.kind = Reply::Kind::text;
        call.reply.text.assign(call.items().size(), each);
        call.finished();
    }
    static void answer(const Requests& calls, char each = '1')
    {
        for (const auto& call : calls) {
            answer(*call, each);
        }
    }
    /// Each lease, and for how many holds it is sent.
    static std::map<milliseconds, std::size_t> inShort(const Requests& calls)
    {
        std::map<milliseconds, std::size_t> all;
        for (const auto& call : calls) {
            for (const auto& item : call->items()) {
                ++all[item.lease];
            }
        }
        return all;
    }
    /// What is sent for a hold that is only asked about: all that its caller believes in, and the allowance for drift.
    [[nodiscard]] milliseconds leftOf(const HoldRef& hold) const
    {
        const auto left = std::chrono::ceil<milliseconds>(hold->validUntil() - port->time);
        return left + driftOf(left);
    }

    [[nodiscard]] std::vector<LossReason> reasons(const char* what) const
    {
        std::vector<LossReason> all;
        for (const auto& each : told->of(what)) {
            all.push_back(each.reason);
        }
        return all;
    }

    const std::shared_ptr<test::RecordingObserver> told = std::make_shared<test::RecordingObserver>();
    Config config = [this] {
        Config observed;
        observed.observer = told;
        return observed;
    }();
    const std::shared_ptr<NewsPort> port = std::make_shared<NewsPort>(*told);
    const std::shared_ptr<Core> core = std::make_shared<Core>(*port, config, "client", 1);
};

TEST_F(News, AsksForAllHoldsInOneRequestForThoseWithAFixedLeaseWithWhatIsLeftOfIt)
{
    std::vector<HoldRef> holds;
    for (int i = 0; i < 30; ++i) {
        holds.push_back(hold("r" + std::to_string(i)));
        holds.push_back(hold("f" + std::to_string(i), 40s));
    }
    const auto deadline = holds.back()->validUntil();
    EXPECT_THAT(pass(1s), IsEmpty());
    const auto asked = afterNews();
    EXPECT_THAT(asked, SizeIs(1));
    EXPECT_THAT(inShort(asked), ElementsAre(std::pair(30'000ms, 30U), std::pair(leftOf(holds.back()), 30U)));
    EXPECT_LT(leftOf(holds.back()), 39s) << "what the server that granted it has left: nothing is prolonged there";
    answer(asked);
    EXPECT_THAT(pass(1s), IsEmpty());
    EXPECT_EQ(holds.back()->validUntil(), deadline);
    EXPECT_TRUE(std::ranges::none_of(holds, isUnconfirmed));
    EXPECT_EQ(told->count("renewed"), 30U);
    EXPECT_THAT(reasons("atRisk"), IsEmpty());
    EXPECT_THAT(inShort(pass(10s)), ElementsAre(std::pair(30'000ms, 30U))) << "as if nothing had happened";
}

TEST_F(News, MakesAnswersToWhatWasSentBeforeWorthNothing)
{
    const HoldRef renewed = hold("a");
    const auto before = pass(11s);
    ASSERT_THAT(inShort(before), ElementsAre(std::pair(30'000ms, 1U)));
    const auto after = (port->time += 1ms, afterNews());
    EXPECT_THAT(after, IsEmpty()) << "one request at a time";
    answer(before);
    EXPECT_TRUE(renewed->unconfirmed);
    const auto again = pass(0ms);
    ASSERT_THAT(again, SizeIs(1));
    answer(again);
    EXPECT_FALSE(renewed->unconfirmed);
}

TEST_F(News, AsksForAHoldWhoseGrantWasUnderWay)
{
    const auto sentAt = port->time;
    const HoldRef late = core->takeHold(*NamedLock::of(port, *core, KindTraits::redisLock, "a"), 1, Lane::commands);
    port->time += 1ms;
    EXPECT_THAT(afterNews(), IsEmpty());
    grant(*late, Lease(20s), sentAt);
    const auto asked = pass(0ms);
    EXPECT_THAT(inShort(asked), ElementsAre(std::pair(leftOf(late), 1U)));
    answer(asked, '0');
    EXPECT_THAT(reasons("lost"), ElementsAre(LossReason::gone));
}

TEST_F(News, OfNoHoldIsALossAtOnceHoweverLongTheLease)
{
    const HoldRef holds[] = {hold("a"), hold("b", 20min), hold("c", keepRenewing, LockKind::writeLock)};
    answer(afterNews(), '0');
    EXPECT_TRUE(std::ranges::all_of(holds, [](const auto& each) { return each->phase == Hold::Phase::lost; }));
    EXPECT_THAT(reasons("lost"), ElementsAre(LossReason::gone, LossReason::gone, LossReason::gone));
    EXPECT_THAT(pass(1h), IsEmpty());
}

TEST_F(News, WithoutAnAnswerIsARiskAfterATenthOfASecondUntilOneComes)
{
    const HoldRef holds[] = {hold("a"), hold("b", 20s, LockKind::readLock)};
    auto asked = afterNews();
    ASSERT_THAT(asked, SizeIs(2)) << "of two scripts";
    const HoldRef other = asked[1]->items().front().hold;
    pass(99ms);
    EXPECT_THAT(reasons("atRisk"), IsEmpty());
    answer(*asked[0]);
    pass(1ms);
    EXPECT_THAT(reasons("atRisk"), ElementsAre(LossReason::unconfirmed)) << "not of the one that was confirmed";
    EXPECT_TRUE(core->stopToken(*other, StopAt::atRisk).stop_requested());
    EXPECT_FALSE(core->stopToken(*other, StopAt::lost).stop_requested());
    answer(*asked[1]);
    EXPECT_FALSE(core->stopToken(*other, StopAt::atRisk).stop_requested());
    pass(1s);
    EXPECT_THAT(reasons("atRisk"), SizeIs(1));
}

TEST_F(News, IsActedOnOnceASecond)
{
    const HoldRef fixed = hold("a", 20s);
    answer(afterNews());
    port->time += 1ms;
    for (int i = 0; i < 5; ++i) {
        EXPECT_THAT(afterNews(), IsEmpty());
    }
    EXPECT_THAT(pass(998ms), IsEmpty());
    const auto second = pass(1ms);
    EXPECT_THAT(inShort(second), ElementsAre(std::pair(leftOf(fixed), 1U)));
    answer(second);
    EXPECT_THAT(pass(10s), IsEmpty());
}

TEST_F(News, AsksForAHoldThatIsNoLongerRenewedWithoutProlongingIt)
{
    config.maxHold = 30s;
    const HoldRef old = hold("a");
    for (int i = 0; i < 4; ++i) {
        answer(pass(10s));
    }
    ASSERT_EQ(told->count("heldTooLong"), 1U);
    const auto deadline = old->validUntil();
    const auto renewals = told->count("renewed");
    const auto asked = afterNews();
    EXPECT_THAT(inShort(asked), ElementsAre(std::pair(leftOf(old), 1U)));
    answer(asked);
    EXPECT_EQ(old->validUntil(), deadline);
    EXPECT_EQ(told->count("renewed"), renewals);
    EXPECT_EQ(told->count("heldTooLong"), 1U);
    EXPECT_THAT(pass(5s), IsEmpty());
}

TEST_F(News, IsListenedForOnceThereHaveBeenHoldsForASecond)
{
    for (int round = 0; round < 2; ++round) {
        const HoldRef fixed = hold("a", 20s);
        pass(999ms);
        EXPECT_FALSE(core->renewing.lasts());
        pass(1ms);
        EXPECT_TRUE(core->renewing.lasts());
        core->lose(*fixed, LossReason::gone);
        EXPECT_FALSE(core->renewing.lasts());
    }
}

TEST_F(News, SpreadsManyHoldsOverALittleTime)
{
    std::vector<HoldRef> holds;
    for (int i = 0; i < 10'000; ++i) {
        holds.push_back(hold("n" + std::to_string(i), i % 2 == 0 ? Lease(keepRenewing) : Lease(20s)));
    }
    const TimePoint began = port->time;
    auto asked = afterNews();
    std::size_t count = 0;
    std::size_t requests = 0;
    for (const TimePoint until = began + 400ms; port->time < until; asked = pass(1ms)) {
        std::size_t atOnce = 0;
        for (const auto& call : asked) {
            EXPECT_LE(call->items().size(), Renewing::mostAtOnce);
            atOnce += call->items().size();
            answer(*call);
        }
        EXPECT_LE(atOnce, 3 * Renewing::mostAtOnce);
        count += atOnce;
        requests += asked.size();
        EXPECT_LE(count, 200 + 10'000 * static_cast<std::size_t>((port->time - began) / 1ms + 3) / 300);
    }
    EXPECT_EQ(count, holds.size());
    EXPECT_LE(requests, 110U) << "one for each batch";
    EXPECT_TRUE(std::ranges::none_of(holds, isUnconfirmed));
    EXPECT_THAT(reasons("atRisk"), IsEmpty());
}

TEST_F(News, OfSomeSlotsConcernsTheHoldsOfTheirNamesAlone)
{
    config.cluster.emplace_back();
    const HoldRef a = hold("{a}1");
    const HoldRef same = hold("{a}2");
    const HoldRef b = hold("{b}1");
    EXPECT_THAT(pass(1s), IsEmpty());
    SlotSet slots;
    slots.set(slotOf("a"));
    core->unsettle(&slots);
    const auto asked = pass(0ms);
    ASSERT_THAT(asked, SizeIs(1));
    EXPECT_EQ(asked[0]->slot(), slotOf("a"));
    EXPECT_EQ(asked[0]->items().size(), 2U);
    EXPECT_TRUE(isUnconfirmed(a));
    EXPECT_FALSE(isUnconfirmed(b));
    answer(asked);
    slots.set(slotOf("b"));
    core->unsettle(&slots);
    const auto other = pass(100ms);
    ASSERT_THAT(other, SizeIs(1)) << "those of a slot once a second";
    EXPECT_EQ(other[0]->slot(), slotOf("b"));
    answer(other);
    core->unsettle(&slots);
    EXPECT_THAT(pass(100ms), IsEmpty());
    const auto later = pass(1s);
    EXPECT_THAT(later, SizeIs(2)) << "both slots";
    answer(later);
}

TEST_F(News, RenewsEachHoldOfASlotByItselfWhileTheSlotMoves)
{
    config.cluster.emplace_back();
    const HoldRef a = hold("{a}1");
    const HoldRef same = hold("{a}2");
    auto asked = pass(11s);
    ASSERT_THAT(asked, SizeIs(1));
    asked[0]->outcome.replied = true;
    asked[0]->reply.kind = Reply::Kind::error;
    asked[0]->reply.text = "TRYAGAIN Multiple keys request during rehashing of slot";
    asked[0]->finished();
    asked = pass(1s);
    ASSERT_THAT(asked, SizeIs(2));
    asked[0]->outcome = {false, {Failure::moved, Cause::redirected}};
    asked[0]->asks = true;
    asked[0]->finished();
    answer(*asked[1]);
    const auto again = pass(100ms);
    ASSERT_THAT(again, SizeIs(1));
    EXPECT_TRUE(again[0]->asks) << "where the slot is being moved to";
    answer(again);
    EXPECT_TRUE(std::ranges::none_of(std::vector{a, same}, isUnconfirmed));
}

} // namespace
} // namespace redislock::detail
