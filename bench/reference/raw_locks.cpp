#include "reference/raw_locks.hpp"

#include <thread>
#include <utility>

namespace redislock::bench {

namespace {
constexpr std::string_view pipelineHolder = "6f1c1f7e-30a4-4c29-9d0b-5a3c8e2b7d00:100000";
} // namespace

RawPipeline::RawPipeline(const std::string& host, std::uint16_t port, std::vector<std::string> names)
    : connection_(host, port),
      names_(std::move(names)),
      lockSha_(connection_.load(lockScript)),
      unlockSha_(connection_.load(unlockScript))
{
    for (const auto& name : names_) {
        channels_.push_back(channelOf(name));
    }
}

void RawPipeline::lockAndUnlockAll()
{
    for (const auto& name : names_) {
        connection_.append({"EVALSHA", lockSha_, "1", name, leaseMs, pipelineHolder});
    }
    for (std::size_t i = 0; i < names_.size(); ++i) {
        expect(connection_.nextReply()->type == REDIS_REPLY_NIL, "the reply to the reference's lock");
    }
    for (std::size_t i = 0; i < names_.size(); ++i) {
        connection_.append({"EVALSHA", unlockSha_, "2", names_[i], channels_[i], "0", leaseMs, pipelineHolder});
    }
    for (std::size_t i = 0; i < names_.size(); ++i) {
        const auto reply = connection_.nextReply();
        expect(reply->type == REDIS_REPLY_INTEGER && reply->integer == 1, "the reply to the reference's unlock");
    }
}

PollingLock::PollingLock(const std::string& host, std::uint16_t port, std::string name, std::string token,
                         std::chrono::milliseconds sleep)
    : connection_(host, port),
      name_(std::move(name)),
      token_(std::move(token)),
      sleep_(sleep),
      unlockSha_(connection_.load(compareAndDeleteScript))
{
}

void PollingLock::lock()
{
    while (connection_.command({"SET", name_, token_, "NX", "PX", leaseMs})->type == REDIS_REPLY_NIL) {
        std::this_thread::sleep_for(sleep_);
    }
}

void PollingLock::unlock()
{
    const auto reply = connection_.command({"EVALSHA", unlockSha_, "1", name_, token_});
    expect(reply->type == REDIS_REPLY_INTEGER && reply->integer == 1, "the reply to the reference's unlock");
}

} // namespace redislock::bench
