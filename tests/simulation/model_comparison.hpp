/// @file
/// The model of the server beside a real one.
#pragma once

#include "redislock/detail/protocol/fault.hpp"
#include "redislock/detail/protocol/key_schema.hpp"
#include "redislock/random.hpp"
#include "redislock/testing/redis_server.hpp"
#include "simulation/model_server.hpp"
#include "support/raw_redis.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redislock::simulation {

inline constexpr int steps = 60;
inline constexpr std::int64_t margin = 3000; ///< no key is left with less: real time must not end it

inline const std::array<std::string, 3> names{"stock:1", "a{b}c", std::string("nul\0byte", 8)};
inline const std::array<std::string, 3> holders{"6f1c0f9e:17", "6f1c0f9e:18", "0d7c1be2:84"};
inline const std::array<std::string, 5> leases{"5000", "20000", "60000", "86400000", "2592000000"};
inline const std::array<std::string, 16> oddArguments{
    "",           "0",          "-1",  "1e3", "0x10",  " 10", "9",
    "2592000001", "2147483648", "abc", "1.5", "+5000", "007", "99999999999999999999",
    "5000\n",     "5000.0"};

inline constexpr const char* dumpScript = R"(
local all = {}
for i, key in ipairs(KEYS) do
    local kind = redis.call('TYPE', key).ok
    all[i] = {kind, kind == 'hash' and redis.call('HGETALL', key) or {}, redis.call('PTTL', key)}
end
return all)";

/// One server, for all sequences.
inline testing::RedisServer& server()
{
    static testing::RedisServer instance({.unixSocketOnly = true});
    return instance;
}

/// One sequence of random steps on both.
class Comparison {
public:
    Comparison(LuaRuntime& lua, test::RawRedis& redis, std::uint64_t seed)
        : lua_(lua), redis_(redis), chance_(seed), model_(lua, [this](LinkId, const Reply&) { ++told_; })
    {
        setRefusal(Refusal::none);
        redis_.command({"FLUSHALL"});
        redis_.command({"SCRIPT", "FLUSH"});
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

    [[nodiscard]] const std::string& history() const noexcept { return history_; }

private:
    using Clock = std::chrono::steady_clock;
    using Words = std::vector<std::string>;
    using RawRedis = test::RawRedis;
    using Value = test::Value;

    template <class Array>
    const auto& oneOf(const Array& values)
    {
        return values[static_cast<std::size_t>(chance_.unit() * static_cast<double>(values.size()))];
    }

    [[nodiscard]] std::int64_t elapsedMs() const
    {
        return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin_).count();
    }

    void doSomething()
    {
        const double choice = chance_.unit();
        if (choice < 0.62) {
            return runScript();
        }
        if (choice < 0.72) {
            return advance();
        }
        if (choice < 0.77) {
            return setRefusal(
                oneOf(std::array{Refusal::none, Refusal::none, Refusal::outOfMemory, Refusal::notEnoughReplicas}));
        }
        if (choice < 0.80) {
            redis_.command({"SCRIPT", "FLUSH"});
            return model_.forgetScripts();
        }
        if (choice < 0.85) {
            return listen();
        }
        if (refusal_ == Refusal::none) {
            touch(oneOf(names));
        }
    }

    /// A script with valid arguments, or with one that is odd, missing or too many, or with a wrong number of keys.
    void runScript()
    {
        Words keys{oneOf(names)};
        const std::string channel = detail::lockChannel(keys[0]);
        struct Call {
            const detail::Script& script;
            Words arguments;
        };
        const std::array calls{
            Call{detail::scripts::redisLockLock,
                 {oneOf(holders), oneOf(leases), oneOf(std::array<std::string, 4>{"1", "1", "2", "3"})}},
            Call{detail::scripts::redisLockUnlock,
                 {oneOf(holders), oneOf(std::array<std::string, 4>{"0", "0", "1", "2"}), oneOf(leases), channel}},
            Call{detail::scripts::redisLockRenew, {oneOf(holders), oneOf(leases)}},
            Call{detail::scripts::redisLockForceUnlock, {oneOf(holders), channel}},
            Call{detail::scripts::redisLockPttl, {}},
            Call{detail::scripts::redisLockHolder, {}},
        };
        Call call = oneOf(calls);
        const double odd = chance_.unit();
        if (odd < 0.15 && !call.arguments.empty()) {
            call.arguments[static_cast<std::size_t>(chance_.unit() * static_cast<double>(call.arguments.size()))] =
                oneOf(oddArguments);
        } else if (odd < 0.18 && !call.arguments.empty()) {
            call.arguments.pop_back();
        } else if (odd < 0.21) {
            call.arguments.emplace_back("1");
        } else if (odd < 0.24) {
            keys = chance_.unit() < 0.5 ? Words{} : Words{names[0], names[1]};
        }
        execute(call.script, keys, call.arguments);
    }

    void execute(const detail::Script& script, const Words& keys, const Words& arguments)
    {
        history_ += "  " + std::string(script.name);
        for (const auto& word : arguments) {
            history_ += " '" + word + "'";
        }
        Words words{"EVALSHA", std::string(script.sha1), std::to_string(keys.size())};
        words.insert(words.end(), keys.begin(), keys.end());
        words.insert(words.end(), arguments.begin(), arguments.end());
        if (keys.size() != 1) {
            return executeWithOddKeys(script, std::move(words), keys, arguments);
        }
        Request request;
        request.script = &script;
        request.name = keys[0];
        request.arguments = arguments;
        Value real = redis_.command(words);
        Reply modelled = model_.execute(request, 0, nowMs_);
        const bool unknown = real.isError() && real.text().starts_with("NOSCRIPT");
        ASSERT_EQ(modelled.isError() && modelled.text.starts_with("NOSCRIPT"), unknown) << history_;
        if (unknown) {
            words[0] = "EVAL";
            words[1] = script.text;
            request.byText = true;
            real = redis_.command(words);
            modelled = model_.execute(request, 0, nowMs_);
        }
        compare(real, modelled);
        history_ += '\n';
    }

    /// The server's model is never sent such a request; its scripts are.
    void executeWithOddKeys(const detail::Script& script, Words words, const Words& keys, const Words& arguments)
    {
        words[0] = "EVAL";
        words[1] = script.text;
        const Value real = redis_.command(words);
        model_.keyspace().beginScript(nowMs_);
        compare(real, lua_.run(script, model_.keyspace(), keys, arguments));
        redis_.command({"SCRIPT", "FLUSH"});
        model_.forgetScripts();
        history_ += " with " + std::to_string(keys.size()) + " keys\n";
    }

    void compare(const Value& real, const Reply& modelled)
    {
        switch (modelled.kind) {
        case Reply::Kind::nil:
            EXPECT_TRUE(real.isNil()) << history_ << " -> " << real;
            break;
        case Reply::Kind::text:
            EXPECT_TRUE(real.isString() && real.text() == modelled.text)
                << history_ << " -> " << real << ", model: " << modelled.text;
            break;
        case Reply::Kind::integer:
            ASSERT_TRUE(real.isInteger()) << history_ << " -> " << real << ", model: " << modelled.integer;
            // a time to live, of which real time has taken something
            if (modelled.integer > margin) {
                EXPECT_TRUE(isAsLong(real.integer(), modelled.integer))
                    << history_ << " -> " << real << ", model: " << modelled.integer;
            } else {
                EXPECT_EQ(real.integer(), modelled.integer) << history_;
            }
            break;
        case Reply::Kind::error:
            ASSERT_TRUE(real.isError()) << history_ << " -> " << real << ", model: " << modelled.text;
            EXPECT_EQ(detail::classify(real.text()), detail::classify(modelled.text))
                << history_ << " -> " << real << ", model: " << modelled.text;
            if (modelled.text.starts_with("ERR")) {
                EXPECT_EQ(real.text(), modelled.text) << history_;
            }
            break;
        default:
            ADD_FAILURE() << history_ << ": no script gives such an answer";
        }
    }

    [[nodiscard]] bool isAsLong(std::int64_t real, std::int64_t modelled) const
    {
        return real <= modelled && modelled - real <= elapsedMs() + 2;
    }

    void compareKeys()
    {
        Words words{"EVAL", dumpScript, std::to_string(names.size())};
        words.insert(words.end(), names.begin(), names.end());
        const Value dump = redis_.command(words);
        ASSERT_TRUE(dump.isArray()) << history_ << dump;
        for (std::size_t i = 0; i < names.size(); ++i) {
            const auto& real = dump.elements[i].elements;
            const Keyspace::Key* key = model_.keyspace().find(names[i], nowMs_);
            const std::string kind = key == nullptr ? "none" : key->isHash ? "hash" : "string";
            ASSERT_EQ(real[0].text(), kind) << history_;
            std::vector<std::pair<std::string, std::string>> fields;
            for (std::size_t j = 0; j + 1 < real[1].elements.size(); j += 2) {
                fields.emplace_back(real[1].elements[j].text(), real[1].elements[j + 1].text());
            }
            ASSERT_EQ(fields, key == nullptr ? decltype(fields){} : key->fields) << history_;
            const std::int64_t left = key == nullptr ? -2 : key->expiresAtMs ? *key->expiresAtMs - nowMs_ : -1;
            ASSERT_TRUE(left < 0 ? real[2].integer() == left : isAsLong(real[2].integer(), left))
                << history_ << names[i] << " lives for " << real[2] << " ms, in the model for " << left << " ms";
        }
    }

    /// Time passes, so much that every key is either over or far from it.
    void advance()
    {
        constexpr int tries = 8;
        for (int i = 0; i < tries; ++i) {
            const auto span = static_cast<std::int64_t>(1 + chance_.unit() * (chance_.unit() < 0.8 ? 7e4 : 3e9));
            const auto& keys = model_.keyspace().keys();
            const bool clear = std::all_of(keys.begin(), keys.end(), [&](const auto& entry) {
                const auto& expiresAt = entry.second.expiresAtMs;
                return !expiresAt || *expiresAt < nowMs_ || *expiresAt - nowMs_ - span < 0 ||
                       *expiresAt - nowMs_ - span > margin;
            });
            if (clear) {
                return pass(span);
            }
        }
    }

    void pass(std::int64_t span)
    {
        history_ += "  " + std::to_string(span) + " ms pass\n";
        const Refusal refusal = refusal_;
        setRefusal(Refusal::none);
        begin_ = Clock::now();
        for (const auto& [name, key] : model_.keyspace().keys()) {
            if (key.expiresAtMs) {
                redis_.command({"PEXPIRE", name, std::to_string(*key.expiresAtMs - nowMs_ - span)});
            }
        }
        nowMs_ += span;
        setRefusal(refusal);
    }

    void setRefusal(Refusal refusal)
    {
        refusal_ = refusal;
        model_.keyspace().refusal = refusal;
        redis_.command({"CONFIG", "SET", "maxmemory", refusal == Refusal::outOfMemory ? "1" : "0"});
        redis_.command({"CONFIG", "SET", "min-replicas-to-write", refusal == Refusal::notEnoughReplicas ? "1" : "0"});
    }

    /// What others do to a key.
    void touch(const std::string& name)
    {
        const double choice = chance_.unit();
        history_ += "  others touch " + name + '\n';
        if (choice < 0.25) {
            redis_.command({"DEL", name});
            model_.keyspace().erase(name);
        } else if (choice < 0.5) {
            redis_.command({"PERSIST", name});
            if (model_.keyspace().find(name, nowMs_) != nullptr) {
                model_.keyspace().persist(name);
            }
        } else if (choice < 0.75) {
            redis_.command({"SET", name, "1"});
            model_.keyspace().writeString(name);
        } else { // a foreign holder
            const std::string count = oneOf(std::array<std::string, 3>{"1", "2", "odd"});
            redis_.command({"HSET", name, "0d7c1be2:99", count});
            model_.keyspace().beginScript(nowMs_);
            model_.keyspace().execute({"HSET", name, "0d7c1be2:99", count});
        }
    }

    void listen()
    {
        const std::string channel = detail::lockChannel(names[0]);
        listens_ = !listens_;
        subscriber_.send({listens_ ? "SUBSCRIBE" : "UNSUBSCRIBE", channel});
        hearUntil(listens_ ? "subscribe" : "unsubscribe");
        Request request;
        request.verb = listens_ ? Request::Verb::subscribe : Request::Verb::unsubscribe;
        request.name = channel;
        model_.execute(request, 1, nowMs_);
    }

    /// Reads messages until that answer comes.
    void hearUntil(std::string_view answer)
    {
        while (subscriber_.receive().elements.at(0).text() != answer) {
            ++heard_;
        }
    }

    void compareMessages()
    {
        if (!listens_) { // then a PING has another answer
            listen();
        }
        subscriber_.send({"PING"});
        hearUntil("pong");
        EXPECT_EQ(heard_, told_) << history_;
    }

    LuaRuntime& lua_;
    RawRedis& redis_;
    RawRedis subscriber_{server()};
    Random chance_;
    ModelServer model_;
    std::int64_t nowMs_ = 1'000'000;
    Clock::time_point begin_ = Clock::now();
    Refusal refusal_ = Refusal::none;
    bool listens_ = false;
    int told_ = 0;
    int heard_ = 0;
    std::string history_;
};

} // namespace redislock::simulation
