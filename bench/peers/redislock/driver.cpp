/// @file
/// One process that locks and unlocks with redislock; bench/peers/README.md has the protocol that all drivers follow.
#include <redislock/redislock.hpp>

#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <fstream>
#include <iostream>
#include <latch>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock; // CLOCK_MONOTONIC

std::int64_t now()
{
    return std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
}

void say(const char* word)
{
    std::cout << word << std::endl;
}

bool hear(const std::string& word)
{
    std::string line;
    return std::getline(std::cin, line) && line == word;
}

struct Options {
    std::string row;
    unsigned port = 6379;
    std::string name = "peers";
    unsigned threads = 1;
    std::int64_t sectionUs = 0;
    unsigned process = 0;
    unsigned locks = 0;
    std::int64_t leaseMs = 0;
    std::string form = "guard";
};

/// One lock, in nanoseconds of the monotonic clock.
struct Line {
    std::int64_t begin = 0;
    std::int64_t granted = 0;
    std::int64_t released = 0; ///< before the call
    unsigned thread = 0;
};
using Lines = std::vector<Line>;

class Driver {
public:
    explicit Driver(const Options& options) : options_(options), client_(config(options)) {}

    /// Takes the lock for the first time.
    Line first() const
    {
        return once(options_.name, 0, [] {});
    }

    [[nodiscard]] Lines round(std::chrono::duration<double> duration) const
    {
        if (options_.row == "held") {
            return hold();
        }
        const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(duration);
        if (options_.row == "hand_over") {
            return options_.process == 0 ? give(end) : take();
        }
        return loop(end);
    }

    /// The name of a thread's lock.
    [[nodiscard]] std::string ownName(unsigned number) const
    {
        return options_.name + ':' + std::to_string(options_.process) + ':' + std::to_string(number);
    }

private:
    static redislock::Config config(const Options& options)
    {
        auto config = redislock::Config::fromUrl("redis://127.0.0.1:" + std::to_string(options.port));
        if (options.leaseMs > 0) {
            config.watchdogTimeout = std::chrono::milliseconds(options.leaseMs);
        }
        return config;
    }

    void section() const
    {
        if (options_.sectionUs > 0) {
            std::this_thread::sleep_for(std::chrono::microseconds(options_.sectionUs));
        }
    }

    template <class Work>
    Line once(const std::string& name, unsigned thread, const Work& work) const
    {
        Line line;
        line.thread = thread;
        line.begin = now();
        const auto under = [&] {
            line.granted = now();
            work();
            line.released = now();
        };
        if (options_.form == "unlock") {
            const auto lock = client_.getLock(name);
            lock.lock();
            under();
            lock.unlock();
        } else if (options_.form == "fair") {
            const redislock::LockGuard held(client_.getFairLock(name));
            under();
        } else {
            const redislock::LockGuard held(client_.getLock(name));
            under();
        }
        return line;
    }

    Lines loop(Clock::time_point end) const
    {
        std::vector<Lines> parts(options_.threads);
        {
            std::vector<std::jthread> threads;
            for (unsigned thread = 0; thread < options_.threads; ++thread) {
                threads.emplace_back([&, thread] {
                    const auto name = options_.row == "uncontended" ? ownName(thread) : options_.name;
                    while (Clock::now() < end) {
                        parts[thread].push_back(once(name, thread, [this] { section(); }));
                    }
                });
            }
        }
        return joined(parts);
    }

    /// The process that holds the lock and gives it away.
    Lines give(Clock::time_point end) const
    {
        Lines lines;
        while (Clock::now() < end) {
            lines.push_back(once(options_.name, 0, [this] {
                say("held");
                section();
            }));
            if (!hear("next")) {
                throw std::runtime_error("no next");
            }
        }
        return lines;
    }

    /// The process that waits for the lock.
    Lines take() const
    {
        Lines lines;
        while (hear("ask")) {
            lines.push_back(once(options_.name, 0, [] {}));
            say("had");
        }
        return lines;
    }

    /// Holds many locks at once until the line "release" comes.
    Lines hold() const
    {
        std::vector<Lines> parts(options_.threads);
        std::latch held(options_.threads);
        std::latch release(1);
        std::vector<std::jthread> threads;
        for (unsigned thread = 0; thread < options_.threads; ++thread) {
            threads.emplace_back([&, thread] {
                std::vector<redislock::LockGuard> guards;
                for (unsigned number = thread; number < options_.locks; number += options_.threads) {
                    Line line;
                    line.thread = number;
                    line.begin = now();
                    guards.emplace_back(client_.getLock(ownName(number)));
                    line.granted = now();
                    parts[thread].push_back(line);
                }
                held.count_down();
                release.wait();
                for (std::size_t at = 0; at < guards.size(); ++at) {
                    parts[thread][at].released = now();
                    guards[at].release();
                }
            });
        }
        held.wait();
        say("held");
        const bool told = hear("release");
        release.count_down();
        threads.clear();
        if (!told) {
            throw std::runtime_error("no release");
        }
        return joined(parts);
    }

    static Lines joined(const std::vector<Lines>& parts)
    {
        Lines all;
        for (const auto& part : parts) {
            all.insert(all.end(), part.begin(), part.end());
        }
        return all;
    }

    Options options_;
    redislock::Client client_;
};

void write(const Lines& lines, unsigned process, const std::string& path)
{
    std::ofstream file(path);
    for (const auto& line : lines) {
        file << line.begin << ' ' << line.granted << ' ' << line.released << ' ' << process << ' ' << line.thread
             << '\n';
    }
    if (!file.flush()) {
        throw std::runtime_error("cannot write " + path);
    }
}

void run(const Options& options, std::int64_t start)
{
    const Driver driver(options);
    auto first = driver.first();
    first.begin = start;
    say("ready");
    for (std::string order; std::getline(std::cin, order);) {
        std::istringstream words(order);
        std::string go;
        double seconds = 0;
        std::string path;
        words >> go >> seconds >> path;
        const auto lines =
            options.row == "start_up" ? Lines{first} : driver.round(std::chrono::duration<double>(seconds));
        write(lines, options.process, path);
        say("done");
    }
}

} // namespace

int main(int argc, char** argv)
{
    const auto start = now();
    try {
        Options options;
        CLI::App app("Locks and unlocks with redislock, as bench/peers/run tells it.");
        app.add_option("row", options.row)->required();
        app.add_option("--port", options.port);
        app.add_option("--name", options.name);
        app.add_option("--threads", options.threads);
        app.add_option("--section-us", options.sectionUs);
        app.add_option("--process", options.process);
        app.add_option("--locks", options.locks);
        app.add_option("--lease-ms", options.leaseMs);
        app.add_option("--form", options.form)->check(CLI::IsMember({"guard", "unlock", "fair"}));
        CLI11_PARSE(app, argc, argv);
        run(options, start);
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
