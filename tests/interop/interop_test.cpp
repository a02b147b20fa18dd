#include "interop/interop_test.hpp"

#include "support/eventually.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <memory>
#include <thread>

namespace redislock::test {

std::vector<LockCase> lockCases(bool (*wanted)(const LockKind&))
{
    std::vector<LockCase> cases;
    for (const auto& redisson : redissonVersions()) {
        for (const auto& kind : lockKinds) {
            if (wanted(kind) && has(redisson, kind)) {
                cases.push_back({kind, redisson});
            }
        }
    }
    return cases;
}

std::string lockCaseName(const ::testing::TestParamInfo<LockCase>& info)
{
    return std::string(info.param.kind.name) + "_" + testName(info.param.redisson);
}

std::vector<Sides> allSides()
{
    std::vector<Sides> sides;
    for (const auto& redisson : redissonVersions()) {
        sides.push_back({redisson, true});
        sides.push_back({redisson, false});
    }
    return sides;
}

std::string sidesName(const ::testing::TestParamInfo<Sides>& info)
{
    return (info.param.javaFirst ? "JavaFirst_" : "CppFirst_") + testName(info.param.redisson);
}

std::string filledIn(std::string_view text, const std::string& name)
{
    std::string filled(text);
    for (auto at = filled.find("{}"); at != std::string::npos; at = filled.find("{}", at + name.size())) {
        filled.replace(at, 2, name);
    }
    return filled;
}

testing::RedisServer& InteropTest::server(std::size_t which)
{
    static std::array<testing::RedisServer, servers> instances;
    return instances.at(which);
}

Peer& InteropTest::peer(const std::string& redisson, std::size_t which)
{
    (void)server(); // outlives them
    static std::map<std::string, std::array<std::unique_ptr<Peer>, 2>> peers;
    auto& one = peers[redisson].at(which);
    if (!one) {
        one = std::make_unique<Peer>(peerOptions(redisson));
    }
    return *one;
}

PeerOptions InteropTest::peerOptions(const std::string& redisson)
{
    PeerOptions options{.redisson = redisson, .urls = {}, .watchdog = watchdogTimeout};
    for (std::size_t i = 0; i < servers; ++i) {
        options.urls.push_back(server(i).url());
    }
    return options;
}

void InteropTest::TearDown()
{
    for (const auto& name : lastingNames_) {
        removeAllOf(name);
    }
    for (const auto& name : names_) {
        const bool tagged = name.find('{') != std::string::npos;
        raw.command({"DEL", "redisson_lock_token:" + (tagged ? name : "{" + name + "}")}); // tokens stay for ever
        for (std::size_t i = 0; i < servers; ++i) {
            RawRedis redis(server(i));
            const auto keys = [&] { return redis.command({"KEYS", "*" + name + "*"}); };
            // notes of Redisson's waiters, which left after the last of ours; latches of a Redisson that was ended before
            // it deleted them
            const auto endsByItself = [&](const Value& key) {
                const auto is = [&](const char* kind) { return key.text().starts_with(kind); };
                return (is("redislock_places:") || is("redisson_unlock_latch:")) && redis.pttl(key.text()) > 0ms;
            };
            EXPECT_TRUE(eventually([&] { return std::ranges::all_of(keys().elements, endsByItself); })) << keys();
        }
    }
}

std::string InteropTest::uniqueName(std::string_view prefix)
{
    const auto& test = *::testing::UnitTest::GetInstance()->current_test_info();
    names_.push_back(std::string(prefix) + test.test_suite_name() + "." + test.name() + ":" +
                     std::to_string(names_.size()));
    return names_.back();
}

std::string InteropTest::lastingName()
{
    lastingNames_.push_back(uniqueName());
    return lastingNames_.back();
}

Config InteropTest::config()
{
    Config config = Config::fromUrl(server().url());
    config.watchdogTimeout = watchdogTimeout;
    config.pollInterval = 60s;
    return config;
}

void InteropTest::awaitListener(const std::string& name)
{
    EXPECT_TRUE(eventually([&] {
        return !raw.command({"PUBSUB", "CHANNELS", "*" + name + "*"}).elements.empty();
    })) << "nobody listens for "
        << name;
}

void InteropTest::awaitListeners(const std::string& channel, std::int64_t count)
{
    const auto listeners = [&] { return raw.command({"PUBSUB", "NUMSUB", channel}).elements.at(1).integer(); };
    EXPECT_TRUE(eventually([&] { return listeners() >= count; })) << listeners() << " listen to " << channel;
}

void InteropTest::awaitQuestion(RawRedis& monitor, const std::string& name, bool subscribes)
{
    const Stopwatch watch;
    bool asked = false;
    bool subscribed = !subscribes;
    std::string seenOfName;
    while (!asked) {
        const auto seen = monitor.receive(soon);
        if (!seen || watch.elapsed() > soon) {
            // Redisson's RedLock once asked here and then waited on another server: it came in right after the release.
            EXPECT_TRUE(subscribes && !subscribed && !seenOfName.empty()) << "nobody waits for " << name << ", seen:\n"
                                                                          << seenOfName;
            return;
        }
        // 1763776800.000000 [0 127.0.0.1:40000] "EVALSHA" "..." "1" "name" ...
        auto line = seen->text();
        if (line.find(name) == std::string::npos) {
            continue;
        }
        seenOfName += line + '\n';
        std::transform(line.begin(), line.end(), line.begin(),
                       [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
        subscribed = subscribed || line.find("] \"subscribe\"") != std::string::npos;
        asked = subscribed && line.find("] \"eval") != std::string::npos;
    }
    // Waiters of Redisson's that do not sleep yet miss the message of the end of writing.
    std::this_thread::sleep_for(100ms);
}

void InteropTest::removeAllOf(const std::string& name)
{
    for (const auto& key : raw.command({"KEYS", "*" + name + "*"}).elements) {
        raw.command({"DEL", key.text()});
    }
}

std::string InteropTest::countOf(const std::string& name, const std::string& clientId)
{
    for (const auto& [field, value] : raw.hash(name)) {
        if (field.starts_with(clientId + ':')) {
            return value;
        }
    }
    return {};
}

} // namespace redislock::test
