/// @file
/// Another thread that runs functions of a test, since holds belong to threads.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>

namespace redislock::test {

/// A thread that runs functions in the order in which they come. The destructor waits until the last has ended.
class Worker {
public:
    Worker() : thread_([this] { work(); }) {}
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;
    ~Worker()
    {
        start([this] { ending_ = true; });
        thread_.join();
    }

    /// Starts @p function on the thread and does not wait for it.
    template <class Function>
    std::future<std::invoke_result_t<Function>> start(Function function)
    {
        using Result = std::invoke_result_t<Function>;
        if constexpr (std::is_copy_constructible_v<Function>) {
            return startErased(std::function<Result()>(std::move(function)));
        } else {
            return startErased(std::function<Result()>(
                [kept = std::make_shared<Function>(std::move(function))] { return (*kept)(); }));
        }
    }

    /// Runs @p function on the thread and waits for it. @return its result, or throws its exception.
    template <class Function>
    std::invoke_result_t<Function> run(Function function)
    {
        return start(std::move(function)).get();
    }

private:
    /// Instantiated for each type of result, not for each function: a packaged task takes the compiler longer than most
    /// tests.
    template <class Result>
    std::future<Result> startErased(std::function<Result()> function)
    {
        auto task = std::make_shared<std::packaged_task<Result()>>(std::move(function));
        auto result = task->get_future();
        {
            const std::lock_guard lock(mutex_);
            tasks_.emplace_back([task] { (*task)(); });
        }
        changed_.notify_one();
        return result;
    }

    void work()
    {
        while (!ending_) {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] { return !tasks_.empty(); });
            const auto task = std::move(tasks_.front());
            tasks_.pop_front();
            lock.unlock();
            task();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> tasks_;
    bool ending_ = false; // used by the thread alone
    std::thread thread_;
};

} // namespace redislock::test
