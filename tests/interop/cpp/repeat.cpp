#include "repeat.hpp"

#include "support/raw_redis.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>

namespace redislock::test {
namespace {

using namespace std::chrono_literals;

void noteTurn(RawRedis& redis, const std::string& key)
{
    const auto last = redis.command({"GETSET", key + ":language", "C++"});
    if (last.isString() && last.text() == "Java") {
        redis.command({"INCR", key + ":turns"});
    }
}

void count(RawRedis& redis, const std::string& key)
{
    const auto before = redis.get(key);
    const auto next = std::to_string(std::stol(before.value_or("0")) + 1);
    redis.command({"SET", key, next});
    noteTurn(redis, key);
    redis.command({"SET", key + ":copy", next});
}

void look(RawRedis& redis, const std::string& key)
{
    const auto number = redis.get(key);
    const auto copy = redis.get(key + ":copy");
    if (number != copy) {
        throw std::runtime_error("half written: " + number.value_or("") + " and " + copy.value_or(""));
    }
}

long crowd(RawRedis& redis, const std::string& key)
{
    const auto inside = redis.command({"INCR", key}).integer();
    noteTurn(redis, key);
    redis.command({"DECR", key});
    return inside;
}

} // namespace

long repeat(const Endpoint& server, std::string_view what, const std::string& key, const std::function<void()>& enter,
            const std::function<void()>& leave)
{
    RawRedis redis(server.host, server.port);
    long counted = 0;
    while (!redis.exists(key + ":end")) {
        enter();
        if (what == "crowd") {
            counted = std::max(counted, crowd(redis, key));
        } else {
            what == "count" ? count(redis, key) : look(redis, key);
            ++counted;
        }
        leave();
        // Without a pause the lock would nearly always go on to a thread of the same process.
        std::this_thread::sleep_for(3ms);
    }
    return counted;
}

} // namespace redislock::test
