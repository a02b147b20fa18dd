#include "command.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

namespace redislock::tool {

namespace {

/// Not read: those that cannot be, tell of a fault, or are ignored unless a program wants them; those of background
/// jobs; and those that come of writing.
constexpr int unread[] = {SIGKILL, SIGSTOP,  SIGILL, SIGTRAP, SIGABRT, SIGBUS,  SIGFPE, SIGSEGV,
                          SIGSYS,  SIGWINCH, SIGURG, SIGTTIN, SIGTTOU, SIGPIPE, SIGXFSZ};
/// A process that ignores the first does not hear of its children; the others would end it when it writes a message.
constexpr std::array<int, 3> changed{SIGCHLD, SIGPIPE, SIGXFSZ};

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

bool isChild(pid_t process) noexcept
{
    siginfo_t child{};
    return ::waitid(P_PID, static_cast<id_t>(process), &child, WEXITED | WNOHANG | WNOWAIT) == 0;
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
    ::sigfillset(&mine);
    for (const int signal : unread) {
        ::sigdelset(&mine, signal);
    }
    ::sigemptyset(&ignored_);
    for (int signal = 1; signal <= SIGRTMAX; ++signal) {
        if (isIgnored(signal)) {
            ::sigaddset(&ignored_, signal);
        }
    }
    handle_ = madeHandle(::signalfd(-1, &mine, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd");
    ::sigaddset(&mine, SIGTTOU); // a message may be written from the background
    ::pthread_sigmask(SIG_BLOCK, &mine, &before_);
    for (std::size_t i = 0; i < changed.size(); ++i) {
        struct sigaction action {};
        action.sa_handler = changed[i] == SIGCHLD ? SIG_DFL : SIG_IGN;
        ::sigaction(changed[i], &action, &actions_[i]);
    }
}

Signals::~Signals()
{
    ::close(handle_);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); // a message may still be written
}

void Signals::restore() const noexcept
{
    for (std::size_t i = 0; i < changed.size(); ++i) {
        ::sigaction(changed[i], &actions_[i], nullptr);
    }
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
                 const Signals& signals, const Processes& all)
    : all_(all)
{
    others_ = processes();
    std::erase_if(others_, [](pid_t process) { return !isChild(process); });
    // processes that the command leaves behind become children of this one
    madeHandle(::prctl(PR_SET_CHILD_SUBREAPER, 1), "prctl");
    std::array<int, 2> failure{};
    madeHandle(::pipe2(failure.data(), O_CLOEXEC), "pipe");
    const pid_t self = ::getpid();
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
    failure_ = failure[0];
}

Command::~Command()
{
    ::close(failure_);
    try {
        if (!hasEnded()) {
            killAll();
        }
    } catch (...) { // there is no memory to find more than the program
    }
}

int Command::look()
{
    int how = 0;
    for (pid_t process = 0; (process = ::waitpid(-1, &how, WNOHANG | WUNTRACED)) > 0;) {
        if (process == process_ && WIFSTOPPED(how)) {
            return WSTOPSIG(how);
        }
        if (process == process_) {
            (void)!::read(failure_, &error_, sizeof error_); // nothing if the program ran
            endSignal_ = WIFEXITED(how) ? 0 : WTERMSIG(how);
            status_ = WEXITSTATUS(how);
            process_ = -1;
        } else if (!WIFSTOPPED(how)) {
            others_.erase(process); // its number may become another's
        }
    }
    return 0;
}

void Command::forward(int signal) const noexcept
{
    if (process_ > 0) {
        ::kill(process_, signal);
    }
}

std::set<pid_t> Command::processes() const
{
    const auto all = all_.parents();
    std::set<pid_t> found;
    if (!hasEnded()) {
        found.insert(process_);
    }
    for (const auto& [process, parent] : all) {
        if (isChild(process) && !others_.contains(process)) {
            found.insert(process);
        }
    }
    for (std::size_t before = 0; before != found.size();) {
        before = found.size();
        for (const auto& [process, parent] : all) {
            if (found.contains(parent)) {
                found.insert(process);
            }
        }
    }
    return found;
}

bool Command::isAnyLeft()
{
    while (look() != 0) {
    }
    siginfo_t child{};
    const bool hasChildren = ::waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0;
    return hasChildren && (others_.empty() || !hasEnded() || !processes().empty());
}

std::set<pid_t> Command::signalAll(int signal) const
{
    std::set<pid_t> refused;
    for (const pid_t process : processes()) {
        if (::kill(process, signal) != 0 && errno == EPERM) {
            refused.insert(process);
        }
    }
    return refused;
}

void Command::killAll()
{
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    forward(SIGKILL); // this needs neither memory nor /proc
    do {              // a process that was just being started may have been missed
        signalAll(SIGKILL);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    } while (isAnyLeft() && std::chrono::steady_clock::now() < end);
}

} // namespace redislock::tool
