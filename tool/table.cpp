#include "table.hpp"

#include "values/printable.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>

namespace redislock::tool {

namespace {

constexpr std::size_t columns = 7;
using Row = std::array<std::string, columns>;

Row rowOf(const LockReport& lock)
{
    Row row{detail::printable(lock.name, 60), std::string(toString(lock.kind)), "?", "", "", timeLeft(lock), "?"};
    if (!lock.holders.empty()) {
        // a writer's own reading is no second holder
        const auto writer =
            std::find_if(lock.holders.begin(), lock.holders.end(), [](const auto& h) { return h.writes; });
        const bool isWritten = writer != lock.holders.end();
        const auto& holder = isWritten ? *writer : lock.holders.front();
        const auto others = isWritten ? 0 : lock.holders.size() - 1;
        row[2] = holder.host.empty() ? detail::printable(holder.name, 60) : holder.host;
        row[3] = holder.process == 0 ? "" : std::to_string(holder.process);
        row[4] = others > 0 ? fmt::format("{}{} holders", others + 1, lock.hasMoreHolders ? "+" : "")
                            : std::to_string(holder.count);
    }
    row[6] = lock.waiters ? std::to_string(*lock.waiters) : row[6];
    return row;
}

std::string colour(std::string_view code, std::string_view text)
{
    static const bool shows = isScreen() && std::getenv("NO_COLOR") == nullptr;
    return shows ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

} // namespace

bool isScreen()
{
    const auto* const terminal = std::getenv("TERM");
    const std::string_view kind(terminal == nullptr ? "" : terminal);
    return ::isatty(STDOUT_FILENO) == 1 && !kind.empty() && kind != "dumb";
}

std::string bold(std::string_view text)
{
    return colour("1", text);
}

std::string red(std::string_view text)
{
    return colour("31", text);
}

std::string inWords(std::chrono::milliseconds time)
{
    using namespace std::chrono_literals;
    const auto count = static_cast<double>(time.count());
    return time < 1s       ? fmt::format("{} ms", time.count())
           : time < 100s   ? fmt::format("{:.1f} s", count / 1e3)
           : time < 100min ? fmt::format("{:.0f} min", count / 60e3)
                           : fmt::format("{:.0f} h", count / 3600e3);
}

std::string timeLeft(const LockReport& lock)
{
    return lock.timeLeft ? inWords(*lock.timeLeft) : "never ends";
}

std::string whereabouts(const LockHolder& holder)
{
    return holder.process == 0
               ? fmt::format("client {}, which has no named connection (gone, or Redisson's)", holder.clientId)
               : fmt::format("{}, process {} ({}, from {})", holder.host, holder.process, holder.program,
                             holder.address);
}

std::vector<std::string> tableOf(const std::vector<LockReport>& locks, std::size_t width)
{
    std::vector<Row> rows{{"NAME", "KIND", "HOST", "PROCESS", "COUNT", "LEFT", "WAITERS"}};
    std::transform(locks.begin(), locks.end(), std::back_inserter(rows), rowOf);
    std::array<std::size_t, columns> widths{};
    for (const auto& row : rows) {
        for (std::size_t i = 0; i < columns; ++i) {
            widths[i] = std::max(widths[i], row[i].size());
        }
    }
    std::vector<std::string> lines;
    for (const auto& row : rows) {
        std::string line;
        for (std::size_t i = 0; i < columns; ++i) {
            line += i + 1 == columns ? row[i] : fmt::format("{:<{}}  ", row[i], widths[i]);
        }
        lines.push_back(width > 0 ? line.substr(0, width) : line);
    }
    lines.front() = bold(lines.front());
    return lines;
}

} // namespace redislock::tool
