#include "integration/holder_process.hpp"

#include "redislock/redislock.hpp"
#include "support/eventually.hpp"
#include "support/raw_redis.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <system_error>

namespace redislock::test {

// --- The test's side ---------------------------------------------------------------------------------------------------

HolderProcess::HolderProcess(const std::string& url, const std::string& name, int leaseMs, int watchdogMs)
{
    std::array<int, 2> in{};
    std::array<int, 2> out{};
    if (::pipe2(in.data(), O_CLOEXEC) != 0 || ::pipe2(out.data(), O_CLOEXEC) != 0) {
        throw std::system_error(errno, std::generic_category(), "pipe2");
    }
    std::vector<std::string> words{"/proc/self/exe",        std::string(role),         url, name,
                                   std::to_string(leaseMs), std::to_string(watchdogMs)};
    std::vector<char*> arguments;
    for (auto& word : words) {
        arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    const int error = ::posix_spawn(&pid_, arguments.front(), &actions, nullptr, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(in[0]);
    ::close(out[1]);
    input_ = in[1];
    output_ = out[0];
    if (error != 0) {
        throw std::system_error(error, std::generic_category(), "posix_spawn");
    }
}

HolderProcess::~HolderProcess()
{
    kill();
    ::close(input_);
    ::close(output_);
}

std::string HolderProcess::line(std::chrono::milliseconds timeout)
{
    const Stopwatch watch;
    for (;;) {
        if (const auto end = buffer_.find('\n'); end != std::string::npos) {
            auto line = buffer_.substr(0, end);
            buffer_.erase(0, end + 1);
            return line;
        }
        const auto left = timeout - watch.elapsedMs();
        pollfd readable{output_, POLLIN, 0};
        std::array<char, 256> bytes{};
        if (left <= left.zero() || ::poll(&readable, 1, static_cast<int>(left.count())) != 1) {
            return {};
        }
        const auto count = ::read(output_, bytes.data(), bytes.size());
        if (count <= 0) {
            return {};
        }
        buffer_.append(bytes.data(), static_cast<std::size_t>(count));
    }
}

std::string HolderProcess::ask(std::string_view word)
{
    tell(word);
    return line();
}

void HolderProcess::tell(std::string_view word)
{
    const auto bytes = std::string(word) + "\n";
    if (::write(input_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
        throw std::system_error(errno, std::generic_category(), "write to the holder");
    }
}

void HolderProcess::freeze()
{
    ::kill(pid_, SIGSTOP);
    int status = 0;
    if (::waitpid(pid_, &status, WUNTRACED) != pid_ || !WIFSTOPPED(status)) {
        throw std::logic_error("the holder did not stop");
    }
}

void HolderProcess::thaw()
{
    ::kill(pid_, SIGCONT);
}

void HolderProcess::kill()
{
    if (pid_ > 0) {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        pid_ = 0;
    }
}

int HolderProcess::exitStatus(std::chrono::milliseconds timeout)
{
    int status = 0;
    if (!eventually([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; }, timeout)) {
        return -2;
    }
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// --- The holder's side -------------------------------------------------------------------------------------------------

namespace {

const char* nameOf(Unlocked how)
{
    static constexpr std::array names{"released", "stillHeld", "alreadyLost", "unconfirmed"};
    return names.at(static_cast<std::size_t>(how));
}

void say(const std::string& line)
{
    std::cout << line << std::endl; // NOLINT: the reader waits for it
}

void hammer(const RedisLock& lock, const Config& config)
{
    RawRedis raw(config.endpoint.host, config.endpoint.port);
    const auto key = lock.name() + ":count";
    for (int round = 0; round < 50; ++round) {
        const LockGuard held(lock);
        const int before = std::stoi(raw.get(key).value_or("0"));
        raw.command({"SET", key, std::to_string(before + 1)});
    }
}

} // namespace

int runHolder(const std::vector<std::string>& arguments)
{
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    Config config = Config::fromUrl(arguments.at(0));
    config.watchdogTimeout = std::chrono::milliseconds(std::stoi(arguments.at(3)));
    const std::chrono::milliseconds fixed(std::stoi(arguments.at(2)));
    auto client = std::make_unique<Client>(config);
    const RedisLock lock = client->getLock(arguments.at(1));
    const auto start = bootTime();
    lock.lock(fixed == fixed.zero() ? keepRenewing : Lease(fixed));
    const auto token = lock.stopToken();
    say("held " + std::to_string(start.count()) + " " + client->id());
    for (std::string word; std::getline(std::cin, word);) {
        if (word == "state") {
            const auto count = lock.holdCount();
            const auto valid = lock.validFor();
            say("count=" + std::to_string(count) + " valid=" + std::to_string(valid.count()) +
                " stopped=" + std::to_string(int(lock.stopToken().stop_requested())) +
                " token=" + std::to_string(int(token.stop_requested())));
        } else if (word == "unlock") {
            say(nameOf(lock.unlock()));
        } else if (word == "hammer") {
            hammer(lock, config);
            say("done");
        } else if (word == "exit") {
            static const Client* const kept = client.release(); // never destroyed
            std::exit(kept != nullptr ? 0 : 1);                 // NOLINT: what is tested
        } else if (word == "exit-static") {
            static const Client last(std::move(*client));
            std::exit(0); // NOLINT: what is tested
        } else if (word == "return") {
            const LockGuard guard(lock);
            return 0;
        }
    }
    return 0;
}

} // namespace redislock::test
