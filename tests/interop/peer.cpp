#include "interop/peer.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace redislock::test {
namespace {

constexpr std::chrono::seconds patience{60};

// A named pipe with both ends open here, so that opening it in the child does not block.
int makePipe(const std::string& path)
{
    const int fd = ::mkfifo(path.c_str(), 0600) == 0 ? ::open(path.c_str(), O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) {
        throw std::runtime_error("cannot make the pipe " + path + ": " + std::strerror(errno));
    }
    ::fcntl(fd, F_SETPIPE_SZ, 1 << 20); // so that the process does not wait for a reader that reads only now and then
    return fd;
}

// The command line of a process of a language, without the arguments that both languages get.
std::vector<std::string> program(const PeerOptions& options)
{
    if (options.redisson.empty()) {
        return {REDISLOCK_INTEROP_CPP_DRIVER};
    }
    const std::string library = REDISLOCK_INTEROP_DRIVERS "/redisson-" + options.redisson + "/lib";
    const std::string prefix = options.prefix.empty() ? "-Dredislock.nothing=" : "-Dredislock.prefix=" + options.prefix;
    return {REDISLOCK_JAVA,
            // With these options the JVM starts in half a second.
            "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx128m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            prefix, "-cp", library + "/*", "redislock.interop.Main"};
}

std::vector<std::string> commandLine(const std::string& folder, const PeerOptions& options)
{
    std::vector<std::string> line{"/bin/sh", "-c", R"(exec "$@" <"$0/commands" >"$0/answers")", folder};
    if (options.clockAhead.count() != 0) {
        line.insert(line.end(), {"/usr/bin/env", "LD_PRELOAD=" REDISLOCK_JAVA_CLOCK,
                                 "REDISLOCK_TEST_CLOCK_AHEAD=" + std::to_string(options.clockAhead.count())});
    }
    const auto words = program(options);
    line.insert(line.end(), words.begin(), words.end());
    line.push_back(std::to_string(options.watchdog.count()));
    line.push_back(std::to_string(options.place.count()));
    line.push_back(std::to_string(options.patience.count()));
    line.insert(line.end(), options.urls.begin(), options.urls.end());
    return line;
}

} // namespace

std::string Answer::brief() const
{
    const auto& text = how == "error" ? value.substr(0, value.find(':')) : value;
    return text.empty() ? how : how + ' ' + text;
}

std::ostream& operator<<(std::ostream& out, const Answer& answer)
{
    return out << answer.how << ' ' << answer.value << " after " << answer.elapsed.count() << " us";
}

Peer::Peer(const PeerOptions& options)
    : commands_(makePipe((folder_.path() / "commands").string())),
      answers_(makePipe((folder_.path() / "answers").string())),
      process_(commandLine(folder_.path().string(), options), folder_.path() / "log")
{
    id_ = answer("start").value;
}

Peer::~Peer()
{
    process_.kill();
    ::close(commands_);
    ::close(answers_);
}

std::string Peer::newThread()
{
    return "t" + std::to_string(++threads_);
}

void Peer::send(const std::string& thread, const std::string& command)
{
    const std::string line = thread + ' ' + command + '\n';
    if (::write(commands_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
        fail("cannot be told anything");
    }
}

Answer Peer::answer(const std::string& thread)
{
    const auto deadline = std::chrono::steady_clock::now() + patience;
    auto& answers = unread_[thread];
    while (answers.empty()) {
        readLine(deadline);
    }
    Answer first = std::move(answers.front());
    answers.pop_front();
    return first;
}

void Peer::readLine(std::chrono::steady_clock::time_point deadline)
{
    auto line = takeLine();
    for (; !line; line = takeLine()) {
        if (readSome(std::chrono::milliseconds(100))) {
            continue;
        }
        if (!process_.runs()) {
            fail("ended (" + process_.ending() + ")");
        } else if (std::chrono::steady_clock::now() >= deadline) {
            fail("did not answer in time");
        }
    }
    unread_[line->first].push_back(std::move(line->second));
}

std::vector<std::pair<std::string, Answer>> Peer::told()
{
    while (readSome(std::chrono::milliseconds(0))) {
    }
    std::vector<std::pair<std::string, Answer>> lines;
    while (auto line = takeLine()) {
        lines.push_back(std::move(*line));
    }
    return lines;
}

bool Peer::readSome(std::chrono::milliseconds patience)
{
    pollfd ready{answers_, POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(patience.count())) <= 0) {
        return false;
    }
    std::array<char, 65536> bytes; // NOLINT: read() fills it
    const auto size = ::read(answers_, bytes.data(), bytes.size());
    read_.append(bytes.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
    return size > 0;
}

std::optional<std::pair<std::string, Answer>> Peer::takeLine()
{
    const auto end = read_.find('\n', taken_);
    if (end == std::string::npos) {
        read_.erase(0, std::exchange(taken_, 0));
        return std::nullopt;
    }
    std::istringstream line(read_.substr(taken_, end - taken_));
    taken_ = end + 1;
    std::string thread;
    Answer answer;
    std::chrono::microseconds::rep micros = 0;
    line >> thread >> answer.how >> micros >> std::ws;
    std::getline(line, answer.value);
    answer.elapsed = std::chrono::microseconds(micros);
    return std::pair(std::move(thread), std::move(answer));
}

std::string Peer::lastWords() const
{
    return testing::detail::lastLines(testing::detail::readFile(folder_.path() / "log"), 20);
}

void Peer::fail(const std::string& what)
{
    throw std::runtime_error("a peer " + what + "; the end of its log:\n" + lastWords());
}

} // namespace redislock::test
