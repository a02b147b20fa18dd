/// @file
/// The model of the server beside a real one.
#pragma once

#include "redislock/detail/protocol/fault.hpp"
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
#include <string_view>
#include <utility>
#include <vector>

namespace redislock::simulation {

inline constexpr int steps = 60;
inline constexpr std::int64_t margin = 3000; ///< no key is left with less: real time must not end it

inline const std::array<std::string, 3> names{"stock:1", "a{b}c", std::string("nul\0byte", 8)};
inline const std::array<std::string, 3> holders{"6f1c0f9e:17", "6f1c0f9e:18", "0d7c1be2:84"};
/// Those whose scripts differ; the later ones have more states.
inline constexpr std::array kinds{detail::LockKind::redisLock, detail::LockKind::spinLock, detail::LockKind::fencedLock,
                                  detail::LockKind::fairLock,  detail::LockKind::fairLock, detail::LockKind::readLock,
                                  detail::LockKind::readLock,  detail::LockKind::writeLock};
inline const std::array<std::string, 5> leases{"5000", "20000", "60000", "86400000", "2592000000"};
inline const std::array<std::string, 16> oddArguments{
    "",           "0",          "-1",  "1e3", "0x10",  " 10", "9",
    "2592000001", "2147483648", "abc", "1.5", "+5000", "007", "99999999999999999999",
    "5000\n",     "5000.0"};

/// How long a waiter's place is kept: no sum of them is near a limit of the scripts.
inline const std::array<std::string, 4> places{"0", "5003", "21017", "250051"};

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
        usual_.fill(oneOf(kinds));
        if (usual_[0] == LockKind::readLock) {
            usual_[1] = LockKind::writeLock;
        }
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
    using KindTraits = detail::KindTraits;
    using LockKind = detail::LockKind;
    using Words = std::vector<std::string>;
    using RawRedis = test::RawRedis;
    using Value = test::Value;

    template <class Array>
    const typename Array::value_type& oneOf(const Array& values)
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
        if (choice < 0.64) {
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

    /// A script with valid arguments, or with one that is odd, missing or too many, or with a wrong number of keys. Mostly of
    /// one kind in a sequence, or of both halves of a read/write lock.
    void runScript()
    {
        const KindTraits& kind = KindTraits::of(chance_.unit() < 0.9 ? oneOf(usual_) : oneOf(kinds));
        const std::string holder = oneOf(holders) + std::string(kind.holderSuffix);
        const std::string& name = oneOf(names);
        const std::string channel =
            kind.channelPrefix.empty() ? "" : detail::prefixed(kind.channelPrefix, name) + tail(kind);
        struct Use {
            detail::ScriptUse KindTraits::*script;
            Words arguments;
        };
        const std::array uses{
            Use{&KindTraits::lock, {holder, oneOf(leases), oneOf(std::array<std::string, 4>{"1", "1", "2", "3"})}},
            Use{&KindTraits::lock, {holder, oneOf(leases), "1"}},
            Use{&KindTraits::unlock,
                {holder, oneOf(std::array<std::string, 4>{"0", "0", "1", "2"}), oneOf(leases), channel}},
            Use{&KindTraits::renew, {holder, oneOf(leases)}},
            Use{&KindTraits::forceUnlock, {holder, channel}},
            Use{&KindTraits::pttl, {}},
            Use{&KindTraits::holder, {}},
        };
        Use use = oneOf(uses);
        if (use.script == &KindTraits::lock && kind.keepsPlace) {
            use.arguments.push_back(oneOf(places));
        }
        if (use.script == &KindTraits::lock && kind.asking == detail::Asking::queue) {
            use.arguments.push_back(channel);
        } else if (use.script == &KindTraits::lock && kind.asking == detail::Asking::each) {
            const std::string writer = oneOf(holders) + ":write";
            use.arguments.push_back(oneOf(std::array<std::string, 3>{"", "", writer}));
        }
        Request request;
        request.run(kind, use.script, name, std::move(use.arguments));
        Words& arguments = request.arguments;
        const double odd = chance_.unit();
        bool oddKeys = false;
        if (odd < 0.12 && !arguments.empty()) {
            const auto which = static_cast<std::size_t>(chance_.unit() * static_cast<double>(arguments.size()));
            const bool isPlace = request.does(&KindTraits::lock) && which == 3;
            const std::string& value = oneOf(oddArguments);
            arguments[which] = isPlace && value == "9" ? "09" : value; // real time would end such a place
        } else if (odd < 0.14 && !arguments.empty()) {
            arguments.pop_back();
        } else if (odd < 0.16) {
            arguments.emplace_back("1");
        } else {
            oddKeys = odd < 0.18;
        }
        oddKeys ? executeWithOddKeys(request) : execute(request);
    }

    /// What the channels of a queue end with before the holder.
    static std::string tail(const KindTraits& kind) { return kind.asking == detail::Asking::queue ? ":" : ""; }

    static Words words(const Request& request, const Words& keys)
    {
        Words all{"EVALSHA", std::string(request.script->sha1), std::to_string(keys.size())};
        all.insert(all.end(), keys.begin(), keys.end());
        all.insert(all.end(), request.arguments.begin(), request.arguments.end());
        return all;
    }
    static Words keysOf(const Request& request)
    {
        Words keys{request.name};
        keys.insert(keys.end(), request.otherKeys.begin(), request.otherKeys.end());
        return keys;
    }

    void execute(Request& request)
    {
        history_ += "  " + std::string(request.script->name) + " of " + request.name;
        for (const auto& word : request.arguments) {
            history_ += " '" + word + "'";
        }
        Words sent = words(request, keysOf(request));
        Value real = redis_.command(sent);
        Reply modelled = model_.execute(request, 0, nowMs_);
        const bool unknown = real.isError() && real.text().starts_with("NOSCRIPT");
        ASSERT_EQ(modelled.isError() && modelled.text.starts_with("NOSCRIPT"), unknown) << history_;
        if (unknown) {
            sent[0] = "EVAL";
            sent[1] = request.script->text;
            request.byText = true;
            real = redis_.command(sent);
            modelled = model_.execute(request, 0, nowMs_);
        }
        compare(real, modelled);
        history_ += '\n';
    }

    /// One key too few or too many. The server's model is never sent such a request; its scripts are.
    void executeWithOddKeys(const Request& request)
    {
        Words keys = keysOf(request);
        if (chance_.unit() < 0.5) {
            keys.pop_back();
        } else {
            keys.push_back(names[1]);
        }
        Words sent = words(request, keys);
        sent[0] = "EVAL";
        sent[1] = request.script->text;
        const Value real = redis_.command(sent);
        model_.keyspace().beginScript(nowMs_);
        compare(real, lua_.run(*request.script, model_.keyspace(), keys, request.arguments));
        redis_.command({"SCRIPT", "FLUSH"});
        model_.forgetScripts();
        history_ += "  " + std::string(request.script->name) + " with " + std::to_string(keys.size()) + " keys\n";
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
        case Reply::Kind::array:
            ASSERT_TRUE(real.isArray() && real.elements.size() == 1 && modelled.elements.size() == 1)
                << history_ << real;
            EXPECT_TRUE(isSameToken(real.elements[0].text(), modelled.elements[0].text))
                << history_ << " -> " << real << ", model: " << modelled.elements[0].text;
            break;
        default:
            ADD_FAILURE() << history_ << ": no script gives such an answer";
        }
    }

    [[nodiscard]] bool isAsLong(std::int64_t real, std::int64_t modelled) const
    {
        return real <= modelled && modelled - real <= elapsedMs() + 2;
    }

    // What a script takes from the clock is compared by its distance from what the clock shows.

    static constexpr std::size_t digitsOfTime = 16; ///< in microseconds; a token with more was written by others

    [[nodiscard]] bool isSameToken(const std::string& real, const std::string& modelled) const
    {
        if (modelled.size() > digitsOfTime) {
            return real == modelled;
        }
        const std::int64_t later = (std::stoll(real) - realMs_ * 1000) - (std::stoll(modelled) - modelledMs() * 1000);
        return later >= -1000 && later <= (elapsedMs() + 2) * 1000;
    }
    [[nodiscard]] bool isSameScore(const std::string& real, const std::string& modelled) const
    {
        const std::int64_t later = (std::stoll(real) - realMs_) - (std::stoll(modelled) - modelledMs());
        return later >= 0 && later <= elapsedMs() + 2;
    }
    [[nodiscard]] std::int64_t modelledMs() const noexcept { return Keyspace::epochMs + nowMs_; }

    void compareKeys()
    {
        auto real = dumpOf(redis_);
        for (const auto& [name, unused] : model_.keyspace().keys()) {
            const Keyspace::Key* key = model_.keyspace().find(name, nowMs_);
            ASSERT_EQ(real.contains(name), key != nullptr) << history_ << name;
            if (key == nullptr) {
                continue;
            }
            const DumpedKey& other = real.at(name);
            ASSERT_EQ(other.type, key->type) << history_ << name;
            ASSERT_EQ(other.fields.size(), key->fields.size()) << history_ << name;
            auto modelled = key->fields;
            if (key->type == Keyspace::Type::sortedSet) { // scores that are equal there differ by what really passed
                std::sort(modelled.begin(), modelled.end());
            }
            for (std::size_t i = 0; i < modelled.size(); ++i) {
                compareField(name, other.fields[i], modelled[i]);
            }
            const std::int64_t left = key->expiresAtMs ? *key->expiresAtMs - nowMs_ : -1;
            ASSERT_TRUE(left < 0 ? other.leftMs == left : isAsLong(other.leftMs, left))
                << history_ << name << " lives for " << other.leftMs << " ms, in the model for " << left << " ms";
            real.erase(name);
        }
        ASSERT_TRUE(real.empty()) << history_ << real.begin()->first << " is not in the model";
    }

    using Field = std::pair<std::string, std::string>;

    void compareField(const std::string& key, const Field& real, const Field& modelled) const
    {
        if (key.starts_with(detail::tokenPrefix)) {
            ASSERT_TRUE(isSameToken(real.first, modelled.first)) << history_ << real.first << ", " << modelled.first;
        } else if (key.starts_with(detail::queueTimesPrefix)) {
            ASSERT_EQ(real.first, modelled.first) << history_ << key;
            ASSERT_TRUE(isSameScore(real.second, modelled.second))
                << history_ << real.second << ", " << modelled.second;
        } else {
            ASSERT_EQ(real, modelled) << history_ << key;
        }
    }

    /// Whether a moment is either over or far from it after that time.
    [[nodiscard]] bool isClear(std::int64_t momentMs, std::int64_t span) const
    {
        const std::int64_t left = momentMs - nowMs_;
        return left < 0 || left - span < 0 || left - span > margin;
    }
    /// Whether it is that of a writer that waits, which means something else from the first half of its time on.
    [[nodiscard]] static bool isWaitingWriter(const Keyspace::Key& key)
    {
        return key.type == Keyspace::Type::string && key.expiresAtMs && key.fields[0].first.ends_with(":write");
    }
    [[nodiscard]] bool isClear(const Keyspace::Key& key, std::int64_t span) const
    {
        return (!key.expiresAtMs || isClear(*key.expiresAtMs, span)) &&
               (!isWaitingWriter(key) || isClear(*key.expiresAtMs - std::stoll(key.fields[0].first), span)) &&
               (key.type != Keyspace::Type::sortedSet ||
                std::all_of(key.fields.begin(), key.fields.end(), [&](const Field& member) {
                    return isClear(std::stoll(member.second) - Keyspace::epochMs, span);
                }));
    }

    /// Time passes, so much that every key and place is either over or far from it.
    void advance()
    {
        constexpr int tries = 8;
        for (int i = 0; i < tries; ++i) {
            const auto span = static_cast<std::int64_t>(1 + chance_.unit() * (chance_.unit() < 0.8 ? 7e4 : 3e9));
            const auto& keys = model_.keyspace().keys();
            const bool clear =
                std::all_of(keys.begin(), keys.end(), [&](const auto& entry) { return isClear(entry.second, span); });
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
        nowMs_ += span;
        begin_ = Clock::now();
        realMs_ = realMs();
        for (const auto& [name, key] : model_.keyspace().keys()) {
            if (key.type == Keyspace::Type::sortedSet) {
                for (const auto& [member, score] : key.fields) {
                    redis_.command({"ZADD", name, std::to_string(std::stoll(score) - modelledMs() + realMs_), member});
                }
            } else if (name.starts_with(detail::tokenPrefix) && key.fields[0].first.size() <= digitsOfTime) {
                const auto token = std::stoll(key.fields[0].first) + (realMs_ - modelledMs()) * 1000;
                redis_.command({"SET", name, std::to_string(token), "KEEPTTL"});
            }
            if (key.expiresAtMs) {
                redis_.command({"PEXPIRE", name, std::to_string(*key.expiresAtMs - nowMs_)});
            }
        }
        setRefusal(refusal);
    }

    std::int64_t realMs()
    {
        const Value time = redis_.command({"TIME"});
        return std::stoll(time.elements.at(0).text()) * 1000 + std::stoll(time.elements.at(1).text()) / 1000;
    }

    void setRefusal(Refusal refusal)
    {
        refusal_ = refusal;
        model_.keyspace().refusal = refusal;
        redis_.command({"CONFIG", "SET", "maxmemory", refusal == Refusal::outOfMemory ? "1" : "0"});
        redis_.command({"CONFIG", "SET", "min-replicas-to-write", refusal == Refusal::notEnoughReplicas ? "1" : "0"});
    }

    /// What others do to a lock.
    void touch(const std::string& name)
    {
        const double choice = chance_.unit();
        history_ += "  others touch " + name + " " + std::to_string(choice) + '\n';
        if (choice < 0.2) {
            redis_.command({"DEL", name});
            model_.keyspace().erase(name);
        } else if (choice < 0.4) {
            redis_.command({"PERSIST", name});
            if (model_.keyspace().find(name, nowMs_) != nullptr) {
                model_.keyspace().persist(name);
            }
        } else if (choice < 0.5) {
            redis_.command({"SET", name, "1"});
            model_.keyspace().writeString(name);
        } else if (choice < 0.7) { // a foreign holder
            write({"HSET", name, "0d7c1be2:99", oneOf(std::array<std::string, 3>{"1", "2", "odd"})});
        } else if (choice < 0.8) { // a counter that ran ahead
            write({"SET", detail::prefixed(detail::tokenPrefix, name), "9223372036854770000"});
        } else { // somebody in the queue whose place is not known
            write({"RPUSH", detail::prefixed(detail::queuePrefix, name), "0d7c1be2:99"});
        }
    }

    void write(const Words& command)
    {
        redis_.command(command);
        model_.keyspace().beginScript(nowMs_);
        model_.keyspace().execute(command);
    }

    void listen()
    {
        listens_ = !listens_;
        Words channels{detail::prefixed(detail::lockChannelPrefix, names[0]),
                       detail::prefixed(detail::readWriteChannelPrefix, names[0])};
        for (const auto& holder : holders) {
            channels.push_back(channels[0] + ":" + holder);
        }
        for (const auto& channel : channels) {
            subscriber_.send({listens_ ? "SUBSCRIBE" : "UNSUBSCRIBE", channel});
            hearUntil(listens_ ? "subscribe" : "unsubscribe");
            Request request;
            request.verb = listens_ ? Request::Verb::subscribe : Request::Verb::unsubscribe;
            request.name = channel;
            model_.execute(request, 1, nowMs_);
        }
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
    std::array<LockKind, 2> usual_;
    std::int64_t nowMs_ = 1'000'000;
    Clock::time_point begin_ = Clock::now();
    std::int64_t realMs_ = realMs(); ///< what the real server's clock showed then
    Refusal refusal_ = Refusal::none;
    bool listens_ = false;
    int told_ = 0;
    int heard_ = 0;
    std::string history_;
};

} // namespace redislock::simulation
