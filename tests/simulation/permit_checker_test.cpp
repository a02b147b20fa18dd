// Histories of semaphores, made by hand: S11.
#include "simulation/permit_checker.hpp"
#include "simulation/rule_broken_by.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace redislock::simulation {
namespace {

using namespace std::chrono_literals;
namespace scripts = detail::scripts;

class PermitCheckerTest : public ::testing::Test {
protected:
    /// Executes a request as a server does, and answers it.
    void execute(const detail::Script& script, const std::string& record, const std::vector<std::string>& arguments,
                 const std::vector<Keyspace::Words>& commands, const Reply& reply)
    {
        keyspace.beginScript(millisecondOf(checkedAt));
        for (const auto& command : commands) {
            EXPECT_FALSE(keyspace.execute(command).isError()) << command[0];
        }
        Request request;
        request.script = &script;
        request.name = "stock";
        request.otherKeys = {"request:" + record};
        request.arguments = arguments;
        checker.executed(request, reply, checkedAt);
    }
    std::string ruleBrokenByExecuting(const detail::Script& script, const std::string& record,
                                      const std::vector<std::string>& arguments,
                                      const std::vector<Keyspace::Words>& commands, const Reply& reply)
    {
        return ruleBrokenBy([&] { execute(script, record, arguments, commands, reply); });
    }

    void make(int permits)
    {
        execute(scripts::counterTrySet, "o:1", {std::to_string(permits)}, {{"SET", "stock", std::to_string(permits)}},
                number(1));
    }
    void take(const std::string& record, const std::string& permits)
    {
        execute(scripts::semaphoreAcquire, record, {permits}, {{"DECRBY", "stock", permits}}, {});
    }
    void give(const std::string& record, const std::string& permits)
    {
        execute(scripts::semaphoreAdd, record, {permits}, {{"INCRBY", "stock", permits}}, number(1));
    }
    /// Gives a permit a lease until then, in ms.
    void lease(const std::string& id, std::int64_t until)
    {
        execute(scripts::permitExpirableSemaphoreAcquire, id, {id},
                {{"DECR", "stock"}, {"ZADD", "{stock}:timeout", std::to_string(Keyspace::epochMs + until), id}}, {});
    }
    void leaseForEver(const std::string& id)
    {
        execute(scripts::permitExpirableSemaphoreAcquire, id, {id},
                {{"DECR", "stock"}, {"ZADD", "{stock}:timeout", "922337203685477", id}}, {});
    }

    static Reply number(std::int64_t value) { return {Reply::Kind::integer, value, {}, {}}; }
    std::string ruleBrokenByBelieving(const std::string& who, std::int64_t permits,
                                      VirtualTime until = VirtualTime::max())
    {
        return ruleBrokenBy([&] { checker.believes("stock", who, permits, checkedAt, until); });
    }
    std::string ruleBrokenInTheEnd()
    {
        return ruleBrokenBy([&] { checker.expectAllFree(checkedAt); });
    }

    Keyspace keyspace;
    PermitChecker checker{keyspace};
    const std::string permit = permitId("a", 1);
};

TEST_F(PermitCheckerTest, AnOrderlyHistoryBreaksNoRule)
{
    EXPECT_EQ(ruleBrokenBy([&] {
                  make(3);
                  take("a:1", "2");
                  checker.believes("stock", "a:1", 2, checkedAt, VirtualTime::max());
                  take("b:1", "1");
                  checker.believes("stock", "b:1", 1, checkedAt, VirtualTime::max());
                  execute(scripts::semaphoreAcquire, "c:1", {"1"}, {}, number(-1));
                  checker.ends("stock", "a:1");
                  give("a:2", "2");
                  execute(scripts::semaphoreDrain, "c:2", {}, {{"DECRBY", "stock", "2"}}, number(2));
                  execute(scripts::semaphoreWithdraw, "c:2", {}, {{"INCRBY", "stock", "2"}}, number(2));
                  checker.ends("stock", "b:1");
                  give("b:2", "1");
                  checker.expectAllFree(checkedAt);
              }),
              "none");
}

TEST_F(PermitCheckerTest, MoreBelieversThanPermitsBreakS11)
{
    make(2);
    take("a:1", "2");
    EXPECT_EQ(ruleBrokenByBelieving("a:1", 2), "none");
    EXPECT_EQ(ruleBrokenByBelieving("b:1", 1), "S11");
}

TEST_F(PermitCheckerTest, WhoGaveBackHasNoneAnyMore)
{
    make(1);
    take("a:1", "1");
    EXPECT_EQ(ruleBrokenByBelieving("a:1", 1), "none");
    EXPECT_EQ(ruleBrokenByExecuting(scripts::semaphoreAdd, "a:2", {"1"}, {{"INCRBY", "stock", "1"}}, number(1)), "S11")
        << "and believes to have it";
}

TEST_F(PermitCheckerTest, ARequestThatCountsTwiceBreaksS11)
{
    make(5);
    take("a:1", "2");
    EXPECT_EQ(ruleBrokenByExecuting(scripts::semaphoreAcquire, "a:1", {"2"}, {}, {}), "none");
    EXPECT_EQ(ruleBrokenByExecuting(scripts::semaphoreAcquire, "a:1", {"2"}, {{"DECRBY", "stock", "2"}}, {}), "S11");
}

TEST_F(PermitCheckerTest, AReleaseThatCountsTwiceBreaksS11)
{
    make(5);
    take("a:1", "2");
    give("a:2", "2");
    EXPECT_EQ(ruleBrokenByExecuting(scripts::semaphoreAdd, "a:2", {"2"}, {}, number(1)), "none");
    EXPECT_EQ(ruleBrokenByExecuting(scripts::semaphoreAdd, "a:2", {"2"}, {{"INCRBY", "stock", "2"}}, number(1)), "S11");
}

TEST_F(PermitCheckerTest, AGrantOfWhatIsNotFreeBreaksS11)
{
    make(1);
    EXPECT_EQ(ruleBrokenByExecuting(scripts::semaphoreAcquire, "a:1", {"2"}, {{"DECRBY", "stock", "2"}}, {}), "S11");
}

TEST_F(PermitCheckerTest, AWithdrawnRequestThatTakesPermitsBreaksS11)
{
    make(1);
    execute(scripts::semaphoreWithdraw, "a:1", {}, {}, number(0));
    EXPECT_EQ(ruleBrokenByExecuting(scripts::semaphoreAcquire, "a:1", {"1"}, {{"DECRBY", "stock", "1"}}, {}), "S11");
}

TEST_F(PermitCheckerTest, ALeaseThatEndsBeforeItsBeliefBreaksS11)
{
    make(1);
    lease(permit, 1500);
    EXPECT_EQ(ruleBrokenByBelieving(permit, 1, 1499ms), "none");
    EXPECT_EQ(ruleBrokenByBelieving(permit, 1, 1499ms + 1ns), "S11");
    EXPECT_EQ(ruleBrokenByBelieving(permit, 1), "S11") << "for ever";
    EXPECT_EQ(ruleBrokenByBelieving(permitId("a", 2), 1, 1400ms), "S11") << "of which the server does not know";
}

TEST_F(PermitCheckerTest, APermitThatIsFreedWhileSomebodyHasItBreaksS11)
{
    make(1);
    lease(permit, 1500);
    checker.believes("stock", permit, 1, checkedAt, 1400ms);
    EXPECT_EQ(ruleBrokenByExecuting(scripts::permitExpirableSemaphoreCount, "", {},
                                    {{"ZREM", "{stock}:timeout", permit}, {"INCRBY", "stock", "1"}}, {}),
              "S11");
}

TEST_F(PermitCheckerTest, APermitThatIsLostBreaksS11)
{
    make(1);
    lease(permit, 1500);
    EXPECT_EQ(ruleBrokenByExecuting(scripts::permitExpirableSemaphoreCount, "", {},
                                    {{"ZREM", "{stock}:timeout", permit}}, {}),
              "S11");
}

TEST_F(PermitCheckerTest, InTheEndOnlyTheDeadHavePermits)
{
    make(2);
    take("a:1", "1");
    EXPECT_EQ(ruleBrokenInTheEnd(), "S11");
    checker.mayKeep("a");
    EXPECT_EQ(ruleBrokenInTheEnd(), "none");
    give("a:2", "1");
    EXPECT_EQ(ruleBrokenInTheEnd(), "none") << "a release of before its death came late";
}

TEST_F(PermitCheckerTest, InTheEndNoLeaseIsLeftButThoseOfTheDeadWithoutEnd)
{
    make(2);
    leaseForEver(permit);
    EXPECT_EQ(ruleBrokenInTheEnd(), "S11");
    checker.mayKeep("a");
    EXPECT_EQ(ruleBrokenInTheEnd(), "none");
    lease(permitId("a", 2), 1500);
    EXPECT_EQ(ruleBrokenInTheEnd(), "S11");
}

TEST_F(PermitCheckerTest, ASemaphoreThatWasTakenAwayIsExcused)
{
    make(1);
    take("a:1", "1");
    checker.believes("stock", "a:1", 1, checkedAt, VirtualTime::max());
    checker.excuse("stock");
    keyspace.erase("stock");
    EXPECT_EQ(ruleBrokenByBelieving("b:1", 1), "none");
    EXPECT_EQ(ruleBrokenByExecuting(scripts::semaphoreAdd, "a:2", {"1"}, {{"INCRBY", "stock", "1"}}, number(1)),
              "none");
    EXPECT_EQ(ruleBrokenInTheEnd(), "none");
}

TEST_F(PermitCheckerTest, TheLibrarySendsNoRequestThatAScriptRefuses)
{
    EXPECT_EQ(ruleBrokenByExecuting(scripts::semaphoreAdd, "a:1", {}, {}, {Reply::Kind::error, 0, "ERR bad", {}}),
              "valid");
    EXPECT_EQ(ruleBrokenByExecuting(scripts::semaphoreAdd, "a:1", {}, {}, {Reply::Kind::error, 0, "OOM no", {}}),
              "none");
}

} // namespace
} // namespace redislock::simulation
