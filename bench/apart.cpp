#include "apart.hpp"

#include "noise.hpp"
#include "own_process.hpp"

#include <redislock/testing/redis_server.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace redislock::bench {

namespace {

volatile std::sig_atomic_t interrupted = 0;

void stopIfInterrupted()
{
    if (interrupted != 0) {
        throw Interrupted();
    }
}

/// A line: ours, reference, the fixed work before it, and the note up to the end of the line.
void print(const Pair& pair, double work)
{
    fmt::print("{} {} {} {}\n", pair.ours, pair.reference, work, pair.note);
    std::fflush(stdout);
}

void parse(const std::string& line, Measured& measured)
{
    std::istringstream words(line);
    Pair pair;
    double work = 0;
    words >> pair.ours >> pair.reference >> work >> std::ws;
    if (words.fail()) {
        throw std::runtime_error(fmt::format("a line that makes no sense: {}", line));
    }
    std::getline(words, pair.note);
    measured.fixedWork.push_back(work);
    measured.pairs.push_back(std::move(pair));
}

} // namespace

void handleSignals()
{
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = 1; };
    action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
    ::sigaction(SIGINT, &action, nullptr);
    ::sigaction(SIGTERM, &action, nullptr);
}

Measured measureApart(const Row& row, const Effort& effort, const std::function<void(std::size_t)>& progress)
{
    std::vector<std::string> arguments{"--measure",     std::string(row.name),
                                       "--repetitions", std::to_string(effort.repetitions),
                                       "--seconds",     std::to_string(effort.seconds)};
    if (effort.tryOut) {
        arguments.emplace_back("--try-out");
    }
    OwnProcess process(std::move(arguments));
    Measured measured;
    std::string unread;
    std::array<char, 4096> buffer{};
    progress(0);
    while (const auto count = process.read(std::as_writable_bytes(std::span(buffer)))) {
        unread.append(buffer.data(), count);
        for (auto end = unread.find('\n'); end != std::string::npos; end = unread.find('\n')) {
            parse(unread.substr(0, end), measured);
            unread.erase(0, end + 1);
            progress(measured.pairs.size());
        }
    }
    if (interrupted != 0) {
        process.signal(SIGTERM);
        process.awaitEnd();
        throw Interrupted();
    }
    if (process.awaitEnd() != 0 || measured.pairs.empty()) {
        throw std::runtime_error(fmt::format("{} could not be measured", row.name));
    }
    return measured;
}

void measureForParent(std::string_view name, const Effort& effort)
{
    endWithParent();
    const auto row = std::ranges::find(allRows(), name, &Row::name);
    const redislock::testing::RedisServer server;
    const Measure measure = row->prepare({server.host(), server.port(), server.url(), effort.tryOut});
    stopIfInterrupted();
    const bool once = effort.tryOut || row->asked == Asked::byName;
    if (!once) {
        measure(Seconds(std::min(effort.seconds, 0.2)), First::ours); // warm-up
    }
    const int repetitions = once ? 1 : effort.repetitions;
    for (int i = 1; i <= repetitions; ++i) {
        stopIfInterrupted();
        const double work = fixedWork();
        print(measure(Seconds(effort.tryOut ? 0.1 : effort.seconds), i % 2 == 1 ? First::ours : First::reference),
              work);
    }
    stopIfInterrupted();
}

} // namespace redislock::bench
