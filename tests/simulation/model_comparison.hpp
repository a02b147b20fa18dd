/// @file
/// The model of the server beside a real one: the same random steps on both, and the same replies and keys after each.
///
/// Time passes on the real server without sleeping: a step forward gives every key the rest of its time to live, and an
/// expiry in the past if nothing is left. The real time that passes meanwhile is measured, and allowed for; leases are
/// so long that it does not matter otherwise.
#pragma once

#include "redislock/random.hpp"
#include "redislock/testing/redis_server.hpp"
#include "simulation/model_server.hpp"
#include "simulation/server_dump.hpp"
#include "support/raw_redis.hpp"
#include "wire/fault.hpp"
#include "wire/key_schema.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace redislock::simulation {

/// One sequence of random steps on both.
class ModelComparison {
public:
    ModelComparison(const ModelComparison&) = delete;
    ModelComparison& operator=(const ModelComparison&) = delete;
    virtual ~ModelComparison() = default;

    /// @return false when this machine stood still for so long that the comparison proves nothing.
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

protected:
    using Words = std::vector<std::string>;
    using RawRedis = test::RawRedis;
    using Value = test::Value;

    ModelComparison(LuaRuntime& lua, RawRedis& redis, std::uint64_t seed,
                    std::function<void(LinkId, const Reply&)> push)
        : redis_(redis), chance_(seed), model_(lua, std::move(push))
    {
        setRefusal(Refusal::none);
        redis_.command({"FLUSHALL"});
        redis_.command({"SCRIPT", "FLUSH"});
        realMs_ = realMs();
    }

    virtual void doSomething() = 0;
    virtual void compareMessages() = 0;

    template <class Array>
    const typename Array::value_type& oneOf(const Array& values)
    {
        return values[static_cast<std::size_t>(chance_.unit() * static_cast<double>(values.size()))];
    }

    [[nodiscard]] bool isRefusing() const noexcept { return refusal_ != Refusal::none; }

    /// Switches the refusal of writes on or off.
    void changeRefusal()
    {
        setRefusal(oneOf(std::array{Refusal::none, Refusal::none, Refusal::outOfMemory, Refusal::notEnoughReplicas}));
    }

    /// Changes by other programs, on both servers.
    void write(const Words& command)
    {
        redis_.command(command);
        model_.keyspace().beginScript(nowMs_);
        model_.keyspace().execute(command);
    }

    /// Puts a member into a sorted set with a time that is @p aheadMs ahead.
    void writeMoment(const std::string& name, const std::string& member, std::int64_t aheadMs)
    {
        redis_.command({"ZADD", name, std::to_string(realMs() + aheadMs), member});
        model_.keyspace().beginScript(nowMs_);
        model_.keyspace().execute({"ZADD", name, std::to_string(modelledMs() + aheadMs), member});
    }

    void compare(const Value& real, const Reply& modelled)
    {
        SCOPED_TRACE(history_);
        switch (modelled.kind) {
        case Reply::Kind::nil:
            EXPECT_TRUE(real.isNil()) << real;
            break;
        case Reply::Kind::text:
            EXPECT_TRUE(isSameText(real, modelled)) << real << ", model: " << modelled.text;
            break;
        case Reply::Kind::integer:
            EXPECT_TRUE(isSameNumber(real, modelled)) << real << ", model: " << modelled.integer;
            break;
        case Reply::Kind::error:
            ASSERT_TRUE(real.isError()) << real << ", model: " << modelled.text;
            EXPECT_EQ(detail::classify(real.text()), detail::classify(modelled.text))
                << real << ", model: " << modelled.text;
            if (modelled.text.starts_with("ERR redislock")) {
                EXPECT_EQ(real.text(), modelled.text);
            }
            break;
        case Reply::Kind::array:
            ASSERT_TRUE(real.isArray() && real.elements.size() == modelled.elements.size()) << real;
            for (std::size_t i = 0; i < modelled.elements.size(); ++i) {
                const Reply& element = modelled.elements[i];
                EXPECT_TRUE(element.kind == Reply::Kind::nil    ? real.elements[i].isNil()
                            : element.kind == Reply::Kind::text ? isSameText(real.elements[i], element)
                                                                : isSameNumber(real.elements[i], element))
                    << real << ", element " << i;
            }
            break;
        default:
            ADD_FAILURE() << "no script gives such an answer";
        }
    }

    /// Lets so much time pass that every relevant moment is either over or far away.
    void advance()
    {
        constexpr int tries = 8;
        for (int i = 0; i < tries; ++i) {
            const auto span = static_cast<std::int64_t>(1 + chance_.unit() * (chance_.unit() < 0.8 ? 7e4 : 3e9));
            const auto& keys = model_.keyspace().keys();
            const bool clear = std::all_of(keys.begin(), keys.end(), [&](const auto& entry) {
                const auto ends = entry.first.starts_with(detail::queuePlacesPrefix) ? endsOfPlaces(entry.second)
                                                                                     : std::vector<std::int64_t>();
                return isClear(entry.second, span) && std::all_of(ends.begin(), ends.end(), [&](std::int64_t end) {
                           return isClear(end - Keyspace::epochMs, span);
                       });
            });
            if (clear) {
                return pass(span);
            }
        }
    }

    RawRedis& redis_;
    Random chance_;
    ModelServer model_;
    std::int64_t nowMs_ = 1'000'000;
    std::string history_; ///< the steps so far

private:
    using Clock = std::chrono::steady_clock;
    using Field = std::pair<std::string, std::string>;

    static constexpr int steps = 60;
    static constexpr std::int64_t margin = 3000;    ///< no key is left with less, so that it does not end in real time
    static constexpr std::size_t digitsOfTime = 16; ///< in microseconds; a longer token is from another program
    static constexpr std::int64_t clocks = 30'000;  ///< by how much Redisson's may be off
    static constexpr const char* noEnd = "922337203685477"; ///< the score of a permit without a lease

    [[nodiscard]] std::int64_t elapsedMs() const
    {
        return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin_).count();
    }
    [[nodiscard]] std::int64_t modelledMs() const noexcept { return Keyspace::epochMs + nowMs_; }

    // Values that a script takes from the clock are compared by their distance from the clock.

    /// Real time has made a real time to live a little shorter.
    [[nodiscard]] bool isAsLong(std::int64_t real, std::int64_t modelled) const
    {
        return real <= modelled && modelled - real <= elapsedMs() + 2;
    }
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
        const std::int64_t most = 2 * elapsedMs() + 4; // it may be the sum of several moments
        return later >= -most && later <= most;
    }
    /// What a record of a waiter for a fair lock consists of: moments, spans, and text.
    static std::vector<std::string> wordsOf(const std::string& record)
    {
        std::istringstream stream(record);
        return {std::istream_iterator<std::string>(stream), {}};
    }
    [[nodiscard]] static bool isNumber(const std::string& word)
    {
        return !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
    }
    [[nodiscard]] static bool isMoment(const std::string& word)
    {
        constexpr std::size_t digits = 13; // ms since 1970
        return isNumber(word) && word.size() == digits;
    }
    [[nodiscard]] bool isSamePlace(const Field& real, const Field& modelled) const
    {
        const auto a = wordsOf(real.second);
        const auto b = wordsOf(modelled.second);
        return real.first == modelled.first &&
               std::equal(a.begin(), a.end(), b.begin(), b.end(), [this](auto& x, auto& y) {
                   if (isMoment(x) && isMoment(y)) {
                       return isSameScore(x, y);
                   }
                   return x == y || (isNumber(x) && isNumber(y) &&
                                     std::abs(std::stoll(x) - std::stoll(y)) <= 2 * elapsedMs() + 4);
               });
    }
    [[nodiscard]] std::string atRealTime(const std::string& record) const
    {
        std::string moved;
        for (const auto& word : wordsOf(record)) {
            moved += (moved.empty() ? "" : " ") +
                     (isMoment(word) ? std::to_string(std::stoll(word) - modelledMs() + realMs_) : word);
        }
        return moved;
    }
    /// Until when places may be kept.
    [[nodiscard]] static std::vector<std::int64_t> endsOfPlaces(const Keyspace::Key& places)
    {
        constexpr std::int64_t grace = 2000;
        std::vector<std::int64_t> ends;
        for (const auto& [holder, record] : places.fields) {
            const auto words = wordsOf(record);
            if (!words.empty() && isMoment(words[0])) {
                ends.push_back(std::stoll(words[0]));
            }
            const auto* first = holder == "redisson" && words.size() == 3 ? places.find(words[2]) : nullptr;
            const auto known = wordsOf(first == nullptr ? std::string() : *first);
            if (known.size() >= 3) {
                ends.push_back(std::stoll(words[0]) + std::stoll(known[2]) + (known.size() > 3 ? clocks : 0) + grace);
            }
        }
        return ends;
    }

    /// A number in a reply's text is a token.
    [[nodiscard]] bool isSameText(const Value& real, const Reply& modelled) const
    {
        const bool isToken =
            modelled.text.size() == digitsOfTime && modelled.text.find_first_not_of("0123456789") == std::string::npos;
        return real.isString() && (isToken ? isSameToken(real.text(), modelled.text) : real.text() == modelled.text);
    }
    /// A number may be a time to live; a large number of permits is not one.
    [[nodiscard]] bool isSameNumber(const Value& real, const Reply& modelled) const
    {
        return real.isInteger() && (real.integer() == modelled.integer ||
                                    (modelled.integer > margin && isAsLong(real.integer(), modelled.integer)));
    }

    void compareKeys()
    {
        auto real = dumpOf(redis_);
        for (const auto& [name, unused] : model_.keyspace().keys()) {
            const Keyspace::Key* key = model_.keyspace().find(name, nowMs_);
            ASSERT_EQ(real.contains(name), key != nullptr) << history_ << name;
            if (key != nullptr) {
                compareKey(name, real.at(name), *key);
                real.erase(name);
            }
        }
        ASSERT_TRUE(real.empty()) << history_ << real.begin()->first << " is not in the model";
    }

    void compareKey(const std::string& name, const DumpedKey& real, const Keyspace::Key& modelled) const
    {
        ASSERT_EQ(real.type, modelled.type) << history_ << name;
        ASSERT_EQ(real.fields.size(), modelled.fields.size()) << history_ << name;
        auto fields = modelled.fields;
        if (modelled.type == Keyspace::Type::sortedSet) { // equal scores in the model differ by real time
            std::sort(fields.begin(), fields.end());
        }
        for (std::size_t i = 0; i < fields.size(); ++i) {
            if (name.starts_with(detail::queuePlacesPrefix)) {
                ASSERT_TRUE(isSamePlace(real.fields[i], fields[i]))
                    << history_ << name << ": " << real.fields[i].second << ", " << fields[i].second;
                continue;
            }
            const bool isScore = modelled.type == Keyspace::Type::sortedSet && fields[i].second != noEnd;
            if (name.starts_with(detail::tokenPrefix)) {
                ASSERT_TRUE(isSameToken(real.fields[i].first, fields[i].first))
                    << history_ << real.fields[i].first << ", " << fields[i].first;
            } else if (isScore) {
                ASSERT_EQ(real.fields[i].first, fields[i].first) << history_ << name;
                ASSERT_TRUE(isSameScore(real.fields[i].second, fields[i].second))
                    << history_ << name << ": " << real.fields[i].second << ", " << fields[i].second;
            } else {
                ASSERT_EQ(real.fields[i], fields[i]) << history_ << name;
            }
        }
        const std::int64_t left = modelled.expiresAtMs ? *modelled.expiresAtMs - nowMs_ : -1;
        ASSERT_TRUE(left < 0 ? real.leftMs == left : isAsLong(real.leftMs, left))
            << history_ << name << " lives for " << real.leftMs << " ms, in the model for " << left << " ms";
    }

    /// Whether a moment is either over or far away after that time.
    [[nodiscard]] bool isClear(std::int64_t momentMs, std::int64_t span) const
    {
        const std::int64_t left = momentMs - nowMs_;
        return left < 0 || left - span < 0 || left - span > margin;
    }
    [[nodiscard]] bool isClear(const Keyspace::Key& key, std::int64_t span) const
    {
        return (!key.expiresAtMs || isClear(*key.expiresAtMs, span)) &&
               (!isWaitingWriter(key) || isClear(*key.expiresAtMs - std::stoll(key.fields[0].first), span)) &&
               (key.type != Keyspace::Type::sortedSet ||
                std::all_of(key.fields.begin(), key.fields.end(), [&](const Field& member) {
                    const auto end = member.second == noEnd ? 0 : std::stoll(member.second) - Keyspace::epochMs;
                    return end == 0 || (isClear(end, span) && isClear(end + clocks, span));
                }));
    }
    /// Whether the key is that of a waiting writer, whose meaning changes after the first half of its time.
    [[nodiscard]] static bool isWaitingWriter(const Keyspace::Key& key)
    {
        return key.type == Keyspace::Type::string && key.expiresAtMs && key.fields[0].first.ends_with(":write");
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
                    if (score != noEnd) {
                        redis_.command(
                            {"ZADD", name, std::to_string(std::stoll(score) - modelledMs() + realMs_), member});
                    }
                }
            } else if (name.starts_with(detail::queuePlacesPrefix)) {
                for (const auto& [holder, record] : key.fields) {
                    redis_.command({"HSET", name, holder, atRealTime(record)});
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

    Clock::time_point begin_ = Clock::now();
    std::int64_t realMs_ = 0; ///< the time of the real server's clock at that moment
    Refusal refusal_ = Refusal::none;
};

/// Runs the usual number of sequences for this build, or the number in REDISLOCK_MODEL_SEQUENCES.
/// @param script how the scripts are sent.
template <class Comparison>
void compareWithARealServer(const char* script)
{
    const char* asked = std::getenv("REDISLOCK_MODEL_SEQUENCES");
    const std::uint64_t sequences = asked != nullptr ? std::stoull(asked) : REDISLOCK_MODEL_SEQUENCES;
    testing::RedisServer server({.unixSocketOnly = true});
    LuaRuntime lua;
    test::RawRedis redis(server);
    redis.command({"CONFIG", "SET", "maxmemory-policy", "noeviction"});
    for (std::uint64_t seed = 1; seed <= sequences && !::testing::Test::HasFailure(); ++seed) {
        while (!Comparison(lua, server, redis, seed).run()) { // nothing was judged; the time for the test ends it
        }
    }
    EXPECT_GT(redis.commandCalls(script), 10U * sequences);
}

} // namespace redislock::simulation
