// A table that is drawn again and again.
#include "command.hpp"
#include "settings.hpp"
#include "table.hpp"

#include "values/printable.hpp"

#include <fmt/format.h>

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

namespace redislock::tool {

namespace {

/// A screen of its own; afterwards the terminal is as it was.
class Screen {
public:
    Screen() { write("\x1b[?1049h\x1b[?25l"); }
    Screen(const Screen&) = delete;
    Screen& operator=(const Screen&) = delete;
    ~Screen() { write("\x1b[?25h\x1b[?1049l"); }

    static void draw(const std::vector<LockReport>& locks, const std::string& head)
    {
        winsize size{};
        ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
        const std::size_t rows = std::max<std::size_t>(size.ws_row, 5);
        const auto lines = tableOf(locks, size.ws_col);
        std::string all = "\x1b[H" + head.substr(0, size.ws_col) + "\x1b[K\r\n\x1b[K\r\n";
        for (std::size_t i = 0; i < std::min(lines.size(), rows - 3); ++i) {
            all += lines[i] + "\x1b[K\r\n";
        }
        write(all + "\x1b[J");
    }

private:
    static void write(const std::string& bytes)
    {
        std::fwrite(bytes.data(), 1, bytes.size(), stdout);
        std::fflush(stdout);
    }
};

/// @return the signal that came meanwhile; 0 or less: none came.
int pauseFor(std::chrono::milliseconds time, const sigset_t& signals)
{
    const timespec limit{static_cast<std::time_t>(time.count() / 1000),
                         static_cast<long>(time.count() % 1000) * 1'000'000};
    return ::sigtimedwait(&signals, nullptr, &limit);
}

} // namespace

int watch(const Settings& settings)
{
    sigset_t signals;
    ::sigemptyset(&signals);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP}) {
        if (!isIgnored(signal)) {
            ::sigaddset(&signals, signal);
        }
    }
    ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    LockMonitor monitor(settings.url);
    auto locks = monitor.list(settings.pattern); // reports a server that is not there before the screen changes
    warnOfRights(monitor);
    const bool draws = !settings.json && isScreen();
    auto screen = draws ? std::make_unique<Screen>() : nullptr;
    std::string trouble;
    do {
        std::sort(locks.begin(), locks.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
        const auto where = Config::fromUrl(settings.url).endpoint.str();
        if (draws) {
            Screen::draw(locks, trouble.empty() ? fmt::format("{} locks {} at {}", locks.size(),
                                                              detail::printable(settings.pattern), where)
                                                : trouble);
        } else if (!trouble.empty()) {
            complain(trouble);
        } else if (settings.json) {
            for (const auto& lock : locks) {
                fmt::print("{}\n", jsonOf(lock));
            }
        } else {
            fmt::print("{}\n\n", fmt::join(tableOf(locks), "\n"));
        }
        flushOutput();
        const int signal = pauseFor(settings.interval, signals);
        if (signal == SIGTSTP) {
            screen.reset(); // the shell's, until it lets this program go on
            stopByTerminal();
            screen = draws ? std::make_unique<Screen>() : nullptr;
        } else if (signal > 0 && signal != SIGWINCH) {
            return exitFine;
        }
        std::error_code ec;
        locks = monitor.list(settings.pattern, ec);
        trouble = ec ? "no answer from " + where + ": " + ec.message() : std::string();
    } while (true);
}

} // namespace redislock::tool
