// The picture around a violation: a row for each thread that had the lock, a row for Redis, and faults in the
// background.
#include "history/report.hpp"

#include <algorithm>
#include <map>
#include <sstream>
#include <string>

namespace redislock::test::history {
namespace {

constexpr int width = 1200;
constexpr int margin = 180;
constexpr int rowHeight = 26;

class Picture {
public:
    Picture(Nanoseconds from, Nanoseconds to) : from_(from), to_(to) {}

    int row(const std::string& name)
    {
        const auto [found, isNew] = rows_.try_emplace(name, static_cast<int>(rows_.size()));
        if (isNew) {
            text(4, y(found->second) + 16, name);
        }
        return found->second;
    }

    void bar(int row, Nanoseconds begin, Nanoseconds end, const std::string& colour, const std::string& title)
    {
        const auto left = x(begin);
        body_ << "<rect x='" << left << "' y='" << y(row) + 4 << "' width='" << std::max(1.0, x(end) - left)
              << "' height='" << rowHeight - 8 << "' fill='" << colour << "'><title>" << escaped(title)
              << "</title></rect>\n";
    }

    void band(Nanoseconds begin, Nanoseconds end, const std::string& title)
    {
        behind_ << "<rect class='fault' x='" << x(begin) << "' y='0' width='" << x(end) - x(begin)
                << "' height='100%' fill='#f3d9b1'><title>" << escaped(title) << "</title></rect>\n";
    }

    void line(Nanoseconds at, const std::string& colour)
    {
        behind_ << "<line x1='" << x(at) << "' y1='0' x2='" << x(at) << "' y2='100%' stroke='" << colour << "'/>\n";
    }

    void text(double left, int top, const std::string& words)
    {
        body_ << "<text x='" << left << "' y='" << top << "' font-size='11' font-family='monospace'>" << escaped(words)
              << "</text>\n";
    }

    [[nodiscard]] std::string svg(const std::string& title) const
    {
        const auto height = (static_cast<int>(rows_.size()) + 2) * rowHeight;
        std::ostringstream out;
        out << "<svg xmlns='http://www.w3.org/2000/svg' width='" << width << "' height='" << height << "'>\n"
            << "<rect width='100%' height='100%' fill='white'/>\n"
            << behind_.str() << body_.str() << "<text x='4' y='16' font-size='13' font-family='monospace'>"
            << escaped(title) << "</text>\n</svg>\n";
        return out.str();
    }

private:
    [[nodiscard]] double x(Nanoseconds t) const
    {
        const auto inside = std::clamp(t, from_, to_);
        return margin + static_cast<double>(inside - from_) / static_cast<double>(to_ - from_) * (width - margin - 10);
    }
    static int y(int row) { return (row + 1) * rowHeight; }

    static std::string escaped(const std::string& text)
    {
        std::string safe;
        for (const char c : text) {
            safe += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
        }
        return safe;
    }

    Nanoseconds from_;
    Nanoseconds to_;
    std::map<std::string, int> rows_;
    std::ostringstream behind_;
    std::ostringstream body_;
};

} // namespace

std::string timelineSvg(const History& history, const Violation& violation)
{
    auto from = violation.t;
    auto to = violation.t;
    for (const auto& record : violation.records) {
        from = std::min(from, record.t);
        to = std::max(to, record.t);
    }
    const auto around = std::max<Nanoseconds>((to - from) / 4, 20 * millisecond);
    from -= around;
    to += around;
    Picture picture(from, to);
    for (const auto& fault : history.faults) {
        if (fault.meets(from, to)) {
            picture.band(fault.begin, fault.end, fault.what);
        }
    }
    picture.line(violation.t, "red");
    for (const auto& grant : history.grants) {
        const auto end = grant.freed ? grant.freed->t : history.bootOf(grant.expiresMs());
        if (grant.lock == violation.lock && Interval{grant.made.t, end}.meets(from, to)) {
            picture.bar(picture.row("Redis"), grant.made.t, end, "#7a9cc6", grant.holder);
        }
    }
    for (const auto& hold : history.holds) {
        if (hold.lock() != violation.lock ||
            !Interval{hold.first().t, std::max(hold.end, hold.deadline)}.meets(from, to)) {
            continue;
        }
        const auto row =
            picture.row("process " + std::to_string(hold.first().pid) + "." + std::to_string(hold.first().thread));
        picture.bar(row, hold.first().t, hold.begin, "#d0d0d0", "asks for the lock");
        picture.bar(row, hold.begin, hold.end, "#5fa55a", "believes: " + hold.holder);
        picture.bar(row, hold.deadline, hold.deadline, "black", "deadline");
    }
    return picture.svg(violation.invariant + " " + violation.lock + ": " + violation.text);
}

} // namespace redislock::test::history
