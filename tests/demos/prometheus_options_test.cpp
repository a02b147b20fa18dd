// How a PrometheusObserver labels and measures, and which options it refuses.
#include "demos/registered.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

namespace redislock::test {
namespace {

const std::string acquired = "redislock_acquired_total";

LockEvent lockNamed(std::string_view name)
{
    return {name, {}, ObjectKind::redisLock};
}

/// The part of the name before the colon.
std::string group(std::string_view name)
{
    return std::string(name.substr(0, name.find(':')));
}

TEST(PrometheusOptions, LockLabelSumsUpTheNamesForWhichItIsTheSame)
{
    const Registered registered;
    const auto observer = registered.observer({.lockLabel = group});
    observer->acquired(lockNamed("stock:42"), 1ms, 1);
    observer->acquired(lockNamed("stock:43"), 1ms, 1);
    observer->acquired(lockNamed("customer:7"), 1ms, 1);
    EXPECT_EQ(registered.count(acquired, {{"kind", "redisLock"}, {"lock", "stock"}}), 2);
    EXPECT_EQ(registered.count(acquired, {{"kind", "redisLock"}, {"lock", "customer"}}), 1);
}

TEST(PrometheusOptions, LockLabelHasAtMostAsManyValuesAsItMay)
{
    const Registered registered;
    const auto observer =
        registered.observer({.lockLabel = [](std::string_view name) { return std::string(name); }, .maxLockLabels = 2});
    for (int i = 0; i < 100; ++i) {
        observer->acquired(lockNamed("stock:" + std::to_string(i)), 1ms, 1);
    }
    observer->acquired(lockNamed("stock:0"), 1ms, 1);
    EXPECT_EQ(registered.count(acquired, {{"kind", "redisLock"}, {"lock", "stock:0"}}), 2);
    EXPECT_EQ(registered.count(acquired, {{"kind", "redisLock"}, {"lock", "stock:1"}}), 1);
    EXPECT_EQ(registered.count(acquired, {{"kind", "redisLock"}, {"lock", "other"}}), 98);
}

TEST(PrometheusOptions, LockLabelThatThrowsIsOtherAndWhatIsNotPrintableIsEscaped)
{
    const Registered registered;
    const auto observer = registered.observer({.lockLabel = [](std::string_view name) {
        return name.empty() ? throw std::runtime_error("no name") : std::string(name);
    }});
    observer->acquired(lockNamed(""), 1ms, 1);
    observer->acquired(lockNamed("\xff\"\n"), 1ms, 1);
    EXPECT_EQ(registered.count(acquired, {{"kind", "redisLock"}, {"lock", "other"}}), 1);
    EXPECT_EQ(registered.count(acquired, {{"kind", "redisLock"}, {"lock", R"(\xff"\x0a)"}}), 1);
    EXPECT_TRUE(registered.has(R"(redislock_acquired_total{kind="redisLock",lock="\\xff\"\\x0a"} 1)"));
}

TEST(PrometheusOptions, LabelsOfTheirOwnTellTwoObserversOfARegistryApart)
{
    const Registered registered;
    const auto shop = registered.observer({.labels = {{"service", "shop"}}});
    const auto depot = registered.observer({.labels = {{"service", "depot"}}});
    tellEverything(*shop, lockNamed("stock:42"));
    depot->lost(lockNamed("stock:42"), LossReason::gone);
    EXPECT_EQ(registered.count(acquired, {{"kind", "redisLock"}, {"service", "shop"}}), 1);
    EXPECT_EQ(registered.count(acquired, {{"kind", "redisLock"}, {"service", "depot"}}), 0);
    for (const auto& family : registered.families()) {
        for (const auto& metric : family.metric) {
            EXPECT_EQ(Registered::labelsOf(metric).count("service"), 1U) << family.name;
        }
    }
}

TEST(PrometheusOptions, BucketsAreThoseThatWereAskedFor)
{
    const Registered registered;
    registered.observer({.timeBuckets = {10ms, 1s}})->acquired(lockNamed("stock:42"), 10ms, 1);
    EXPECT_TRUE(registered.has(R"(redislock_wait_seconds_bucket{kind="redisLock",outcome="acquired",le="0.01"} 1)"));
    EXPECT_TRUE(registered.has(R"(redislock_wait_seconds_bucket{kind="redisLock",outcome="acquired",le="+Inf"} 1)"));
    EXPECT_FALSE(registered.has(R"(redislock_wait_seconds_bucket{kind="redisLock",outcome="acquired",le="0.1"} 1)"));
}

TEST(PrometheusOptions, WhatBreaksARuleIsRefusedAtOnceWithTheRule)
{
    struct Case {
        const char* name;
        PrometheusOptions options;
        const char* says;
    };
    const Case cases[] = {
        {"empty label name", {.labels = {{"", "x"}}}, "labels has the name \"\""},
        {"digit in front", {.labels = {{"1st", "x"}}}, "labels has the name \"1st\"; names have letters"},
        {"Prometheus' own", {.labels = {{"__name__", "x"}}}, "do not begin with a digit or __"},
        {"not printable", {.labels = {{"a\n", "x"}}}, R"(labels has the name "a\x0a")"},
        {"a metric's own", {.labels = {{"reason", "x"}}}, "\"reason\", which is one of the metrics' own"},
        {"a histogram's own", {.labels = {{"le", "x"}}}, "\"le\", which is one of the metrics' own"},
        {"no labels of locks", {.maxLockLabels = 0}, "maxLockLabels is 0, and must be at least 1"},
        {"no boundary", {.timeBuckets = {}}, "timeBuckets has 0 boundaries, and must have 1 to 100"},
        {"many boundaries", {.timeBuckets = std::vector(101, 1ns)}, "timeBuckets has 101 boundaries"},
        {"zero", {.timeBuckets = {0ns}}, "0 ns is not"},
        {"negative", {.timeBuckets = {-1s, 1s}}, "-1000000000 ns is not"},
        {"twice the same", {.timeBuckets = {1ms, 1ms}}, "1000000 ns is not"},
    };
    for (const auto& each : cases) {
        const Registered registered;
        try {
            const auto observer = registered.observer(each.options);
            ADD_FAILURE() << each.name << " was taken";
        } catch (const LockError& error) {
            EXPECT_EQ(error.code(), Errc::invalidArgument);
            EXPECT_NE(std::string(error.what()).find(each.says), std::string::npos) << error.what();
        }
    }
    EXPECT_THROW(PrometheusObserver(nullptr), LockError);
}

} // namespace
} // namespace redislock::test
