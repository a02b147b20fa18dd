/// @file
/// What RedisServer is made of: a child process and a temporary folder. No interface of the library.
#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace redislock::testing::detail {

/// A new, private folder below the system's temporary folder; removed with all it holds by the destructor.
class TemporaryFolder {
public:
    TemporaryFolder();
    TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
    TemporaryFolder& operator=(TemporaryFolder&&) = delete;
    ~TemporaryFolder();

    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

private:
    std::filesystem::path path_;
};

/// Whether @p timeout has passed since then: `milliseconds::max()` never has.
inline bool isOver(std::chrono::milliseconds timeout, std::chrono::steady_clock::time_point since) noexcept
{
    return std::chrono::floor<std::chrono::milliseconds>(std::chrono::steady_clock::now() - since) >= timeout;
}

/// A child process, or none. The destructor ends it as stop() does.
class ChildProcess {
public:
    ChildProcess() noexcept = default;
    /// Starts @p command (its first word is a path); output and errors are appended to @p log.
    ChildProcess(const std::vector<std::string>& command, const std::filesystem::path& log);
    ChildProcess(ChildProcess&& other) noexcept;
    ChildProcess& operator=(ChildProcess&& other) noexcept;
    ~ChildProcess() { stop(); }

    /// 0 when there is none, or when it is known to have ended.
    [[nodiscard]] pid_t pid() const noexcept { return pid_; }
    /// Looks whether it still runs, and collects it if not.
    bool runs() noexcept;
    /// Waits until it has ended and is collected. @return false when @p timeout was over first.
    bool awaitEnd(std::chrono::milliseconds timeout) noexcept;
    /// Ends it at once and collects it.
    void kill() noexcept;
    /// Asks it to end (SIGTERM), frozen or not; ends it at once if it has not after 2 s.
    void stop() noexcept;
    /// Sends a signal if it runs.
    void signal(int number) noexcept;
    /// The state letter of proc(5): R, S, D, T, Z...; '?' when there is none.
    [[nodiscard]] char state() const;
    /// How it ended: "exit status 1", "signal 9"; empty while that is not known.
    [[nodiscard]] std::string ending() const;

private:
    pid_t pid_ = 0;
    int status_ = -1;
};

inline TemporaryFolder::TemporaryFolder()
{
    // A unix socket's path has at most 107 bytes.
    constexpr std::string_view name = "/redislock-XXXXXX";
    constexpr std::size_t longest = 107 - name.size() - std::string_view("/redis.sock").size();
    std::error_code ec;
    auto parent = std::filesystem::temp_directory_path(ec).string();
    if (ec || parent.size() > longest) {
        parent = "/tmp";
    }
    auto path = parent + std::string(name);
    if (::mkdtemp(path.data()) == nullptr) {
        throw std::runtime_error("cannot make a temporary folder in " + parent + ": " + std::strerror(errno));
    }
    path_ = path;
}

inline TemporaryFolder::~TemporaryFolder()
{
    if (!path_.empty()) {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
}

/// The text of a file from byte @p begin on; empty when it cannot be read.
inline std::string readFile(const std::filesystem::path& path, std::uintmax_t begin = 0)
{
    std::ifstream in(path, std::ios::binary);
    in.seekg(static_cast<std::streamoff>(begin));
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline std::uintmax_t sizeOrZero(const std::filesystem::path& path) noexcept
{
    std::error_code ec;
    const auto size = std::filesystem::file_size(path, ec);
    return ec ? 0 : size;
}

inline std::string lastLines(const std::string& text, std::size_t count)
{
    auto begin = text.size();
    for (std::size_t lines = 0; begin > 0; --begin) {
        if (text[begin - 1] == '\n' && begin != text.size() && ++lines == count) {
            break;
        }
    }
    return text.substr(begin);
}

/// A path for execv(): looked up before fork(), because the child may only do what is safe in a signal handler.
inline std::string findExecutable(const std::string& name)
{
    if (name.find('/') != std::string::npos) {
        if (::access(name.c_str(), X_OK) == 0) {
            return name;
        }
        throw std::runtime_error("cannot run " + name + ": " + std::strerror(errno));
    }
    const char* folders = std::getenv("PATH");
    std::istringstream path(folders != nullptr ? folders : "/usr/local/bin:/usr/bin:/bin");
    for (std::string folder; std::getline(path, folder, ':');) {
        auto candidate = (folder.empty() ? "." : folder) + "/" + name;
        if (::access(candidate.c_str(), X_OK) == 0 && !std::filesystem::is_directory(candidate)) {
            return candidate;
        }
    }
    throw std::runtime_error(name + " was not found in PATH: install it (Debian: apt install redis-server) or set "
                                    "RedisServerOptions::executable");
}

/// In the child, between fork() and execv(): only what is safe in a signal handler.
[[noreturn]] inline void becomeServer(char* const* arguments, pid_t parent, int input, int output) noexcept
{
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) {
        ::_exit(127);
    }
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::dup2(input, STDIN_FILENO);
    ::dup2(output, STDOUT_FILENO);
    ::dup2(output, STDERR_FILENO);
    // Sockets that the parent closes must be closed, not live on in the server.
    bool closed = false;
#ifdef SYS_close_range
    closed = ::syscall(SYS_close_range, 3U, ~0U, 0U) == 0;
#endif
    for (int fd = 3; !closed && fd < 4096; ++fd) {
        ::close(fd);
    }
    ::execv(arguments[0], arguments);
    ::_exit(127);
}

inline ChildProcess::ChildProcess(const std::vector<std::string>& command, const std::filesystem::path& log)
{
    std::vector<char*> arguments;
    arguments.reserve(command.size() + 1);
    for (const auto& argument : command) {
        arguments.push_back(const_cast<char*>(argument.c_str())); // execv() takes them so, and does not write
    }
    arguments.push_back(nullptr);
    const int input = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    const int output = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const pid_t parent = ::getpid();
    const pid_t child = input < 0 || output < 0 ? -1 : ::fork();
    if (child == 0) {
        becomeServer(arguments.data(), parent, input, output);
    }
    const int error = errno;
    ::close(input);
    ::close(output);
    if (child < 0) {
        throw std::runtime_error("cannot start " + command.front() + ": " + std::strerror(error));
    }
    pid_ = child;
}

inline ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), status_(std::exchange(other.status_, -1))
{
}

inline ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept
{
    if (this != &other) {
        stop();
        pid_ = std::exchange(other.pid_, 0);
        status_ = std::exchange(other.status_, -1);
    }
    return *this;
}

inline bool ChildProcess::runs() noexcept
{
    if (pid_ == 0) {
        return false;
    }
    const pid_t ended = ::waitpid(pid_, &status_, WNOHANG);
    if (ended == 0 || (ended < 0 && errno == EINTR)) {
        return true;
    }
    pid_ = 0; // ended, or collected by someone else
    return false;
}

inline bool ChildProcess::awaitEnd(std::chrono::milliseconds timeout) noexcept
{
    const auto began = std::chrono::steady_clock::now();
    for (auto step = std::chrono::microseconds(200); runs();
         step = std::min(step * 2, std::chrono::microseconds(5000))) {
        if (isOver(timeout, began)) {
            return false;
        }
        std::this_thread::sleep_for(step);
    }
    return true;
}

inline void ChildProcess::signal(int number) noexcept
{
    // A child that has ended keeps its pid until it is collected, so this never hits another process.
    if (runs()) {
        ::kill(pid_, number);
    }
}

inline void ChildProcess::kill() noexcept
{
    signal(SIGKILL);
    while (pid_ != 0) {
        awaitEnd(std::chrono::seconds(1)); // ends: nothing survives SIGKILL
    }
}

inline void ChildProcess::stop() noexcept
{
    signal(SIGTERM);
    signal(SIGCONT); // a frozen process takes the SIGTERM only when it goes on
    if (!awaitEnd(std::chrono::seconds(2))) {
        kill();
    }
}

inline char ChildProcess::state() const
{
    if (pid_ == 0) {
        return '?';
    }
    const auto stat = readFile("/proc/" + std::to_string(pid_) + "/stat");
    const auto name = stat.rfind(") "); // the name of the program may hold anything
    return name == std::string::npos || name + 2 >= stat.size() ? '?' : stat[name + 2];
}

inline std::string ChildProcess::ending() const
{
    if (pid_ != 0 || status_ == -1) {
        return {};
    }
    return WIFSIGNALED(status_) ? "signal " + std::to_string(WTERMSIG(status_))
                                : "exit status " + std::to_string(WEXITSTATUS(status_));
}

} // namespace redislock::testing::detail
