// A process of the library that executes commands from standard input, one on each line, until the input ends:
//     thread kind operation object arguments...
// and answers as the Java driver does (../java). A thread is any word; commands with the same word run in one thread,
// in their order, and commands with different words at the same time; see load.hpp for `load`. Arguments: the
// watchdog's timeout, how long a place in a fair queue is kept and how long a server may take to answer (0: the
// default), in ms; the servers' URLs.
#include "behaviour/worker.hpp"
#include "load.hpp"
#include "objects.hpp"
#include "redislock/error.hpp"
#include "support/eventually.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

namespace redislock::test {
namespace {

class Main {
public:
    explicit Main(const std::function<Objects(std::shared_ptr<Observer>)>& make)
        : load_(make,
                [this](const std::string& who, std::string_view how, const std::string& what) {
                    write(who, how, std::chrono::steady_clock::now().time_since_epoch(), what);
                }),
          objects_(make({}))
    {
    }

    void readCommands()
    {
        answer("start", "ok", Stopwatch(), objects_.id());
        for (std::string line; std::getline(std::cin, line);) {
            std::istringstream text(line);
            std::string thread;
            Words words;
            text >> thread;
            for (std::string word; text >> word;) {
                words.push_back(word);
            }
            threads_[thread].start([this, thread, words] { run(thread, words); });
        }
    }

private:
    void run(const std::string& thread, const Words& words)
    {
        const Stopwatch watch;
        try {
            const auto result = words.at(1) == "load" ? load_.run(thread, words)
                                                      : objects_.run(words.at(0), words.at(1), words.at(2),
                                                                     Words(words.begin() + 3, words.end()));
            answer(thread, result ? "ok" : "false", watch, result.value_or(""));
        } catch (const LockError& e) {
            answer(thread, "error", watch, fmt::format("LockError: {}", e.what()));
        } catch (const std::exception& e) {
            answer(thread, "error", watch, fmt::format("exception: {}", e.what()));
        }
    }

    void answer(const std::string& thread, std::string_view how, const Stopwatch& watch, std::string value)
    {
        write(thread, how, watch.elapsed(), std::move(value));
    }

    void write(const std::string& thread, std::string_view how, std::chrono::nanoseconds time, std::string value)
    {
        const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(time).count();
        std::replace(value.begin(), value.end(), '\n', ' ');
        const std::lock_guard lock(output_);
        std::cout << thread << ' ' << how << ' ' << micros << (value.empty() ? "" : " ") << value << std::endl;
    }

    std::mutex output_;
    Load load_;
    Objects objects_;
    std::map<std::string, Worker> threads_;
};

} // namespace
} // namespace redislock::test

int main(int count, char** arguments)
{
    using namespace redislock::test;
    const std::vector<std::string> words(arguments + 1, arguments + count);
    const auto time = [&](std::size_t index) { return std::chrono::milliseconds(std::stol(words.at(index))); };
    const std::vector<std::string> urls(words.begin() + 3, words.end());
    Main([&](auto observer) { return Objects(urls, time(0), time(1), time(2), std::move(observer)); }).readCommands();
    // Without a shutdown: held locks are left as by a crash.
    ::_exit(0);
}
