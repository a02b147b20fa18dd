// Exact counts while several processes of both languages, two of each, want the same object.
#include "interop/interop_test.hpp"
#include "support/eventually.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::test {
namespace {

class Contention : public InteropTest {
protected:
    static constexpr std::size_t processes = 2;

    /// Lets threads of two processes do something until stop(). @param redisson empty: processes of ours
    void start(const std::string& redisson, std::size_t threads, std::string_view kind, const std::string& name,
               std::string_view operation)
    {
        for (std::size_t i = 0; i < threads * processes; ++i) {
            at_.emplace_back(peer(redisson, i % processes), kind, name);
            at_.back().start(operation, key_);
        }
    }
    /// How often a thread of one language counted right after one of the other.
    long turns() { return std::stol(raw.get(key_ + ":turns").value_or("0")); }
    /// Ends all threads. @return their results, in the order of their starts.
    std::vector<long> stop()
    {
        raw.command({"SET", key_ + ":end", "1"});
        std::vector<long> told;
        for (auto& one : at_) {
            const auto answer = one.answer();
            EXPECT_EQ(answer.how, "ok") << answer;
            told.push_back(answer.how == "ok" ? std::stol(answer.value) : 0);
        }
        return told;
    }

    const std::string key_ = lastingName();

private:
    std::vector<PeerObject> at_;
};

// --- One at a time
// -----------------------------------------------------------------------------------------------------

/// An object that lets in one thread at a time.
struct Door {
    std::string_view name;        ///< in the names of the tests
    std::string_view kind;        ///< as the drivers call it
    std::string_view ours = "{}"; ///< the name of the object, with {} for that of the test
    std::string_view theirs = "{}";
    int since = 3;        ///< the first major version of Redisson that has it
    bool permits = false; ///< it must get a permit first
    int turns = 30;       ///< how often the languages must alternate; few for groups, which get no messages
};

constexpr Door doors[] = {
    {.name = "RedisLock", .kind = "lock"},
    {.name = "SpinLock", .kind = "spinLock"},
    {.name = "NonReentrantLock", .kind = "nonReentrant", .since = 4},
    {.name = "FencedLock", .kind = "fencedLock", .since = 4},
    {.name = "FairLock", .kind = "fairLock"},
    {.name = "WriteLock", .kind = "writeLock"},
    {.name = "Semaphore", .kind = "semaphore", .permits = true},
    {.name = "PermitExpirableSemaphore", .kind = "permitExpirableSemaphore", .permits = true},
    {.name = "MultiLock", .kind = "multiLock", .ours = "{}:a,{}:b,{}:c", .theirs = "{}:c,{}:b,{}:a", .turns = 1},
    {.name = "OverlappingMultiLocks", .kind = "multiLock", .ours = "{}:a,{}:b", .theirs = "{}:b,{}:c", .turns = 1},
    {.name = "RedLock", .kind = "redLock", .ours = "{}@0,{}@1,{}@2", .theirs = "{}@0,{}@1,{}@2", .turns = 1},
};

struct DoorCase {
    Door door;
    Sides sides;

    friend std::ostream& operator<<(std::ostream& out, const DoorCase& what)
    {
        return out << what.door.name << ", " << what.sides;
    }
};

std::vector<DoorCase> doorCases(bool (*wanted)(const Door&) = [](const Door&) { return true; })
{
    std::vector<DoorCase> cases;
    for (const auto& sides : allSides()) {
        for (const auto& door : doors) {
            if (wanted(door) && std::stoi(sides.redisson) >= door.since) {
                cases.push_back({door, sides});
            }
        }
    }
    return cases;
}

std::string doorCaseName(const ::testing::TestParamInfo<DoorCase>& info)
{
    return std::string(info.param.door.name) + '_' + sidesName({info.param.sides, info.index});
}

class OneAtATime : public Contention, public ::testing::WithParamInterface<DoorCase> {};

INSTANTIATE_TEST_SUITE_P(Kinds, OneAtATime, ::testing::ValuesIn(doorCases()), doorCaseName);

TEST_P(OneAtATime, ProcessesOfBothLanguagesCountExactly)
{
    const auto& door = GetParam().door;
    const auto& sides = GetParam().sides;
    const auto name = lastingName();
    if (door.permits) {
        ASSERT_EQ(PeerObject(peer(""), door.kind, name).run("trySetPermits", 1), "ok");
    }
    for (const bool java : {sides.javaFirst, !sides.javaFirst}) {
        start(java ? sides.redisson : "", 2, door.kind, filledIn(java ? door.theirs : door.ours, name), "count");
        ASSERT_TRUE(eventually([&] { return raw.exists(key_); }));
    }
    EXPECT_TRUE(eventually([&] { return turns() >= door.turns; }, 60s)) << turns() << " times";
    long sum = 0;
    for (const long count : stop()) {
        sum += count;
    }
    EXPECT_EQ(raw.get(key_), std::to_string(sum));
}

// --- Tokens
// ------------------------------------------------------------------------------------------------------------

class Fencing : public Contention, public ::testing::WithParamInterface<Sides> {};

// Redisson 3 has no such lock.
std::vector<Sides> fencingSides()
{
    auto sides = allSides();
    std::erase_if(sides, [](const Sides& each) { return std::stoi(each.redisson) < 4; });
    return sides;
}

INSTANTIATE_TEST_SUITE_P(Orders, Fencing, ::testing::ValuesIn(fencingSides()), sidesName);

TEST_P(Fencing, TokensGrowFromHolderToHolderThoughProcessesOfBothLanguagesContend)
{
    const auto& sides = GetParam();
    const auto name = lastingName();
    for (const bool java : {sides.javaFirst, !sides.javaFirst}) {
        start(java ? sides.redisson : "", 2, "fencedLock", name, "countTokens");
        ASSERT_TRUE(eventually([&] { return raw.exists(key_); }));
    }
    EXPECT_TRUE(eventually([&] { return turns() >= 60; }, 15s)) << turns() << " times";
    long sum = 0;
    for (const long count : stop()) {
        sum += count;
    }
    EXPECT_EQ(raw.get(key_), std::to_string(sum));
    std::vector<long> tokens;
    for (const auto& token : raw.command({"LRANGE", key_ + ":tokens", "0", "-1"}).elements) {
        tokens.push_back(std::stol(token.text()));
    }
    ASSERT_FALSE(tokens.empty());
    EXPECT_EQ(std::ssize(tokens), sum);
    EXPECT_EQ(std::ranges::adjacent_find(tokens, std::greater_equal<>()), tokens.end()) << "not greater than the last";
    EXPECT_EQ(raw.get("redisson_lock_token:{" + name + "}"), std::to_string(tokens.back()));
}

// --- Several at a time
// -------------------------------------------------------------------------------------------------

class ReadersAndWriters : public Contention, public ::testing::WithParamInterface<Sides> {};

INSTANTIATE_TEST_SUITE_P(Orders, ReadersAndWriters, ::testing::ValuesIn(allSides()), sidesName);

TEST_P(ReadersAndWriters, CountExactlyAndReadNothingHalfWritten)
{
    const auto name = uniqueName();
    const std::string first = GetParam().javaFirst ? GetParam().redisson : "";
    const std::string second = GetParam().javaFirst ? "" : GetParam().redisson;
    start(first, 1, "writeLock", name, "count");
    start(second, 1, "readLock", name, "look");
    ASSERT_TRUE(eventually([&] { return raw.exists(key_); }));
    start(second, 1, "writeLock", name, "count");
    start(first, 1, "readLock", name, "look");
    EXPECT_TRUE(eventually([&] { return turns() >= 30; }, 15s)) << turns() << " times";
    const auto told = stop();
    EXPECT_EQ(raw.get(key_), std::to_string(told[0] + told[1] + told[4] + told[5])) << "of the writers";
    for (const std::size_t reader : {2U, 3U, 6U, 7U}) {
        EXPECT_GT(told[reader], 0) << reader;
    }
}

class Permits : public Contention, public ::testing::WithParamInterface<DoorCase> {};

INSTANTIATE_TEST_SUITE_P(Kinds, Permits, ::testing::ValuesIn(doorCases([](const Door& door) { return door.permits; })),
                         doorCaseName);

TEST_P(Permits, NeverAreMoreInsideThanThereArePermits)
{
    const auto& door = GetParam().door;
    const auto& sides = GetParam().sides;
    const auto name = lastingName();
    ASSERT_EQ(PeerObject(peer(""), door.kind, name).run("trySetPermits", 3), "ok");
    for (const bool java : {sides.javaFirst, !sides.javaFirst}) {
        start(java ? sides.redisson : "", 2, door.kind, name, "crowd");
        ASSERT_TRUE(eventually([&] { return raw.exists(key_); }));
    }
    EXPECT_TRUE(eventually([&] { return turns() >= 30; }, 15s)) << turns() << " times";
    EXPECT_EQ(std::ranges::max(stop()), 3) << "inside at the same time";
    EXPECT_EQ(PeerObject(peer(""), door.kind, name).run("available"), "ok 3");
}

} // namespace
} // namespace redislock::test
