// A lock for the steps of a script: a process in the background keeps it, and ends with the script.
#include "holding.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace redislock::tool {

namespace {

constexpr const char* endedLine = "REDISLOCK_ENDED=";

/// A file handle.
class Handle {
public:
    Handle(int handle, const char* call) : handle_(madeHandle(handle, call)) {}
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;
    ~Handle() { close(); }

    [[nodiscard]] int get() const noexcept { return handle_; }
    void close() noexcept
    {
        if (handle_ >= 0) {
            ::close(std::exchange(handle_, -1));
        }
    }

private:
    int handle_;
};

/// A handle of a process: no other process can get its number while this is used.
int handleOf(pid_t process)
{
    return static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
}

std::string hostName()
{
    std::array<char, 256> name{};
    ::gethostname(name.data(), name.size() - 1);
    return name.data();
}

/// The process that keeps what the token file is about: it has locked the file. 0: none
pid_t keeperOf(int file)
{
    struct flock region {};
    region.l_type = F_WRLCK;
    return ::fcntl(file, F_GETLK, &region) == 0 && region.l_type != F_UNLCK ? region.l_pid : 0;
}

/// Finds out before a long wait whether the file can be written. @throws std::exception if not
void requireFree(const std::string& path)
{
    const auto folder = std::filesystem::path(path).parent_path().string();
    madeHandle(::access(folder.c_str(), W_OK), folder.c_str());
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const auto keeper = file < 0 ? 0 : keeperOf(file);
    ::close(file);
    if (keeper > 0) {
        throw std::runtime_error(fmt::format("the token file {} is in use by process {}: redislock unlock {}",
                                             shown(path), keeper, shown(path)));
    }
}

/// Writes the token file under another name, then gives it its own: nobody reads half of it. @return its handle, by
/// which this process is known as the keeper
int makeTokenFile(const std::string& path, const std::string& text)
{
    std::string temporary = path + ".XXXXXX";
    const int file = madeHandle(::mkostemp(temporary.data(), O_CLOEXEC), path.c_str());
    struct flock region {};
    region.l_type = F_WRLCK;
    const bool isWritten = ::fcntl(file, F_SETLK, &region) == 0 &&
                           ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                           ::rename(temporary.c_str(), path.c_str()) == 0;
    if (!isWritten) {
        const int error = errno;
        ::unlink(temporary.c_str());
        ::close(file);
        throw std::system_error(error, std::generic_category(), path);
    }
    return file;
}

/// Leaves the terminal, the folder, and whoever reads what this process writes.
void goToBackground()
{
    ::setsid();
    (void)!::chdir("/");
    const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int handle : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        ::dup2(nothing, handle);
    }
    ::close(nothing);
}

/// The background process. @param told a pipe to the one in the foreground, which learns by a byte that it is held
/// @return the status, if it was not held
int keep(const Settings& settings, const std::string& path, int process, int told)
{
    const Signals signals;
    const Client client(settings.url);
    const auto [holding, signal] = obtain(client, settings, signals);
    if (!holding) {
        return signal != 0 ? 128 + signal : settings.notObtainedStatus;
    }
    std::string text = "REDISLOCK_NAME=" + inQuotes(settings.name) + "\nREDISLOCK_HOST=" + inQuotes(hostName()) + "\n";
    if (const auto token = holding->token()) {
        text += fmt::format("REDISLOCK_TOKEN={}\n", static_cast<std::uint64_t>(*token));
    }
    const Handle file(makeTokenFile(path, text), "token file");
    goToBackground();
    ::prctl(PR_SET_PDEATHSIG, 0);
    const bool isAwaited = ::write(told, "", 1) == 1;
    ::close(told);
    const bool isLost = isAwaited && holdOn(*holding, settings, signals, process);
    const auto how = giveBack(*holding, settings, isLost);
    const auto result = fmt::format("{}{}\n", endedLine,
                                    isLost || how == Unlocked::alreadyLost ? "lost"
                                    : how == Unlocked::unconfirmed         ? "unconfirmed"
                                                                           : "released");
    (void)!::write(file.get(), result.data(), result.size());
    pollfd ended{process, POLLIN, 0};
    if (!isAwaited || (::poll(&ended, 1, 0) == 1 && !isLost)) {
        ::unlink(path.c_str()); // there is nobody left who would ask
    }
    return exitFine;
}

/// Closes what the script has open, but for the first three handles and two others: a pipe must not stay open, or a
/// file locked, because of this process.
void closeOthers(int one, int other)
{
    const auto [first, second] = std::minmax(one, other);
    const auto close = [](int from, int to) {
        if (from <= to) {
            ::syscall(SYS_close_range, from, to, 0);
        }
    };
    close(STDERR_FILENO + 1, first - 1);
    close(std::max(first, STDERR_FILENO) + 1, second - 1);
    ::syscall(SYS_close_range, std::max(second, STDERR_FILENO) + 1, ~0U, 0);
}

/// Waits until the background process holds it, or has ended.
int statusOf(pid_t keeper, const Handle& told)
{
    char byte = 0;
    int how = 0;
    if (::read(told.get(), &byte, 1) == 1) {
        return exitFine;
    }
    ::waitpid(keeper, &how, 0);
    return WIFEXITED(how) ? WEXITSTATUS(how) : exitFailed;
}

std::string valueIn(const std::string& text, const std::string& key)
{
    const auto at = ("\n" + text).find("\n" + key);
    return at == std::string::npos ? std::string()
                                   : text.substr(at + key.size(), text.find('\n', at) - at - key.size());
}

std::string contentOf(const std::string& path)
{
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// Has the keeper give back what it holds, and waits until it has ended.
void endKeeper(int file, pid_t keeper)
{
    const Handle process(handleOf(keeper), "pidfd_open");
    if (keeperOf(file) != keeper) {
        return; // it has ended meanwhile
    }
    if (::syscall(SYS_pidfd_send_signal, process.get(), SIGTERM, nullptr, 0) != 0) {
        throw std::system_error(errno, std::generic_category(), fmt::format("cannot end process {}", keeper));
    }
    pollfd ended{process.get(), POLLIN, 0};
    if (::poll(&ended, 1, 60'000) != 1) {
        throw std::runtime_error(fmt::format("process {} is still releasing the lock after a minute", keeper));
    }
}

} // namespace

int lock(const Settings& settings)
{
    const auto path = std::filesystem::absolute(settings.tokenFile).string();
    requireFree(path);
    const Handle process(settings.lease ? ::open("/dev/null", O_WRONLY | O_CLOEXEC)
                                        : handleOf(settings.process.value_or(::getppid())),
                         fmt::format("process {}", settings.process.value_or(::getppid())).c_str());
    std::array<int, 2> pipe{};
    madeHandle(::pipe2(pipe.data(), O_CLOEXEC), "pipe");
    const pid_t self = ::getpid();
    const pid_t child = madeHandle(::fork(), "fork");
    if (child == 0) {
        int status = exitFailed;
        ::prctl(PR_SET_PDEATHSIG, SIGTERM); // as long as somebody waits for it
        if (::getppid() == self) {
            try {
                closeOthers(process.get(), pipe[1]);
                status = keep(settings, path, settings.lease ? -1 : process.get(), pipe[1]);
            } catch (const std::exception& error) {
                complain(error.what());
            }
        }
        ::_exit(status);
    }
    ::close(pipe[1]);
    return statusOf(child, Handle(pipe[0], "pipe"));
}

int unlock(const Settings& settings)
{
    const auto& path = settings.tokenFile;
    const int opened = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (opened < 0 && errno == ENOENT) {
        complain("there is no token file " + shown(path) + ": its lock was released, or ended with its process");
        return exitError;
    }
    const Handle file(opened, path.c_str());
    auto text = contentOf(path);
    const auto host = valueIn(text, "REDISLOCK_HOST=");
    if (host != inQuotes(hostName())) {
        complain(shown(path) + (host.empty()
                                    ? std::string(" is not a token file that redislock lock has written")
                                    : fmt::format(" is of a lock that was taken on {}: unlock it there", host)));
        return exitError;
    }
    const auto name = valueIn(text, "REDISLOCK_NAME=");
    if (const auto keeper = keeperOf(file.get()); keeper > 0) {
        endKeeper(file.get(), keeper);
        text = contentOf(path);
    }
    const auto how = valueIn(text, endedLine);
    ::unlink(path.c_str());
    if (how == "released") {
        return exitFine;
    }
    complain(
        how == "lost" ? fmt::format("lock {} was lost before it was released", name)
        : how == "unconfirmed"
            ? fmt::format("lock {} was released, but the server did not answer: it is free when its lease ends", name)
            : fmt::format("the process that kept lock {} was killed: the lock is free when its lease ends", name));
    return how == "unconfirmed" ? exitFine : settings.lostStatus;
}

} // namespace redislock::tool
