#include "link/request/signal.hpp"
#include "link/yield_budget.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace redislock::detail {
namespace {

using namespace std::chrono_literals;

const TimePoint past{};

TEST(Signal, ATimeInThePastReturnsAtOnce)
{
    Signal signal;
    EXPECT_EQ(signal.waitUntil(past), 0U);
    EXPECT_EQ(signal.waitUntil(BootClock::now()), 0U);
}

TEST(Signal, SleepsUntilItsTimeWhenNobodyRaisesIt)
{
    Signal signal;
    const TimePoint until = BootClock::now() + 1ms;
    EXPECT_EQ(signal.waitUntil(until), 0U);
    EXPECT_GE(BootClock::now(), until);
}

TEST(Signal, WhatWasRaisedBeforeIsSeenWhateverTheTime)
{
    for (const TimePoint until : {past, TimePoint::max()}) {
        Signal signal;
        EXPECT_FALSE(signal.raise(Signal::look)) << "nobody sleeps: nobody needs to be woken";
        EXPECT_EQ(signal.waitUntil(until), Signal::look);
    }
}

TEST(Signal, LookIsClearedByWaiting)
{
    Signal signal;
    signal.notify(Signal::look);
    signal.notify(Signal::look);
    EXPECT_EQ(signal.waitUntil(past), Signal::look);
    EXPECT_EQ(signal.waitUntil(past), 0U);
}

TEST(Signal, DoneStaysUntilItIsTakenBack)
{
    Signal signal;
    signal.notify(Signal::done);
    EXPECT_EQ(signal.waitUntil(past), Signal::done);
    EXPECT_EQ(signal.waitUntil(TimePoint::max()), Signal::done);
    signal.notify(Signal::look);
    EXPECT_EQ(signal.waitUntil(TimePoint::max()), Signal::look | Signal::done);
    EXPECT_EQ(signal.waitUntil(TimePoint::max()), Signal::done);
    signal.clearDone();
    EXPECT_EQ(signal.waitUntil(past), 0U);
}

TEST(Signal, TakingDoneBackLeavesLook)
{
    Signal signal;
    signal.notify(Signal::done);
    signal.notify(Signal::look);
    signal.clearDone();
    EXPECT_EQ(signal.waitUntil(past), Signal::look);
}

TEST(Signal, AfterATimeOutNobodyIsThoughtAsleep)
{
    Signal signal;
    EXPECT_EQ(signal.waitUntil(BootClock::now() + 100us), 0U);
    EXPECT_FALSE(signal.raise(Signal::look));
}

TEST(Signal, TwoThreadsPlayPingPong)
{
    constexpr int rounds = 10'000;
    Signal ping;
    Signal pong;
    int ball = 0; // guarded by the signals alone
    std::thread other([&] {
        for (int i = 0; i < rounds; ++i) {
            EXPECT_EQ(ping.waitUntil(TimePoint::max()), Signal::look);
            ++ball;
            pong.notify(Signal::look);
        }
    });
    for (int i = 0; i < rounds; ++i) {
        EXPECT_EQ(ball, i);
        ping.notify(Signal::look);
        EXPECT_EQ(pong.waitUntil(TimePoint::max()), Signal::look);
    }
    other.join();
    EXPECT_EQ(ball, rounds);
}

TEST(Signal, NoRaiseOfManyThreadsIsMissed)
{
    constexpr int threads = 4;
    constexpr int rounds = 2000;
    Signal signal;
    std::atomic<int> raised{0};
    std::vector<std::thread> raisers;
    for (int t = 0; t < threads; ++t) {
        raisers.emplace_back([&] {
            for (int i = 0; i < rounds; ++i) {
                raised.fetch_add(1);
                signal.notify(Signal::look);
            }
        });
    }
    while (raised.load() < threads * rounds) {
        signal.waitUntil(TimePoint::max());
    }
    for (auto& raiser : raisers) {
        raiser.join();
    }
    signal.waitUntil(past);
    EXPECT_EQ(signal.waitUntil(past), 0U);
}

TEST(Signal, YieldingTakesNoReasonAway)
{
    Signal signal;
    signal.yieldAwhile(0ns); // comes back though nothing was raised
    signal.yieldAwhile(200us);
    signal.notify(Signal::look);
    signal.yieldAwhile(1h);
    EXPECT_EQ(signal.waitUntil(past), Signal::look);
}

TEST(YieldBudget, LongYieldsAreLeftOutWhenShortOnesDoNotPayForThem)
{
    YieldBudget budget;
    for (int i = 0; i < YieldBudget::most / YieldBudget::price; ++i) { // what is saved at the start
        ASSERT_TRUE(budget.take()) << i;
        budget.took(YieldBudget::slice + 1ns);
    }
    for (int round = 0; round < 2; ++round) {
        ASSERT_TRUE(budget.take()) << round;
        budget.took(YieldBudget::slice + 1ns);
        for (int i = 0; i < YieldBudget::without; ++i) {
            ASSERT_FALSE(budget.take()) << round << ' ' << i;
        }
    }
    EXPECT_TRUE(budget.take());
}

TEST(YieldBudget, ShortYieldsPayForALongOneNowAndThen)
{
    YieldBudget budget;
    for (int longOnes = 0; longOnes < 100; ++longOnes) {
        for (int i = 0; i < YieldBudget::price; ++i) {
            ASSERT_TRUE(budget.take()) << longOnes << ' ' << i;
            budget.took(YieldBudget::slice);
        }
        ASSERT_TRUE(budget.take()) << longOnes;
        budget.took(YieldBudget::slice + 1ns);
    }
    EXPECT_TRUE(budget.take());
}

TEST(Signal, ASleeperWithATimeOutIsWokenBeforeIt)
{
    Signal signal;
    Signal asleep;
    std::thread sleeper([&] {
        asleep.notify(Signal::done);
        EXPECT_EQ(signal.waitUntil(BootClock::now() + 1h), Signal::done);
    });
    asleep.waitUntil(TimePoint::max());
    signal.notify(Signal::done);
    sleeper.join();
}

} // namespace
} // namespace redislock::detail
