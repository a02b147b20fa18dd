// Services that end in every way while their own calls wait: what each way may leave in Redis.
#include "behaviour/lock_test.hpp"
#include "integration/ending_process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace redislock::test {
namespace {

using ::testing::IsEmpty;
using Form = EndingProcess::Form;
using Way = EndingProcess::Way;

class Endings : public LockTest, public ::testing::WithParamInterface<std::tuple<Form, Way>> {
protected:
    /// The keys that contain the process' name, except the counter itself, which must be complete.
    std::vector<std::string> leftovers()
    {
        std::vector<std::string> left;
        for (const auto& key : raw.command({"KEYS", "*" + name + "*"}).elements) {
            if (key.text() != name || !isCounter() || raw.get(name) != "1") {
                left.push_back(key.text());
            }
        }
        return left;
    }

    /// Whether a key is part of a hold.
    [[nodiscard]] bool isOfHold(const std::string& key) const
    {
        return key.starts_with(name) || key == "{" + name + "}:timeout";
    }
    /// Whether a key is the answer to a request, which has a time to live.
    static bool isRecord(const std::string& key) { return key.starts_with("redislock_request:"); }

    [[nodiscard]] bool isCounter() const
    {
        return form == Form::semaphore || form == Form::asynchronousSemaphore || form == Form::permits ||
               form == Form::asynchronousPermits;
    }

    /// As in LockTest, but without checking the names: a counter stays.
    void TearDown() override
    {
        EXPECT_TRUE(eventually([&] { return channels().empty(); })) << "a subscription was left";
        for (const auto& key : raw.command({"KEYS", "*" + name + "*"}).elements) {
            raw.command({"DEL", key.text()});
        }
    }

    const Form form = std::get<0>(GetParam());
    const Way way = std::get<1>(GetParam());
    const std::string name = uniqueName();
};

/// Nothing is left, though the leases would last for half a minute.
class PlannedEnding : public Endings {
protected:
    EndingProcess process{server().url(), name, form, way};
};

TEST_P(PlannedEnding, LeavesNothing)
{
    ASSERT_EQ(process.line(), "taken");
    ASSERT_EQ(process.line(), "waiting");
    const auto lost = process.ask("end"); // the locks that were held at the moment of the end
    if (way == Way::context) {            // the client goes on, and gives back grants without a handler
        EXPECT_TRUE(eventually([&] { return std::ranges::all_of(leftovers(), isRecord) && channels().empty(); }))
            << ::testing::PrintToString(leftovers());
    } else if (lost == "0") {
        EXPECT_THAT(leftovers(), IsEmpty());
    } else {
        EXPECT_EQ(lost, "1");
        EXPECT_TRUE(std::ranges::all_of(leftovers(), [&](const auto& key) { return isOfHold(key); }))
            << ::testing::PrintToString(leftovers());
    }
    process.tell("leave");
    EXPECT_EQ(process.exitStatus(), 0);
}

/// A grant in the last moment of the process stays until its lease ends; a semaphore's permit stays for good. The
/// answers to requests have a time to live.
class SuddenEnding : public Endings {
protected:
    static constexpr std::string_view shortLeases = "?watchdog_timeout=600";

    EndingProcess process{server().url() + std::string(shortLeases), name, form, way};
    const Client client{config()};
};

TEST_P(SuddenEnding, LeavesNothingBeyondItsLeases)
{
    ASSERT_EQ(process.line(), "taken");
    ASSERT_EQ(process.line(), "waiting");
    process.tell("end");
    EXPECT_EQ(process.exitStatus(), way == Way::exit ? 0 : -1);
    if (form == Form::permits || form == Form::asynchronousPermits) {
        EXPECT_TRUE(client.getPermitExpirableSemaphore(name).tryAcquire(soon, 1s)) << "its permit is free again";
    } else {
        EXPECT_TRUE(eventually([&] {
            return std::ranges::all_of(leftovers(), [&](const auto& key) {
                return (isCounter() && key == name) || (isRecord(key) && raw.pttl(key) > 0ms);
            });
        })) << ::testing::PrintToString(leftovers());
    }
}

std::string nameOf(const ::testing::TestParamInfo<std::tuple<Form, Way>>& info)
{
    static const std::vector<std::string> forms{"Thread",
                                                "Guard",
                                                "Asynchronous",
                                                "Group",
                                                "AsynchronousGroup",
                                                "Semaphore",
                                                "AsynchronousSemaphore",
                                                "Permits",
                                                "AsynchronousPermits",
                                                "Latch",
                                                "AsynchronousLatch"};
    static const std::vector<std::string> ways{"Shutdown", "Destructor", "ContextDestroyed", "Exit", "Kill"};
    return forms.at(static_cast<std::size_t>(std::get<0>(info.param))) + "By" +
           ways.at(static_cast<std::size_t>(std::get<1>(info.param)));
}

constexpr auto allForms = {Form::thread,
                           Form::guard,
                           Form::asynchronous,
                           Form::group,
                           Form::asynchronousGroup,
                           Form::semaphore,
                           Form::asynchronousSemaphore,
                           Form::permits,
                           Form::asynchronousPermits,
                           Form::latch,
                           Form::asynchronousLatch};

INSTANTIATE_TEST_SUITE_P(Services, PlannedEnding,
                         ::testing::Combine(::testing::ValuesIn(allForms),
                                            ::testing::Values(Way::shutdown, Way::destructor)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(Contexts, PlannedEnding,
                         ::testing::Combine(::testing::Values(Form::asynchronous, Form::asynchronousGroup,
                                                              Form::asynchronousSemaphore, Form::asynchronousPermits,
                                                              Form::asynchronousLatch),
                                            ::testing::Values(Way::context)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(Services, SuddenEnding,
                         ::testing::Combine(::testing::ValuesIn(allForms), ::testing::Values(Way::exit, Way::kill)),
                         nameOf);

} // namespace
} // namespace redislock::test
