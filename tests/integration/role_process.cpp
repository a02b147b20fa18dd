#include "integration/role_process.hpp"

#include "support/eventually.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <system_error>

namespace redislock::test {

RoleProcess::RoleProcess(std::vector<std::string> arguments)
{
    std::array<int, 2> in{};
    std::array<int, 2> out{};
    if (::pipe2(in.data(), O_CLOEXEC) != 0 || ::pipe2(out.data(), O_CLOEXEC) != 0) {
        throw std::system_error(errno, std::generic_category(), "pipe2");
    }
    arguments.insert(arguments.begin(), "/proc/self/exe");
    std::vector<char*> words;
    for (auto& argument : arguments) {
        words.push_back(argument.data());
    }
    words.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    const int error = ::posix_spawn(&pid_, words.front(), &actions, nullptr, words.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(in[0]);
    ::close(out[1]);
    input_ = in[1];
    output_ = out[0];
    if (error != 0) {
        throw std::system_error(error, std::generic_category(), "posix_spawn");
    }
}

RoleProcess::~RoleProcess()
{
    kill();
    ::close(input_);
    ::close(output_);
}

std::string RoleProcess::line(std::chrono::milliseconds timeout)
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

std::string RoleProcess::ask(std::string_view word)
{
    tell(word);
    return line();
}

void RoleProcess::tell(std::string_view word)
{
    const auto bytes = std::string(word) + "\n";
    if (::write(input_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
        throw std::system_error(errno, std::generic_category(), "write to the other process");
    }
}

bool RoleProcess::sleeps() const
{
    const std::filesystem::directory_iterator threads("/proc/" + std::to_string(pid_) + "/task");
    return std::ranges::all_of(threads, [](const auto& thread) {
        std::ifstream in(thread.path() / "stat");
        const std::string line(std::istreambuf_iterator<char>(in), {});
        const auto name = line.rfind(") "); // the name may contain anything
        return name == std::string::npos || line.at(name + 2) == 'S';
    });
}

void RoleProcess::freeze()
{
    ::kill(pid_, SIGSTOP);
    int status = 0;
    if (::waitpid(pid_, &status, WUNTRACED) != pid_ || !WIFSTOPPED(status)) {
        throw std::logic_error("the other process did not stop");
    }
}

void RoleProcess::thaw()
{
    ::kill(pid_, SIGCONT);
}

void RoleProcess::kill()
{
    if (pid_ > 0) {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        pid_ = 0;
    }
}

int RoleProcess::exitStatus(std::chrono::milliseconds timeout)
{
    int status = 0;
    if (!eventually([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; }, timeout)) {
        return -2;
    }
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void say(const std::string& line)
{
    std::cout << line << std::endl; // NOLINT: the reader waits for it
}

} // namespace redislock::test
