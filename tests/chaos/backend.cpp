#include "chaos/backend.hpp"

#include "support/eventually.hpp"

#include <memory>
#include <stdexcept>
#include <thread>

namespace redislock::test::chaos {
namespace {

using namespace std::chrono_literals;

/// Acknowledged data survives kill -9: it was written to the file, if not to the disk.
testing::RedisServerOptions serverOptions()
{
    testing::RedisServerOptions options;
    options.arguments = {"--appendonly", "yes", "--appendfsync", "no", "--repl-diskless-sync-delay", "0"};
    return options;
}

std::shared_ptr<history::Recorder> recorderOf(const std::filesystem::path& folder, const std::string& what, int number)
{
    return std::make_shared<history::Recorder>(folder / (what + "-" + std::to_string(number) + ".jsonl"));
}

} // namespace

Backend::Backend(const std::filesystem::path& folder, int number, bool withRequests)
    : server_(serverOptions()),
      proxy_(server_),
      redis_(server_),
      truth_(server_, recorderOf(folder, "truth", number), number)
{
    if (withRequests) {
        requests_.emplace(server_, recorderOf(folder, "requests", number));
    }
    attach();
}

void Backend::attach()
{
    truth_.attach(); // before any client connects
    if (requests_) {
        requests_->attach();
    }
}

void Backend::detach()
{
    truth_.detach();
    if (requests_) {
        requests_->detach();
    }
}

std::vector<std::string> Backend::keys()
{
    std::vector<std::string> keys;
    for (const auto& key : redis_.command({"KEYS", "*"}).elements) {
        keys.push_back(key.text());
    }
    return keys;
}

/// Waits until no more requests come, and everything that the server did is written down.
void Backend::settle()
{
    proxy_.stall();
    for (int i = 0; i < 2; ++i) { // the second time for bytes that were in the socket when INFO was answered
        std::this_thread::sleep_for(5ms);
        if (!truth_.awaitCaughtUp()) {
            throw std::runtime_error("the replication stream is not complete");
        }
    }
}

/// Waits until the server has something to forget, and records it.
std::size_t Backend::noteForgotten(history::Recorder& recorder)
{
    std::vector<std::string> all;
    (void)eventually([&] {
        settle();
        all = keys();
        if (all.empty()) {
            proxy_.resume();
        }
        return !all.empty();
    });
    for (const auto& key : all) {
        recorder.write({.lock = key, .op = history::Op::emptied});
    }
    return all.size();
}

void Backend::leave(std::chrono::milliseconds away)
{
    server_.kill();
    detach();
    proxy_.refuse();
    proxy_.closeAll(FaultProxy::Close::reset);
    proxy_.resume();
    std::this_thread::sleep_for(away);
}

void Backend::comeBack()
{
    server_.restart();
    attach();
}

void Backend::crash(std::chrono::milliseconds away)
{
    settle(); // all that Redis has executed must be in the stream before it dies, or the record would have a hole
    leave(away);
    comeBack();
    proxy_.accept();
}

std::size_t Backend::crashAndForget(std::chrono::milliseconds away, history::Recorder& recorder)
{
    const auto forgotten = noteForgotten(recorder);
    leave(away);
    for (const char* file : {"appendonlydir", "appendonly.aof"}) { // the names of Redis 7, and of earlier versions
        std::filesystem::remove_all(server_.folder() / file);
    }
    comeBack();
    if (!keys().empty()) {
        throw std::runtime_error("the server remembers what it had to forget");
    }
    proxy_.accept();
    return forgotten;
}

std::size_t Backend::empty(history::Recorder& recorder)
{
    const auto forgotten = noteForgotten(recorder);
    redis_.command({"FLUSHALL"});
    proxy_.resume();
    return forgotten;
}

void Backend::finish()
{
    if (!truth_.awaitCaughtUp() || truth_.failed()) {
        throw std::runtime_error("the replication stream is not complete");
    }
    detach();
}

} // namespace redislock::test::chaos
