#include "integration/crowd_process.hpp"

#include "redislock/redislock.hpp"
#include "support/raw_redis.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/thread_pool.hpp>

#include <sys/prctl.h>

#include <atomic>
#include <csignal>
#include <deque>
#include <iostream>
#include <mutex>
#include <sstream>
#include <thread>

namespace redislock::test {

namespace asio = boost::asio;

CrowdProcess::CrowdProcess(const std::string& url, const std::string& name, Wants wants,
                           std::chrono::milliseconds pollInterval)
    : RoleProcess({std::string(role), url, name, wants == Wants::readLock ? "read" : "fair",
                   std::to_string(pollInterval.count())})
{
}

namespace {

class Crowd {
public:
    Crowd(const Config& config, const std::string& name, bool reads)
        : client_(config),
          lock_(reads ? Lock(client_.getReadWriteLock(name).readLock()) : Lock(client_.getFairLock(name))),
          reads_(reads),
          raw_(config.endpoint.host, config.endpoint.port)
    {
    }
    ~Crowd()
    {
        leave_ = true;
        leave_.notify_all();
        for (auto& thread : threads_) {
            thread.join();
        }
        handlers_.join();
    }

    [[nodiscard]] const std::string& id() const { return client_.id(); }
    [[nodiscard]] int reading() const { return reading_; }

    void join(int count)
    {
        for (int i = 0; i < count; ++i) {
            if (i % 2 == 0) {
                threads_.emplace_back([this] {
                    const LockGuard held(lock_);
                    inside();
                    leave_.wait(!reads_);
                });
                continue;
            }
            auto& cancellation = cancellations_.emplace_back();
            lock_.asyncLock(asio::bind_cancellation_slot(
                cancellation.slot(), asio::bind_executor(handlers_, [this](auto ec, LockGuard held) {
                    if (ec) {
                        ++cancelled_;
                        cancelled_.notify_all();
                        return;
                    }
                    inside();
                    if (reads_) {
                        guards_.push_back(std::move(held)); // used only by the handlers' single thread
                    }
                })));
        }
    }

    /// Cancels some of the waiting calls. @return how many; these calls have ended.
    int cancelSome()
    {
        int count = 0;
        for (std::size_t i = 0; i < cancellations_.size(); i += 5, ++count) {
            cancellations_[i].emit(asio::cancellation_type::terminal);
        }
        for (int ended = cancelled_; ended < count; ended = cancelled_) {
            cancelled_.wait(ended);
        }
        return count;
    }

private:
    void inside()
    {
        if (reads_) {
            ++reading_;
            return;
        }
        const std::lock_guard guard(mutex_);
        const auto holders = raw_.command({"HKEYS", lock_.name()}).elements;
        const auto time = raw_.command({"TIME"}).elements;
        const auto microseconds =
            std::to_string(std::stoll(time.at(0).text()) * 1'000'000 + std::stoll(time.at(1).text()));
        raw_.command({"RPUSH", CrowdProcess::servedKey(lock_.name()),
                      (holders.size() == 1 ? holders[0].text() : "nobody-alone") + " " + microseconds});
    }

    Client client_;
    const Lock lock_;
    const bool reads_;
    std::mutex mutex_;
    RawRedis raw_;
    std::atomic<int> reading_{0};
    std::atomic<int> cancelled_{0};
    std::atomic<bool> leave_{false};
    std::vector<LockGuard> guards_;
    std::deque<asio::cancellation_signal> cancellations_;
    std::vector<std::thread> threads_;
    asio::thread_pool handlers_{1};
};

} // namespace

int runCrowd(const std::vector<std::string>& arguments)
{
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    Config config = Config::fromUrl(arguments.at(0));
    config.pollInterval = std::chrono::milliseconds(std::stoi(arguments.at(3)));
    Crowd crowd(config, arguments.at(1), arguments.at(2) == "read");
    say(crowd.id());
    for (std::string line; std::getline(std::cin, line) && line != "leave";) {
        std::istringstream words(line);
        std::string word;
        int count = 0;
        words >> word >> count;
        if (word == "join") {
            crowd.join(count);
        } else if (word == "cancel") {
            say(std::to_string(crowd.cancelSome()));
        } else if (word == "reading") {
            say(std::to_string(crowd.reading()));
        }
    }
    return 0;
}

} // namespace redislock::test
