// The scripts of semaphores and latches on the model of the server and on a real one.
#include "simulation/model_comparison.hpp"

namespace redislock::simulation {
namespace {

namespace scripts = detail::scripts;

const std::string counterName = "stock:1";
const std::string counterChannel = "channel";
const std::string timeouts = detail::suffixed(counterName, "timeout");
const std::array<std::string, 3> ids{"aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb", "cccccccccccccccc"};
const std::array<std::string, 4> permitLeases{"0", "5000", "60000", "2592000000"};
const std::array<std::string, 3> keeps{"0", "60000", "80000"};
const std::array<std::string, 4> amounts{"1", "2", "3", "2147483647"};
const std::array<std::string, 9> oddCounterArguments{"", "0", "-1", "1e3", " 10", "2147483648", "abc", "1.5", "007"};

class CounterComparison final : public ModelComparison {
public:
    CounterComparison(LuaRuntime& lua, testing::RedisServer& server, RawRedis& redis, std::uint64_t seed)
        : ModelComparison(lua, redis, seed, [](LinkId, const Reply&) {}), subscriber_(server)
    {
        model_.keyspace().publish = [this](const std::string& to, const std::string& message) {
            if (to == counterChannel) { // an odd argument may be another channel
                told_.push_back(message);
            }
            return 1;
        };
        subscriber_.command({"SUBSCRIBE", counterChannel});
    }

private:
    std::string record() { return detail::requestKey(counterName, oneOf(ids)); }

    void doSomething() override
    {
        const double choice = chance_.unit();
        if (choice < 0.78) {
            return runScript();
        }
        if (choice < 0.88) {
            return advance();
        }
        if (choice < 0.93) {
            return changeRefusal();
        }
        if (!isRefusing()) {
            touch();
        }
    }

    void runScript()
    {
        const std::string keep = "60000";
        const std::string& id = oneOf(ids);
        const std::string forId = detail::requestKey(counterName, id);
        struct Call {
            const detail::Script* script;
            Words keys;
            Words arguments;
        };
        const std::array calls{
            Call{&scripts::counterTrySet,
                 {record(), record()},
                 {oneOf(amounts), oneOf(permitLeases), counterChannel, "1", keep}},
            Call{&scripts::counterGet, {}, {}},
            Call{&scripts::counterDelete, {oneOf(std::array{counterName, timeouts}), record()}, {counterChannel, keep}},
            Call{&scripts::semaphoreAcquire, {record(), record()}, {oneOf(amounts), keep}},
            Call{&scripts::semaphoreAcquire, {record()}, {oneOf(amounts), keep}},
            Call{&scripts::semaphoreAdd, {record(), record()}, {oneOf(amounts), "0", counterChannel, keep}},
            Call{&scripts::semaphoreAdd, {record()}, {"-" + oneOf(amounts), "1", counterChannel, keep}},
            Call{&scripts::semaphoreDrain, {record(), record()}, {keep}},
            Call{&scripts::semaphoreWithdraw, {record()}, {counterChannel, keep}},
            Call{&scripts::permitExpirableSemaphoreAcquire,
                 {timeouts, forId},
                 {id, oneOf(permitLeases), counterChannel}},
            Call{&scripts::permitExpirableSemaphoreAcquire,
                 {timeouts, forId},
                 {id, oneOf(permitLeases), counterChannel}},
            Call{&scripts::permitExpirableSemaphoreRelease, {timeouts, forId}, {id, counterChannel, oneOf(keeps)}},
            Call{&scripts::permitExpirableSemaphoreLease,
                 {timeouts, forId},
                 {id, oneOf(permitLeases), std::to_string(static_cast<int>(chance_.unit() * 4)), oneOf(keeps)}},
            Call{&scripts::permitExpirableSemaphoreLease, {timeouts, forId}, {id, "", "0", "0"}},
            Call{&scripts::permitExpirableSemaphoreCount, {timeouts}, {counterChannel}},
            Call{&scripts::permitExpirableSemaphoreSet, {timeouts, record()}, {oneOf(amounts), counterChannel, keep}},
            Call{&scripts::countDownLatchCountDown, {record(), record()}, {counterChannel, keep}},
        };
        Call call = oneOf(calls);
        const double odd = chance_.unit();
        if (odd < 0.08 && !call.arguments.empty()) {
            call.arguments[static_cast<std::size_t>(chance_.unit() * static_cast<double>(call.arguments.size()))] =
                oneOf(oddCounterArguments);
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
        Words words{"EVAL", script.text(), std::to_string(1 + otherKeys.size()), counterName};
        for (const auto* more : {&otherKeys, &arguments}) {
            words.insert(words.end(), more->begin(), more->end());
            for (const auto& word : *more) {
                history_ += " '" + word + "'";
            }
        }
        Request request;
        request.script = &script;
        request.byText = true;
        request.name = counterName;
        request.otherKeys = otherKeys;
        request.arguments = arguments;
        const Value real = redis_.command(words);
        compare(real, model_.execute(request, 0, nowMs_));
        history_ += '\n';
    }

    /// Changes by other programs.
    void touch()
    {
        const std::array<Words, 6> commands{Words{"DEL", counterName},
                                            {"DEL", timeouts},
                                            {"SET", counterName, oneOf(amounts)},
                                            {"SET", counterName, "odd"},
                                            {"HSET", counterName, "field", "1"},
                                            {"SET", timeouts, "1"}};
        const Words& command = oneOf(commands);
        history_ += "  others: " + command[0] + " " + command[1] + '\n';
        write({"DEL", command[1]});
        write(command);
    }

    void compareMessages() override
    {
        subscriber_.send({"PING"});
        Words heard;
        for (auto message = subscriber_.receive(); message.elements.at(0).text() != "pong";
             message = subscriber_.receive()) {
            heard.push_back(message.elements.at(2).text());
        }
        EXPECT_EQ(heard, told_) << history_;
    }

    RawRedis subscriber_;
    Words told_;
};

TEST(CounterModel, AnswersAndRemembersAsARealServer)
{
    compareWithARealServer<CounterComparison>("eval");
}

} // namespace
} // namespace redislock::simulation
