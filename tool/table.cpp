#include "table.hpp"

#include <fmt/format.h>

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <limits>
#include <tuple>
#include <utility>

namespace redislock::tool {

namespace {

/// Columns, those first that are left out last.
enum Column : std::size_t { name, holder, left, waiters, age, kind, count, columns };
using Row = std::array<std::string, columns>;

constexpr std::string_view gap = "  ";
constexpr std::size_t longestName = 1024; ///< of a lock; a key may be longer

std::string nameOf(const LockReport& lock)
{
    return lock.name.size() <= longestName ? shown(lock.name)
                                           : shown(lock.name.substr(0, longestName)).append(ellipsis());
}

/// `web-3:4711`, or what is known of a client without a name.
std::string shortHolder(const LockReport& lock)
{
    if (lock.holders.empty()) {
        return lock.hasMoreHolders ? "many" : "?";
    }
    const auto& one = mainHolder(lock);
    const auto others = one.writes ? 0 : lock.holders.size() - 1;
    const auto where = one.process == 0 ? "client " + shown(one.clientId.substr(0, 8))
                                        : fmt::format("{}:{}", shown(one.host), one.process);
    return others == 0 ? where : fmt::format("{} +{}{}", where, others, lock.hasMoreHolders ? ellipsis() : "");
}

Row rowOf(const LockReport& lock)
{
    Row row{nameOf(lock), shortHolder(lock), timeLeft(lock), "?", "?", std::string(toString(lock.kind)), "?"};
    row[waiters] = lock.waiters ? std::to_string(*lock.waiters) : row[waiters];
    if (!lock.holders.empty()) {
        const auto& one = mainHolder(lock);
        row[age] = one.connectedFor ? inWords(*one.connectedFor) : row[age];
        row[count] = std::to_string(one.count);
    }
    return row;
}

bool isNumber(std::size_t column)
{
    return column == left || column == waiters || column == age || column == count;
}

/// Where the columns are.
struct Layout {
    std::array<std::size_t, columns> widths{};
    std::array<bool, columns> shows{};

    [[nodiscard]] std::size_t width() const
    {
        std::size_t sum = 0;
        for (std::size_t i = 0; i < columns; ++i) {
            sum += shows[i] ? widths[i] + (i == 0 ? 0 : gap.size()) : 0;
        }
        return sum;
    }
};

Layout layoutOf(const std::vector<Row>& rows, Sort order, std::size_t width)
{
    Layout layout;
    for (const auto& row : rows) {
        for (std::size_t i = 0; i < columns; ++i) {
            layout.widths[i] = std::max(layout.widths[i], widthOf(row[i]));
        }
    }
    layout.shows.fill(true);
    layout.shows[age] = order == Sort::age;
    if (width == 0) {
        return layout;
    }
    for (const auto column : {count, kind}) {
        layout.shows[column] = layout.width() <= width;
    }
    const std::size_t shortest = std::max<std::size_t>(width * 3 / 10, 15); // 15: a client without a name
    const std::size_t excess = layout.width() - std::min(layout.width(), width);
    auto& own = layout.widths[holder];
    own = own <= shortest ? own : std::max(shortest, own - std::min(own, excess));
    layout.widths[name] = 4; // names that do not fit have lines of their own, and do not widen the column
    const std::size_t others = layout.width() - layout.widths[name];
    const std::size_t room = std::max<std::size_t>(width - std::min(width, others), 8);
    for (const auto& row : rows) {
        const auto needed = widthOf(row[name]);
        layout.widths[name] = needed <= room ? std::max(layout.widths[name], needed) : layout.widths[name];
    }
    return layout;
}

std::string lineOf(const Row& row, const Layout& layout)
{
    std::string line;
    for (std::size_t i = 0; i < columns; ++i) {
        if (!layout.shows[i]) {
            continue;
        }
        const auto text = i == holder ? shortened(row[i], layout.widths[i]) : row[i];
        const std::string padding(layout.widths[i] - std::min(layout.widths[i], widthOf(text)), ' ');
        line += i == 0 ? std::string() : std::string(gap);
        line += isNumber(i) ? padding + text : text + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    return line;
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
    const std::string_view type(terminal == nullptr ? "" : terminal);
    return ::isatty(STDOUT_FILENO) == 1 && !type.empty() && type != "dumb";
}

std::size_t outputWidth()
{
    winsize size{};
    if (::isatty(STDOUT_FILENO) != 1) {
        return 0;
    }
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        return size.ws_col;
    }
    const char* const said = std::getenv("COLUMNS");
    const auto number = said == nullptr ? 0 : std::strtoul(said, nullptr, 10);
    return number > 0 ? number : 80;
}

std::string bold(std::string_view text)
{
    return colour("1", text);
}

std::string red(std::string_view text)
{
    return colour("31", text);
}

std::string timeLeft(const LockReport& lock)
{
    return lock.timeLeft ? inWords(*lock.timeLeft) : "never ends";
}

std::string whereabouts(const LockHolder& holder)
{
    return holder.process == 0 ? fmt::format("client {}", shown(holder.clientId))
                               : fmt::format("{}, process {}", shown(holder.host), holder.process);
}

std::string heldBy(const LockReport& lock)
{
    std::string text = "held";
    if (!lock.holders.empty()) {
        const auto& one = mainHolder(lock);
        const auto others = one.writes ? 0 : lock.holders.size() - 1;
        text += " by " + whereabouts(one) + (others == 0 ? std::string() : fmt::format(" and {} more", others));
    }
    text += ", " + timeLeft(lock) + (lock.timeLeft ? " left" : "");
    return !lock.waiters ? text : text + fmt::format(", {} wait{}", *lock.waiters, *lock.waiters == 1 ? "s" : "");
}

void describe(const LockReport& lock)
{
    const auto described = [](const LockHolder& holder) {
        return holder.process == 0
                   ? std::string("a client without named connections (gone, or Redisson's)")
                   : fmt::format("{} ({}, from {})", whereabouts(holder), holder.program, holder.address);
    };
    fmt::print("{} ({}), {}\n", bold(inQuotes(lock.name)), toString(lock.kind),
               timeLeft(lock) + (lock.timeLeft ? " left" : ""));
    for (const auto& each : lock.holders) {
        fmt::print("  held by {}, as {}{}, {}\n", described(each), shown(each.name), each.writes ? ", to write" : "",
                   each.count == 1 ? std::string("once") : fmt::format("{} times", each.count));
    }
    if (lock.queue.empty()) {
        fmt::print("  {}\n", !lock.waiters        ? std::string("how many wait for it is unknown")
                             : *lock.waiters == 0 ? std::string("nobody waits for it")
                             : *lock.waiters == 1 ? std::string("1 client waits for it")
                                                  : fmt::format("{} clients wait for it", *lock.waiters));
    }
    for (std::size_t i = 0; i < lock.queue.size(); ++i) {
        fmt::print("  waits {}: {}, as {}\n", i + 1, described(lock.queue[i]), shown(lock.queue[i].name));
    }
}

const LockHolder& mainHolder(const LockReport& lock)
{
    const auto writer = std::ranges::find_if(lock.holders, &LockHolder::writes);
    return writer != lock.holders.end() ? *writer : lock.holders.front();
}

void sortLocks(std::vector<LockReport>& locks, Sort order)
{
    const auto rank = [order](const LockReport& lock) -> std::int64_t {
        constexpr auto last = std::numeric_limits<std::int64_t>::max();
        switch (order) {
        case Sort::left:
            return lock.timeLeft ? lock.timeLeft->count() : last;
        case Sort::waiters:
            return lock.waiters ? -static_cast<std::int64_t>(*lock.waiters) : last;
        case Sort::age:
            return lock.holders.empty() || !mainHolder(lock).connectedFor ? last
                                                                          : -mainHolder(lock).connectedFor->count();
        default:
            return 0;
        }
    };
    std::ranges::sort(locks, std::less<>(),
                      [&](const LockReport& lock) { return std::tuple(rank(lock), std::string_view(lock.name)); });
}

std::vector<std::string> tableOf(const std::vector<LockReport>& locks, Sort order, std::size_t width)
{
    std::vector<Row> rows{{"NAME", "HOLDER", "LEFT", "WAITERS", "AGE", "KIND", "COUNT"}};
    std::ranges::transform(locks, std::back_inserter(rows), rowOf);
    const Layout layout = layoutOf(rows, order, width);
    std::vector<std::string> lines;
    for (auto& row : rows) {
        if (widthOf(row[name]) > layout.widths[name]) {
            lines.push_back(std::exchange(row[name], {}));
        }
        lines.push_back(lineOf(row, layout));
    }
    lines.front() = bold(lines.front());
    return lines;
}

} // namespace redislock::tool
