// The scripts of locks on the model of the server and on a real one.
#include "simulation/model_comparison.hpp"

#include <string_view>

namespace redislock::simulation {
namespace {

using detail::KindTraits;
using detail::LockKind;

const std::array<std::string, 3> names{"stock:1", "a{b}c", std::string("nul\0byte", 8)};
const std::array<std::string, 3> holders{"6f1c0f9e:17", "6f1c0f9e:18", "0d7c1be2:84"};
/// The kinds whose scripts differ; the later ones have more states.
constexpr std::array kinds{detail::LockKind::redisLock, detail::LockKind::spinLock, detail::LockKind::fencedLock,
                           detail::LockKind::fairLock,  detail::LockKind::fairLock, detail::LockKind::readLock,
                           detail::LockKind::readLock,  detail::LockKind::writeLock};
const std::array<std::string, 5> leases{"5000", "20000", "60000", "86400000", "2592000000"};
const std::array<std::string, 16> oddArguments{
    "",           "0",          "-1",  "1e3", "0x10",  " 10", "9",
    "2592000001", "2147483648", "abc", "1.5", "+5000", "007", "99999999999999999999",
    "5000\n",     "5000.0"};

/// How long a waiter's place is kept: no sum of them is near a limit of the scripts.
const std::array<std::string, 4> places{"0", "5003", "21017", "250051"};

class LockComparison final : public ModelComparison {
public:
    LockComparison(LuaRuntime& lua, testing::RedisServer& server, RawRedis& redis, std::uint64_t seed)
        : ModelComparison(lua, redis, seed, [this](LinkId, const Reply&) { ++told_; }), lua_(lua), subscriber_(server)
    {
        usual_.fill(oneOf(kinds));
        if (usual_[0] == LockKind::readLock) {
            usual_[1] = LockKind::writeLock;
        }
    }

private:
    void doSomething() override
    {
        const double choice = chance_.unit();
        if (choice < 0.64) {
            return runScript();
        }
        if (choice < 0.72) {
            return advance();
        }
        if (choice < 0.77) {
            return changeRefusal();
        }
        if (choice < 0.80) {
            redis_.command({"SCRIPT", "FLUSH"});
            return model_.forgetScripts();
        }
        if (choice < 0.85) {
            return listen();
        }
        if (!isRefusing()) {
            touch(oneOf(names));
        }
    }

    /// A script with valid arguments, or with one that is odd, missing or too many, or with a wrong number of keys. A
    /// sequence uses mostly one kind, or both halves of a read/write lock.
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
            use.arguments.push_back(oneOf(std::array<std::string, 3>{"0", "1", "4294967295"}));
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

    /// The end of a queue's channel name before the holder.
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
            sent[1] = request.script->text();
            request.byText = true;
            real = redis_.command(sent);
            modelled = model_.execute(request, 0, nowMs_);
        }
        compare(real, modelled);
        history_ += '\n';
    }

    /// A script gets one key too few or too many. The model of the server never gets such a request, only its scripts
    /// do.
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
        sent[1] = request.script->text();
        const Value real = redis_.command(sent);
        model_.keyspace().beginScript(nowMs_);
        compare(real, lua_.run(*request.script, model_.keyspace(), keys, request.arguments));
        redis_.command({"SCRIPT", "FLUSH"});
        model_.forgetScripts();
        history_ += "  " + std::string(request.script->name) + " with " + std::to_string(keys.size()) + " keys\n";
    }

    /// Changes of a lock by other programs.
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
        } else if (choice < 0.85) { // a waiter in the queue whose place is not known
            write({"RPUSH", detail::prefixed(detail::queuePrefix, name), "0d7c1be2:99"});
        } else if (choice < 0.95) { // a waiter of Redisson's
            const auto& who = oneOf(std::array<std::string, 2>{"0d7c1be2:97", "0d7c1be2:98"});
            write({"LREM", detail::prefixed(detail::queuePrefix, name), "0", who});
            write({"RPUSH", detail::prefixed(detail::queuePrefix, name), who});
            writeMoment(detail::prefixed(detail::queueTimesPrefix, name), who,
                        oneOf(std::array<std::int64_t, 3>{40'009, 290'003, 4'000'037}));
        } else { // it leaves
            write({"LREM", detail::prefixed(detail::queuePrefix, name), "0", "0d7c1be2:97"});
            write({"ZREM", detail::prefixed(detail::queueTimesPrefix, name), "0d7c1be2:97"});
        }
    }

    void listen()
    {
        listens_ = !listens_;
        Words channels{detail::prefixed(detail::lockChannelPrefix, names[0]),
                       detail::prefixed(detail::readWriteChannelPrefix, names[0])};
        for (const auto& holder : holders) {
            channels.push_back(channels[0] + ":" + holder);
        }
        channels.push_back(std::string(detail::lockChannelPrefix) + ":6f1c0f9e"); // the channel of grants
        for (const auto& channel : channels) {
            subscriber_.send({listens_ ? "SUBSCRIBE" : "UNSUBSCRIBE", channel});
            hearUntil(listens_ ? "subscribe" : "unsubscribe");
            Request request;
            request.verb = listens_ ? Request::Verb::subscribe : Request::Verb::unsubscribe;
            request.name = channel;
            model_.execute(request, 1, nowMs_);
        }
    }

    /// Reads messages until @p answer comes.
    void hearUntil(std::string_view answer)
    {
        while (subscriber_.receive().elements.at(0).text() != answer) {
            ++heard_;
        }
    }

    void compareMessages() override
    {
        if (!listens_) { // then a PING has another answer
            listen();
        }
        subscriber_.send({"PING"});
        hearUntil("pong");
        EXPECT_EQ(heard_, told_) << history_;
    }

    LuaRuntime& lua_;
    RawRedis subscriber_;
    std::array<LockKind, 2> usual_;
    bool listens_ = false;
    int told_ = 0;
    int heard_ = 0;
};

TEST(Model, AnswersAndRemembersAsARealServer)
{
    compareWithARealServer<LockComparison>("evalsha");
}

} // namespace
} // namespace redislock::simulation
