// The scripts of semaphores and latches on the model of the server and on a real one: the same random steps on both, and
// the same replies, keys and messages. Time passes as in model_test.cpp.
#include "redislock/detail/protocol/key_schema.hpp"
#include "redislock/random.hpp"
#include "redislock/testing/redis_server.hpp"
#include "simulation/model_server.hpp"
#include "simulation/server_dump.hpp"
#include "support/raw_redis.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <vector>

namespace redislock::simulation {
namespace {

namespace scripts = detail::scripts;

constexpr int steps = 50;
constexpr std::int64_t margin = 3000; ///< no key is left with less: real time must not end it

const std::string name = "stock:1";
const std::string channel = "channel";
const std::string timeouts = detail::suffixed(name, "timeout");
const std::string noEnd = "922337203685477";
const std::array<std::string, 3> ids{"aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb", "cccccccccccccccc"};
const std::array<std::string, 4> leases{"0", "5000", "60000", "2592000000"};
const std::array<std::string, 3> keeps{"0", "60000", "80000"};
const std::array<std::string, 4> amounts{"1", "2", "3", "2147483647"};
const std::array<std::string, 9> oddArguments{"", "0", "-1", "1e3", " 10", "2147483648", "abc", "1.5", "007"};

class CounterComparison {
public:
    CounterComparison(LuaRuntime& lua, testing::RedisServer& server, test::RawRedis& redis, std::uint64_t seed)
        : redis_(redis), subscriber_(server), chance_(seed), model_(lua, [](LinkId, const Reply&) {})
    {
        model_.keyspace().publish = [this](const std::string& to, const std::string& message) {
            if (to == channel) { // an odd argument is another one
                told_.push_back(message);
            }
            return 1;
        };
        setRefusal(Refusal::none);
        redis_.command({"FLUSHALL"});
        redis_.command({"SCRIPT", "FLUSH"});
        subscriber_.command({"SUBSCRIBE", channel});
        realMs_ = realMs();
    }

    /// @return false when this machine stood still for so long that nothing can be said.
    bool run()
    {
        for (int step = 0; step < steps && !::testing::Test::HasFailure(); ++step) {
            doSomething();
            if (elapsedMs() > margin / 2) {
                return false;
            }
            compareKeys();
        }
        compareMessages();
        setRefusal(Refusal::none);
        return true;
    }

private:
    using Clock = std::chrono::steady_clock;
    using Words = std::vector<std::string>;

    template <class Array>
    const typename Array::value_type& oneOf(const Array& values)
    {
        return values[static_cast<std::size_t>(chance_.unit() * static_cast<double>(values.size()))];
    }
    [[nodiscard]] std::int64_t elapsedMs() const
    {
        return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin_).count();
    }
    [[nodiscard]] std::int64_t modelledMs() const noexcept { return Keyspace::epochMs + nowMs_; }
    std::string record() { return detail::requestKey(name, oneOf(ids)); }

    void doSomething()
    {
        const double choice = chance_.unit();
        if (choice < 0.78) {
            return runScript();
        }
        if (choice < 0.88) {
            return advance();
        }
        if (choice < 0.93) {
            return setRefusal(
                oneOf(std::array{Refusal::none, Refusal::none, Refusal::outOfMemory, Refusal::notEnoughReplicas}));
        }
        if (refusal_ == Refusal::none) {
            touch();
        }
    }

    void runScript()
    {
        const std::string keep = "60000";
        const std::string& id = oneOf(ids);
        const std::string forId = detail::requestKey(name, id);
        struct Call {
            const detail::Script* script;
            Words keys;
            Words arguments;
        };
        const std::array calls{
            Call{&scripts::counterTrySet, {record(), record()}, {oneOf(amounts), oneOf(leases), channel, "1", keep}},
            Call{&scripts::counterGet, {}, {}},
            Call{&scripts::counterDelete, {oneOf(std::array{name, timeouts}), record()}, {channel, keep}},
            Call{&scripts::semaphoreAcquire, {record(), record()}, {oneOf(amounts), keep}},
            Call{&scripts::semaphoreAcquire, {record()}, {oneOf(amounts), keep}},
            Call{&scripts::semaphoreAdd, {record(), record()}, {oneOf(amounts), "0", channel, keep}},
            Call{&scripts::semaphoreAdd, {record()}, {"-" + oneOf(amounts), "1", channel, keep}},
            Call{&scripts::semaphoreDrain, {record(), record()}, {keep}},
            Call{&scripts::semaphoreWithdraw, {record()}, {channel, keep}},
            Call{&scripts::permitExpirableSemaphoreAcquire, {timeouts, forId}, {id, oneOf(leases), channel}},
            Call{&scripts::permitExpirableSemaphoreAcquire, {timeouts, forId}, {id, oneOf(leases), channel}},
            Call{&scripts::permitExpirableSemaphoreRelease, {timeouts, forId}, {id, channel, oneOf(keeps)}},
            Call{&scripts::permitExpirableSemaphoreLease,
                 {timeouts, forId},
                 {id, oneOf(leases), std::to_string(static_cast<int>(chance_.unit() * 4)), oneOf(keeps)}},
            Call{&scripts::permitExpirableSemaphoreLease, {timeouts, forId}, {id, "", "0", "0"}},
            Call{&scripts::permitExpirableSemaphoreCount, {timeouts}, {channel}},
            Call{&scripts::permitExpirableSemaphoreSet, {timeouts, record()}, {oneOf(amounts), channel, keep}},
            Call{&scripts::countDownLatchCountDown, {record(), record()}, {channel, keep}},
        };
        Call call = oneOf(calls);
        const double odd = chance_.unit();
        if (odd < 0.08 && !call.arguments.empty()) {
            call.arguments[static_cast<std::size_t>(chance_.unit() * static_cast<double>(call.arguments.size()))] =
                oneOf(oddArguments);
        } else if (odd < 0.1) {
            call.arguments.emplace_back("1");
        } else if (odd < 0.12 && !call.keys.empty()) {
            call.keys.pop_back();
        }
        execute(*call.script, call.keys, call.arguments);
    }

    void execute(const detail::Script& script, const Words& otherKeys, const Words& arguments)
    {
        history_ += "  " + std::string(script.name);
        Words words{"EVAL", std::string(script.text), std::to_string(1 + otherKeys.size()), name};
        for (const auto* more : {&otherKeys, &arguments}) {
            words.insert(words.end(), more->begin(), more->end());
            for (const auto& word : *more) {
                history_ += " '" + word + "'";
            }
        }
        Request request;
        request.script = &script;
        request.byText = true;
        request.name = name;
        request.otherKeys = otherKeys;
        request.arguments = arguments;
        const test::Value real = redis_.command(words);
        compare(real, model_.execute(request, 0, nowMs_));
        history_ += '\n';
    }

    void compare(const test::Value& real, const Reply& modelled)
    {
        switch (modelled.kind) {
        case Reply::Kind::nil:
            EXPECT_TRUE(real.isNil()) << history_ << " -> " << real;
            break;
        case Reply::Kind::integer:
            ASSERT_TRUE(real.isInteger()) << history_ << " -> " << real << ", model: " << modelled.integer;
            EXPECT_TRUE(real.integer() == modelled.integer || isAsLong(real.integer(), modelled.integer))
                << history_ << " -> " << real << ", model: " << modelled.integer;
            break;
        case Reply::Kind::error:
            ASSERT_TRUE(real.isError()) << history_ << " -> " << real << ", model: " << modelled.text;
            EXPECT_EQ(real.text().substr(0, real.text().find(' ')), modelled.text.substr(0, modelled.text.find(' ')))
                << history_ << real;
            break;
        case Reply::Kind::array:
            ASSERT_TRUE(real.isArray() && real.elements.size() == modelled.elements.size()) << history_ << real;
            for (std::size_t i = 0; i < modelled.elements.size(); ++i) {
                EXPECT_EQ(real.elements[i].integer(), modelled.elements[i].integer) << history_;
            }
            break;
        default:
            ADD_FAILURE() << history_ << ": no script gives such an answer";
        }
    }

    /// A time to live, of which real time has taken something.
    [[nodiscard]] bool isAsLong(std::int64_t real, std::int64_t modelled) const
    {
        return modelled > margin && real <= modelled && modelled - real <= elapsedMs() + 2;
    }

    void compareKeys()
    {
        auto real = dumpOf(redis_);
        for (const auto& [key, unused] : model_.keyspace().keys()) {
            const Keyspace::Key* modelled = model_.keyspace().find(key, nowMs_);
            ASSERT_EQ(real.contains(key), modelled != nullptr) << history_ << key;
            if (modelled != nullptr) {
                compareKey(key, real.at(key), *modelled);
                real.erase(key);
            }
        }
        ASSERT_TRUE(real.empty()) << history_ << real.begin()->first << " is not in the model";
    }

    void compareKey(const std::string& key, const DumpedKey& real, const Keyspace::Key& modelled)
    {
        ASSERT_EQ(real.type, modelled.type) << history_ << key;
        auto fields = modelled.fields;
        std::sort(fields.begin(), fields.end());
        ASSERT_EQ(real.fields.size(), fields.size()) << history_ << key;
        for (std::size_t i = 0; i < fields.size(); ++i) {
            ASSERT_EQ(real.fields[i].first, fields[i].first) << history_ << key;
            if (modelled.type == Keyspace::Type::sortedSet && fields[i].second != noEnd) {
                const auto later =
                    (std::stoll(real.fields[i].second) - realMs_) - (std::stoll(fields[i].second) - modelledMs());
                ASSERT_TRUE(later >= 0 && later <= elapsedMs() + 2) << history_ << key << ": " << later;
            } else {
                ASSERT_EQ(real.fields[i].second, fields[i].second) << history_ << key;
            }
        }
        const std::int64_t left = modelled.expiresAtMs ? *modelled.expiresAtMs - nowMs_ : -1;
        ASSERT_TRUE(left < 0 ? real.leftMs == left : isAsLong(real.leftMs, left))
            << history_ << key << " lives for " << real.leftMs << " ms, in the model for " << left << " ms";
    }

    [[nodiscard]] bool isClear(std::int64_t momentMs, std::int64_t span) const
    {
        const std::int64_t left = momentMs - nowMs_ - span;
        return left < 0 || left > margin;
    }

    /// Time passes, so much that every key and lease is either over or far from it.
    void advance()
    {
        const auto span = static_cast<std::int64_t>(1 + chance_.unit() * (chance_.unit() < 0.8 ? 9e4 : 3e9));
        for (const auto& [key, value] : model_.keyspace().keys()) {
            if (value.expiresAtMs && !isClear(*value.expiresAtMs, span)) {
                return;
            }
            for (const auto& [member, score] : value.fields) {
                if (value.type == Keyspace::Type::sortedSet && score != noEnd &&
                    !isClear(std::stoll(score) - Keyspace::epochMs, span)) {
                    return;
                }
            }
        }
        pass(span);
    }

    void pass(std::int64_t span)
    {
        history_ += "  " + std::to_string(span) + " ms pass\n";
        const Refusal refusal = refusal_;
        setRefusal(Refusal::none);
        nowMs_ += span;
        begin_ = Clock::now();
        realMs_ = realMs();
        for (const auto& [key, value] : model_.keyspace().keys()) {
            for (const auto& [member, score] : value.fields) {
                if (value.type == Keyspace::Type::sortedSet && score != noEnd) {
                    redis_.command({"ZADD", key, std::to_string(std::stoll(score) - modelledMs() + realMs_), member});
                }
            }
            if (value.expiresAtMs) {
                redis_.command({"PEXPIRE", key, std::to_string(*value.expiresAtMs - nowMs_)});
            }
        }
        setRefusal(refusal);
    }

    std::int64_t realMs()
    {
        const test::Value time = redis_.command({"TIME"});
        return std::stoll(time.elements.at(0).text()) * 1000 + std::stoll(time.elements.at(1).text()) / 1000;
    }

    void setRefusal(Refusal refusal)
    {
        refusal_ = refusal;
        model_.keyspace().refusal = refusal;
        redis_.command({"CONFIG", "SET", "maxmemory", refusal == Refusal::outOfMemory ? "1" : "0"});
        redis_.command({"CONFIG", "SET", "min-replicas-to-write", refusal == Refusal::notEnoughReplicas ? "1" : "0"});
    }

    /// What others do.
    void touch()
    {
        const std::array<Words, 6> commands{
            Words{"DEL", name},           {"DEL", timeouts},     {"SET", name, oneOf(amounts)}, {"SET", name, "odd"},
            {"HSET", name, "field", "1"}, {"SET", timeouts, "1"}};
        const Words& command = oneOf(commands);
        history_ += "  others: " + command[0] + " " + command[1] + '\n';
        redis_.command(Words{"DEL", command[1]});
        redis_.command(command);
        model_.keyspace().beginScript(nowMs_);
        model_.keyspace().execute({"DEL", command[1]});
        model_.keyspace().execute(command);
    }

    void compareMessages()
    {
        subscriber_.send({"PING"});
        Words heard;
        for (auto message = subscriber_.receive(); message.elements.at(0).text() != "pong";
             message = subscriber_.receive()) {
            heard.push_back(message.elements.at(2).text());
        }
        EXPECT_EQ(heard, told_) << history_;
    }

    test::RawRedis& redis_;
    test::RawRedis subscriber_;
    Random chance_;
    ModelServer model_;
    std::int64_t nowMs_ = 1'000'000;
    std::int64_t realMs_ = 0;
    Clock::time_point begin_ = Clock::now();
    Refusal refusal_ = Refusal::none;
    Words told_;
    std::string history_;
};

TEST(CounterModel, AnswersAndRemembersAsARealServer)
{
    testing::RedisServer server({.unixSocketOnly = true});
    LuaRuntime lua;
    test::RawRedis redis(server);
    redis.command({"CONFIG", "SET", "maxmemory-policy", "noeviction"});
    int stalls = 0;
    for (std::uint64_t seed = 1; seed <= REDISLOCK_MODEL_SEQUENCES && !HasFailure(); ++seed) {
        while (!CounterComparison(lua, server, redis, seed).run()) {
            ASSERT_LT(++stalls, 20) << "this machine is too busy";
        }
    }
    EXPECT_GT(redis.commandCalls("eval"), 10U * REDISLOCK_MODEL_SEQUENCES);
}

} // namespace
} // namespace redislock::simulation
