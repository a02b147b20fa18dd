#include "command.hpp"

#include "processes.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace redislock::tool {

namespace {

constexpr int watched[] = {SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT, SIGUSR1, SIGUSR2};

constexpr int commandNotFound = 127;
constexpr int commandNotRun = 126;

std::vector<char*> pointersTo(const std::vector<std::string>& words)
{
    std::vector<char*> pointers;
    for (const auto& word : words) {
        pointers.push_back(const_cast<char*>(word.c_str()));
    }
    pointers.push_back(nullptr);
    return pointers;
}

} // namespace

int madeHandle(int handle, const char* call)
{
    if (handle == -1) {
        throw std::system_error(errno, std::generic_category(), call);
    }
    return handle;
}

Signals::Signals()
{
    sigset_t mine;
    ::sigemptyset(&mine);
    ::sigemptyset(&ignored_);
    for (const int signal : watched) {
        ::sigaddset(&mine, signal);
        if (isIgnored(signal)) {
            ::sigaddset(&ignored_, signal);
        }
    }
    handle_ = madeHandle(::signalfd(-1, &mine, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd");
    ::sigaddset(&mine, SIGTTOU); // a message may be written from the background
    ::pthread_sigmask(SIG_BLOCK, &mine, &before_);
    struct sigaction byDefault {};
    byDefault.sa_handler = SIG_DFL; // a process that ignores SIGCHLD does not hear of its children
    ::sigaction(SIGCHLD, &byDefault, &childAction_);
}

Signals::~Signals()
{
    ::close(handle_);
    restore();
}

void Signals::restore() const noexcept
{
    ::sigaction(SIGCHLD, &childAction_, nullptr);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

Signals::Come Signals::next() const noexcept
{
    signalfd_siginfo info{};
    if (::read(handle_, &info, sizeof info) != static_cast<ssize_t>(sizeof info)) {
        return {};
    }
    const auto signal = static_cast<int>(info.ssi_signo);
    return {signal, info.ssi_code > 0, ::sigismember(&ignored_, signal) == 1};
}

bool isIgnored(int signal) noexcept
{
    struct sigaction action {};
    return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

void stopByTerminal() noexcept
{
    sigset_t stop;
    ::sigemptyset(&stop);
    ::sigaddset(&stop, SIGTSTP);
    ::raise(SIGTSTP);
    ::pthread_sigmask(SIG_UNBLOCK, &stop, nullptr); // here it stands still
    ::pthread_sigmask(SIG_BLOCK, &stop, nullptr);
}

Command::Command(const std::vector<std::string>& words, const std::vector<std::string>& environment,
                 const Signals& signals)
{
    const pid_t self = ::getpid();
    for (const auto& [process, parent] : parentsIn("/proc")) {
        if (parent == self) {
            others_.insert(process);
        }
    }
    ::prctl(PR_SET_CHILD_SUBREAPER, 1); // processes that the command leaves behind become children of this one
    std::array<int, 2> failure{};
    if (::pipe2(failure.data(), O_CLOEXEC) != 0) {
        throw std::system_error(errno, std::generic_category(), "pipe");
    }
    const auto arguments = pointersTo(words);
    const auto variables = pointersTo(environment);
    process_ = ::fork();
    if (process_ == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != self) {
            ::_exit(commandNotRun); // the parent ended before this child could ask for that signal
        }
        signals.restore();
        ::execvpe(arguments.front(), arguments.data(), variables.data());
        const int error = errno;
        (void)!::write(failure[1], &error, sizeof error);
        ::_exit(error == ENOENT ? commandNotFound : commandNotRun);
    }
    const int error = errno;
    ::close(failure[1]);
    if (process_ < 0) {
        ::close(failure[0]);
        throw std::system_error(error, std::generic_category(), "fork");
    }
    while (::read(failure[0], &error_, sizeof error_) < 0 && errno == EINTR) {
    }
    ::close(failure[0]);
}

Command::Event Command::look()
{
    int how = 0;
    for (pid_t process = 0; (process = ::waitpid(-1, &how, WNOHANG | WUNTRACED)) > 0;) {
        if (process != process_) {
            continue; // a process that the command left behind
        }
        if (WIFSTOPPED(how)) {
            stopSignal_ = WSTOPSIG(how);
            return Event::stopped;
        }
        endSignal_ = WIFEXITED(how) ? 0 : WTERMSIG(how);
        status_ = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + endSignal_;
        process_ = -1;
        return Event::ended;
    }
    return Event::none;
}

void Command::forward(int signal) const noexcept
{
    if (process_ > 0) {
        ::kill(process_, signal);
    }
}

/// All processes that descend from this one by way of the command.
std::set<pid_t> Command::processes() const
{
    const auto all = parentsIn("/proc");
    std::set<pid_t> found{::getpid()};
    for (std::size_t before = 0; before != found.size();) {
        before = found.size();
        for (const auto& [process, parent] : all) {
            if (found.contains(parent) && !others_.contains(process)) {
                found.insert(process);
            }
        }
    }
    found.erase(::getpid());
    return found;
}

void Command::signalAll(int signal) const
{
    for (const pid_t process : processes()) {
        ::kill(process, signal);
    }
}

void Command::killAll() const
{
    // a process that was just being started may have been missed
    constexpr int most = 100;
    for (int i = 0; i < most && !processes().empty(); ++i) {
        signalAll(SIGKILL);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
}

} // namespace redislock::tool
