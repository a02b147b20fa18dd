// A table that is drawn again and again.
#include "command.hpp"
#include "settings.hpp"
#include "table.hpp"

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

    /// Draws as many of the locks as fit, and how many are left out.
    static void draw(std::vector<LockReport> locks, Sort order, std::size_t limit, const std::string& head)
    {
        winsize size{};
        ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
        const std::size_t width = outputWidth();
        const std::size_t rows = std::max<std::size_t>(size.ws_row, 6) - 3; // head, empty line, and where the cursor is
        const std::size_t whole = locks.size();
        locks.resize(std::min({whole, limit, rows}));
        auto lines = tableOf(locks, order, width);
        const auto isLong = [&] { return lines.size() + (locks.size() < whole ? 1 : 0) > rows; };
        while (isLong()) {
            locks.pop_back();
            lines = tableOf(locks, order, width);
        }
        if (locks.size() < whole) {
            lines.push_back(fmt::format("{} and {} more", ellipsis(), whole - locks.size()));
        }
        std::string all = "\x1b[H" + shortened(head, width) + "\x1b[K\r\n\x1b[K\r\n";
        for (std::size_t i = 0; i < lines.size(); ++i) {
            all += (i == 0 ? lines[i] : shortened(lines[i], width)) + "\x1b[K\r\n"; // the first has escape sequences
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

std::string addressIn(const Settings& settings)
{
    return Config::fromUrl(settings.url).endpoint.str();
}

/// @param trouble why there are no new reports; empty: there are
void show(const std::vector<LockReport>& locks, const Settings& settings, const std::string& trouble, bool draws)
{
    const auto order = settings.sort.value_or(Sort::waiters);
    if (draws) {
        Screen::draw(locks, order, settings.limit,
                     trouble.empty() ? fmt::format("{} {} at {}", counted(locks.size(), "lock"),
                                                   shown(settings.pattern), addressIn(settings))
                                     : trouble);
    } else if (!trouble.empty()) {
        complain(trouble);
    } else {
        printLocks(locks, settings, order);
        fmt::print("{}", settings.json ? "" : "\n");
    }
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
    const auto order = settings.sort.value_or(Sort::waiters);
    do {
        sortLocks(locks, order);
        show(locks, settings, trouble, draws);
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
        trouble = ec ? "no answer from " + addressIn(settings) + ": " + ec.message() : std::string();
    } while (true);
}

} // namespace redislock::tool
