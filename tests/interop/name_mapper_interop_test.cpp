// Names that Redisson maps, and their keys in Redis: the table in doc/keys.md.
#include "interop/interop_test.hpp"
#include "support/eventually.hpp"

#include <gmock/gmock.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::test {
namespace {

/// The key of Redisson's x is m(x) in Redis, with the exceptions here.
struct MappedKind {
    std::string_view name;        ///< as the drivers call it
    std::string_view ours = name; ///< what it excludes
    bool twice = false;           ///< by 3.16: m(m(x))
    bool isShared = true;         ///< with 3.16
};

constexpr MappedKind mappedKinds[] = {
    {.name = "lock"},
    {.name = "spinLock"},
    {.name = "fairLock"},
    {.name = "readLock", .ours = "writeLock", .twice = true},
    {.name = "writeLock", .twice = true},
    {.name = "semaphore"},
    {.name = "permitExpirableSemaphore", .isShared = false},
};

struct MappedCase {
    MappedKind kind;
    std::string redisson;

    friend std::ostream& operator<<(std::ostream& out, const MappedCase& what)
    {
        return out << what.kind.name << " with Redisson " << what.redisson;
    }
};

std::vector<MappedCase> mappedCases(bool (*wanted)(const MappedKind&) = [](const MappedKind&) { return true; })
{
    std::vector<MappedCase> cases;
    for (const auto& redisson : redissonVersions()) {
        for (const auto& kind : mappedKinds) {
            if (wanted(kind)) {
                cases.push_back({kind, redisson});
            }
        }
    }
    return cases;
}

class MappedNames : public InteropTest, public ::testing::WithParamInterface<MappedCase> {
protected:
    static constexpr std::string_view prefix = "mapped:";

    /// The process of a version whose names are mapped.
    static Peer& mapping(const std::string& redisson)
    {
        (void)server(); // outlives them
        static std::map<std::string, std::unique_ptr<Peer>> peers;
        auto& one = peers[redisson];
        if (!one) {
            auto options = peerOptions(redisson);
            options.prefix = prefix;
            one = std::make_unique<Peer>(options);
        }
        return *one;
    }
    [[nodiscard]] std::string mapped(const std::string& name) const { return std::string(prefix) + name; }
    static bool isOld() { return GetParam().redisson.starts_with("3."); }
    [[nodiscard]] std::string nameInRedis() const
    {
        return GetParam().kind.twice && isOld() ? mapped(mapped(name_)) : mapped(name_);
    }

    static bool isSemaphore() { return GetParam().kind.name.ends_with("emaphore"); }
    static Answer take(PeerObject& object)
    {
        return GetParam().kind.name == "semaphore" ? object.run("tryAcquire", 1, 0ms)
               : isSemaphore()                     ? object.run("tryAcquire", 0ms, longLease)
                                                   : object.run("tryLock");
    }
    /// @param taken the result of take()
    static Answer giveBack(PeerObject& object, const Answer& taken)
    {
        return GetParam().kind.name == "semaphore" ? object.run("release", 1)
               : isSemaphore()                     ? object.run("release", taken.value)
                                                   : object.run("unlock");
    }
    std::vector<std::string> keys()
    {
        std::vector<std::string> names;
        for (const auto& key : raw.command({"KEYS", "*" + name_ + "*"}).elements) {
            names.push_back(key.text());
        }
        return names;
    }

    const std::string name_ = lastingName();
};

std::string mappedCaseName(const ::testing::TestParamInfo<MappedCase>& info)
{
    return std::string(info.param.kind.name) + '_' + testName(info.param.redisson);
}

INSTANTIATE_TEST_SUITE_P(Kinds, MappedNames, ::testing::ValuesIn(mappedCases()), mappedCaseName);

TEST_P(MappedNames, AreThoseInRedisAndOursOfThatNameIsExcludedAndExcludes)
{
    const auto& kind = GetParam().kind;
    PeerObject java(mapping(GetParam().redisson), kind.name, name_);
    PeerObject ours(peer(""), kind.ours, nameInRedis());
    if (isSemaphore()) {
        ASSERT_EQ(java.run("trySetPermits", 1), "ok");
    }
    auto taken = take(java);
    ASSERT_EQ(taken.how, "ok") << taken;
    EXPECT_THAT(keys(), ::testing::Contains(nameInRedis()));
    if (kind.name == "permitExpirableSemaphore") {
        EXPECT_THAT(keys(), ::testing::Contains("{" + (isOld() ? name_ : nameInRedis()) + "}:timeout"));
    }
    if (isOld() && !kind.isShared) {
        return;
    }
    EXPECT_EQ(take(ours), "false");
    EXPECT_EQ(giveBack(java, taken), "ok");
    taken = take(ours);
    ASSERT_EQ(taken.how, "ok") << taken;
    EXPECT_EQ(take(java), "false");
    EXPECT_EQ(giveBack(ours, taken), "ok");
}

class MappedQueue : public MappedNames {};

INSTANTIATE_TEST_SUITE_P(Kinds, MappedQueue, ::testing::ValuesIn(mappedCases([](const MappedKind& kind) {
                             return kind.name == "fairLock";
                         })),
                         mappedCaseName);

TEST_P(MappedQueue, IsOneWithOursButForOldVersions)
{
    PeerObject ours(peer(""), "fairLock", nameInRedis());
    PeerObject holder(peer(""), "fairLock", nameInRedis());
    PeerObject java(mapping(GetParam().redisson), "fairLock", name_);
    ASSERT_EQ(holder.run("lock", longLease), "ok");
    const auto queued = [&](const std::string& name) {
        return raw.command({"LLEN", "redisson_lock_queue:{" + name + "}"}).integer();
    };
    java.start("tryLock", isOld() ? soon : longLease, longLease);
    EXPECT_TRUE(eventually([&] { return queued(isOld() ? name_ : nameInRedis()) == 1; }))
        << ::testing::PrintToString(keys());
    ours.start("lock", longLease);
    EXPECT_TRUE(eventually([&] { return queued(nameInRedis()) == (isOld() ? 1 : 2); }))
        << ::testing::PrintToString(keys());
    ASSERT_EQ(holder.run("unlock"), "ok");
    if (!isOld()) {
        ASSERT_EQ(java.answer(), "ok");
        ASSERT_EQ(java.run("unlock"), "ok");
    }
    ASSERT_EQ(ours.answer(), "ok");
    if (isOld()) { // no message comes, but the lock is the same
        EXPECT_EQ(java.answer(), "false");
    }
    ASSERT_EQ(ours.run("unlock"), "ok");
}

} // namespace
} // namespace redislock::test
