#include "own_process.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace redislock::bench {

OwnProcess::OwnProcess(std::vector<std::string> arguments, const char* program)
{
    std::array<int, 2> in{};
    std::array<int, 2> out{};
    if (::pipe2(in.data(), O_CLOEXEC) != 0 || ::pipe2(out.data(), O_CLOEXEC) != 0) {
        throw std::system_error(errno, std::generic_category(), "pipe");
    }
    toIt_ = in[1];
    fromIt_ = out[0];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    arguments.insert(arguments.begin(), "redislock_bench");
    std::vector<char*> words;
    for (auto& argument : arguments) {
        words.push_back(argument.data());
    }
    words.push_back(nullptr);
    const int error = ::posix_spawnp(&pid_, program, &actions, nullptr, words.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(in[0]);
    ::close(out[1]);
    if (error != 0) {
        throw std::system_error(error, std::generic_category(), "cannot start a second process");
    }
}

OwnProcess::~OwnProcess()
{
    ::close(toIt_);
    if (pid_ != 0) {
        signal(SIGTERM);
        awaitEnd();
    }
    ::close(fromIt_);
}

void OwnProcess::write(std::span<const std::byte> bytes) const
{
    if (::write(toIt_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
        throw std::runtime_error("the second process has ended");
    }
}

std::size_t OwnProcess::read(std::span<std::byte> bytes) const
{
    pollfd readable{fromIt_, POLLIN, 0};
    if (::poll(&readable, 1, -1) < 0) {
        return 0; // a signal: read() would go on after a signal
    }
    const auto count = ::read(fromIt_, bytes.data(), bytes.size());
    return count > 0 ? static_cast<std::size_t>(count) : 0;
}

void OwnProcess::signal(int number) const noexcept
{
    ::kill(pid_, number);
}

int OwnProcess::awaitEnd() noexcept
{
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void endWithParent() noexcept
{
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
}

} // namespace redislock::bench
