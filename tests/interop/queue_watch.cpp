#include "interop/queue_watch.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

namespace redislock::test {
namespace {

constexpr auto script = R"(
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local look = {redis.call('HKEYS', KEYS[1])[1] or '', redis.call('PTTL', KEYS[2])}
for _, holder in ipairs(redis.call('LRANGE', KEYS[2], 0, -1)) do
    local score = tonumber(redis.call('ZSCORE', KEYS[3], holder) or now)
    look[#look + 1] = {holder, score - now, redis.call('HGET', KEYS[4], holder) or ''}
end
return look
)";

constexpr std::chrono::seconds late(10);
constexpr std::chrono::seconds grace(5);   // beyond an allowance
constexpr std::chrono::seconds clocks(30); // doc/keys.md: where the allowance is a conclusion

/// As doc/keys.md has the records: "<until> <place> ..." of ours, "redisson <time> <allowance> ..." of Redisson's.
std::optional<std::chrono::milliseconds> allowanceIn(const std::string& record)
{
    std::istringstream words(record);
    std::string first, second, third, about;
    words >> first >> second >> third >> about;
    const auto& number = first == "redisson" ? third : second;
    if (number.empty()) {
        return std::nullopt;
    }
    return std::chrono::milliseconds(std::stol(number)) + (about == "about" ? clocks : clocks.zero());
}

} // namespace

QueueLook lookAtQueue(RawRedis& redis, const std::string& name)
{
    const auto of = [&](const char* prefix) { return prefix + name + "}"; };
    const auto seen = redis.command({"EVAL", script, "4", name, of("redisson_lock_queue:{"),
                                     of("redisson_lock_timeout:{"), of("redislock_places:{")});
    QueueLook look{.holder = seen.elements.at(0).text(),
                   .waiters = {},
                   .timeToLive = std::chrono::milliseconds(seen.elements.at(1).integer())};
    for (std::size_t i = 2; i < seen.elements.size(); ++i) {
        const auto& waiter = seen.elements[i].elements;
        const auto& record = waiter.at(2).text();
        look.waiters.push_back({.holder = waiter.at(0).text(),
                                .ahead = std::chrono::milliseconds(waiter.at(1).integer()),
                                .isOurs = !record.empty() && !record.starts_with("redisson"),
                                .allowance = allowanceIn(record)});
    }
    return look;
}

void QueueWatch::look(RawRedis& redis, const std::string& name, const Lives& lives)
{
    if (sinceLast_ && sinceLast_->elapsed() > late) {
        judgesFrom_ = bootTime() + std::chrono::minutes(1);
        ++standstills_;
    }
    sinceLast_.emplace();
    auto now = lookAtQueue(redis, name);
    if (bootTime() < judgesFrom_) {
        last_ = {};
        gone_.clear();
        return;
    }
    lookAtDead(now, lives);
    std::set<std::string> queued;
    for (const auto& waiter : now.waiters) {
        furthest_ = std::max(furthest_, waiter.ahead);
        queued.insert(waiter.holder);
        if (waiter.isOurs && gone_.contains(waiter.holder)) {
            passed_.push_back(waiter.holder + " is queued anew");
        }
    }
    std::vector<std::string> ahead; // the waiters ahead, a moment ago, of the present holder
    for (const auto& waiter : last_.waiters) {
        if (waiter.holder == now.holder) {
            for (const auto& each : ahead) {
                passed_.push_back(each + " was passed by " + now.holder);
            }
        }
        if (!waiter.isOurs) {
            continue;
        }
        if (!queued.contains(waiter.holder)) {
            gone_.insert(waiter.holder);
        } else if (lives(waiter.holder.substr(0, waiter.holder.find(':')))) {
            ahead.push_back(waiter.holder);
        }
    }
    last_ = std::move(now);
}

void QueueWatch::lookAtDead(const QueueLook& now, const Lives& lives)
{
    const auto* first = now.waiters.empty() || !now.holder.empty() ? nullptr : &now.waiters.front();
    const bool isDead = first != nullptr && !lives(first->holder.substr(0, first->holder.find(':')));
    if (!isDead || first->holder != deadFirst_) {
        deadFirst_ = isDead ? first->holder : "";
        deadSince_.emplace();
    } else if (first->allowance && deadSince_ && deadSince_->elapsed() > *first->allowance + grace) {
        outstayed_.push_back(first->holder + " is dead, and was the first for more than " +
                             std::to_string(first->allowance->count()) + " ms and 5 s while the lock was free");
        deadSince_.reset();
    }
}

} // namespace redislock::test
