// Whole runs with an error at their end, where everything has to be in order: T9, S6, S7, R1.
#include "simulation/rule_broken_by.hpp"
#include "simulation/world.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace redislock::simulation {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t seed = 1;
constexpr std::int64_t aDayMs = 86'400'000;

std::string ruleBrokenWith(const Sabotage& sabotage)
{
    LuaRuntime lua;
    return ruleBrokenBy([&] { World(lua, seed, false, sabotage).run(); });
}

/// A stranger takes every lock, for a day.
void takeAll(const Sabotage::Hands& hands)
{
    auto& keyspace = hands.server.keyspace();
    for (const std::string name : {"stock:0", "stock:1", "stock:2"}) {
        hands.checker.excuse(name);
        keyspace.erase(name);
        keyspace.beginScript(millisecondOf(hands.scheduler.now()));
        keyspace.execute({"HSET", name, "stranger:1", "1"});
        keyspace.execute({"PEXPIRE", name, std::to_string(aDayMs)});
    }
}

/// For 40 s deletes the lock again a moment after each grant.
void deleteAgainAndAgain(const Sabotage::Hands& hands)
{
    for (VirtualTime then = 0ns; then < 40s; then += 100us) {
        hands.scheduler.at(hands.scheduler.now() + then, [hands] {
            hands.checker.excuseAll();
            hands.server.keyspace().clear();
        });
    }
}

/// Calls @p deed when the threads are to stop.
/// @return the rule that was broken by the first run in which the deed was possible.
std::string ruleBrokenWhere(const std::function<bool(const Sabotage::Hands&)>& deed, std::uint64_t first = seed)
{
    std::string rule = "no run";
    for (std::uint64_t run = first; run < first + 300; ++run) {
        bool done = false;
        const Sabotage sabotage{.beforeStop = [&](const Sabotage::Hands& hands) { done = done || deed(hands); }};
        LuaRuntime lua;
        const auto broken = ruleBrokenBy([&] { World(lua, run, false, sabotage).run(); });
        rule = done ? broken : rule;
        if (done && rule != "none") { // "none": the thread that would have noticed had already ended
            break;
        }
    }
    return rule;
}

/// The queue of a name in the server.
std::vector<std::string> queueOf(const Sabotage::Hands& hands, const std::string& name)
{
    std::vector<std::string> queue;
    if (const auto* key = hands.server.keyspace().find(detail::prefixed(detail::queuePrefix, name),
                                                       millisecondOf(hands.scheduler.now()))) {
        for (const auto& entry : key->fields) {
            queue.push_back(entry.first);
        }
    }
    return queue;
}

void execute(const Sabotage::Hands& hands, const Keyspace::Words& command)
{
    hands.server.keyspace().beginScript(millisecondOf(hands.scheduler.now()));
    hands.server.keyspace().execute(command);
}

/// Calls @p deed with a hold of a thread when the threads are to stop, in the first run that has a hold then.
std::string ruleBrokenWithHold(const std::function<void(const Sabotage::Hands&, Hold&)>& deed)
{
    return ruleBrokenWhere([&](const Sabotage::Hands& hands) {
        for (const auto& hold : hands.client.named(0).local.holds()) {
            if (hold->phase == Hold::Phase::held && hold->levels.countOfThread() > 0) {
                deed(hands, *hold);
                return true;
            }
        }
        return false;
    });
}

TEST(Sabotage, ARunWithoutItIsGood)
{
    EXPECT_EQ(ruleBrokenWith({}), "none");
    EXPECT_EQ(ruleBrokenWith({.beforeStop = [](const auto&) {}}), "none");
}

TEST(Sabotage, AThreadThatDoesNotComeToItsEndBreaksT9)
{
    EXPECT_EQ(ruleBrokenWith({.beforeStop = takeAll}), "T9");
}

TEST(Sabotage, ALockThatCannotBeTakenBreaksT9)
{
    EXPECT_EQ(ruleBrokenWith({.beforeProbes = takeAll}), "T9");
}

TEST(Sabotage, AServerThatDoesNotComeBackBreaksT9)
{
    EXPECT_EQ(ruleBrokenWith({.beforeProbes =
                                  [](const Sabotage::Hands& hands) {
                                      hands.network.cutAll();
                                      hands.network.setDownUntil(hands.scheduler.now() + 24h);
                                  }}),
              "T9");
}

TEST(Sabotage, ALockThatCannotBeReleasedBreaksT9)
{
    EXPECT_EQ(ruleBrokenWith({.beforeProbes = deleteAgainAndAgain}), "T9");
}

TEST(Sabotage, ALockWhoseKeyIsSomethingElseBreaksT9)
{
    EXPECT_EQ(
        ruleBrokenWith(
            {.beforeProbes = [](const Sabotage::Hands& hands) { hands.server.keyspace().writeString("stock:0"); }}),
        "T9");
}

TEST(Sabotage, ALevelThatNobodyTookBreaksS6)
{
    EXPECT_EQ(ruleBrokenWithHold(
                  [](const Sabotage::Hands&, Hold& hold) { hold.levels.add(keepRenewing, detail::EndedBy::guard); }),
              "S6");
}

TEST(Sabotage, AnUnlockAfterALossThatIsNotExpectedAnyMoreBreaksS6)
{
    EXPECT_EQ(ruleBrokenWithHold([](const Sabotage::Hands& hands, Hold& hold) {
                  auto& named = *hold.lock;
                  const auto owner = hold.owner;
                  hands.checker.excuseHolder(hands.client.holderOf(hold));
                  hands.client.core().lose(hold, LossReason::gone);
                  while (named.local.countLateUnlock(owner)) {
                  }
              }),
              "S6");
}

// If one more waiter comes, the queue is taken for one of Redisson's and kept for ever: that breaks R4. In run 40 none
// comes.
TEST(Sabotage, APlaceInAQueueThatNobodyGivesUpBreaksT6)
{
    EXPECT_EQ(ruleBrokenWhere(
                  [](const Sabotage::Hands& hands) {
                      const auto queue = queueOf(hands, "stock:0");
                      if (queue.empty()) {
                          return false;
                      }
                      const auto list = detail::prefixed(detail::queuePrefix, "stock:0");
                      execute(hands, {"DEL", list});
                      execute(hands, {"RPUSH", list, "dead:1"});
                      for (const auto& holder : queue) {
                          execute(hands, {"RPUSH", list, holder});
                      }
                      execute(hands, {"PEXPIRE", list, std::to_string(aDayMs)});
                      execute(hands, {"ZADD", detail::prefixed(detail::queueTimesPrefix, "stock:0"),
                                      std::to_string(Keyspace::epochMs + 30 * aDayMs), "dead:1"});
                      return true;
                  },
                  40),
              "T6");
}

TEST(Sabotage, AQueueInAnotherOrderBreaksT6)
{
    EXPECT_EQ(ruleBrokenWhere([](const Sabotage::Hands& hands) {
                  const auto queue = queueOf(hands, "stock:0");
                  const auto list = detail::prefixed(detail::queuePrefix, "stock:0");
                  if (queue.size() < 2) {
                      return false;
                  }
                  execute(hands, {"LPOP", list});
                  execute(hands, {"RPUSH", list, queue.front()});
                  return true;
              }),
              "T6");
}

TEST(Sabotage, AReaderBesideAWriterBreaksS5)
{
    EXPECT_EQ(ruleBrokenWhere([](const Sabotage::Hands& hands) {
                  const auto* key = hands.server.keyspace().find("stock:0", millisecondOf(hands.scheduler.now()));
                  const auto* mode = key == nullptr ? nullptr : key->find("mode");
                  if (mode == nullptr || *mode != "write" || hands.client.named(0).waiters.empty()) {
                      return false;
                  }
                  execute(hands, {"HSET", "stock:0", "mode", "read"});
                  return true;
              }),
              "S5");
}

TEST(Sabotage, AKeyThatStaysBreaksS7)
{
    EXPECT_EQ(ruleBrokenWith({.beforeResidue = takeAll}), "S7");
}

TEST(Sabotage, ASubscriptionOfNobodyBreaksR1)
{
    EXPECT_EQ(ruleBrokenWith({.beforeResidue =
                                  [](const Sabotage::Hands& hands) {
                                      Request request;
                                      request.verb = Request::Verb::subscribe;
                                      request.name = "channel";
                                      hands.server.execute(request, 1'000'000, 0);
                                  }}),
              "R1");
}

TEST(Sabotage, ASubscriptionThatNobodyNeedsBreaksR1)
{
    EXPECT_EQ(ruleBrokenWith({.beforeResidue =
                                  [](const Sabotage::Hands& hands) {
                                      auto& named = hands.client.named(0);
                                      hands.client.want("for nobody", {named.weak_from_this(), 0, [](auto...) {}});
                                  }}),
              "R1");
}

TEST(Sabotage, AReleaseThatIsNeverAnsweredBreaksR1)
{
    EXPECT_EQ(
        ruleBrokenWith({.beforeResidue = [](const Sabotage::Hands& hands) { hands.client.named(0).releases.begin(); }}),
        "R1");
}

TEST(Sabotage, AHoldThatIsWatchedForNobodyBreaksR1)
{
    EXPECT_EQ(ruleBrokenWith({.beforeResidue =
                                  [](const Sabotage::Hands& hands) {
                                      auto& named = hands.client.named(0);
                                      named.local.add(hands.client.core().takeHold(named, 99, detail::Lane::commands));
                                  }}),
              "R1");
}

} // namespace
} // namespace redislock::simulation
