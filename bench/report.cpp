#include "report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace redislock::bench {

namespace {

std::string bound(Aim aim, double value)
{
    return value == 0 ? std::string("-") : fmt::format("{} {:g}", aim == Aim::atLeast ? "≥" : "≤", value);
}

/// A bound and whether it is reached.
std::string judged(const Row& row, double ratio, double value)
{
    return value == 0 ? std::string("-")
                      : fmt::format("{} {}", bound(row.aim, value), reaches(row, ratio, value) ? "yes" : "no");
}

std::string_view verdict(const Row& row, double ratio, double value)
{
    if (value == 0) {
        return "none";
    }
    return reaches(row, ratio, value) ? "reached" : "not-reached";
}

std::string percent(double share)
{
    return fmt::format("{:.0f} %", share * 100);
}

void printLine(std::string_view row, std::string_view ours, std::string_view reference, std::string_view ratio,
               std::string_view between, std::string_view goal, std::string_view stretch, std::string_view noise)
{
    fmt::print("{:<23} {:>11} {:>11} {:>6}  {:^15} {:>11} {:>11}  {}\n", row, ours, reference, ratio, between, goal,
               stretch, noise);
    std::fflush(stdout);
}

} // namespace

Result summarize(const Measured& measured)
{
    std::vector<double> ours;
    std::vector<double> reference;
    std::vector<double> ratio;
    for (const auto& pair : measured.pairs) {
        ours.push_back(pair.ours);
        reference.push_back(pair.reference);
        ratio.push_back(pair.ours / pair.reference);
    }
    const double middle = median(ratio);
    const auto typical = static_cast<std::size_t>(std::ranges::find(ratio, middle) - ratio.begin());
    return {median(ours),          median(reference),           middle,
            rangeOfMedian(ratio),  spread(reference),           spread(measured.fixedWork),
            measured.pairs.size(), measured.pairs[typical].note};
}

bool isUncertain(const Row& row, const Result& result)
{
    const auto [low, high] = result.ratioBetween;
    return row.goal != 0 && reaches(row, low, row.goal) != reaches(row, high, row.goal);
}

void printHead()
{
    printLine("row", "ours", "reference", "ratio", "from … to", "goal", "stretch", "noise: reference, machine");
}

void printRow(const Row& row, const Result& result)
{
    const auto figure = [&](double value) {
        return fmt::format("{:.{}f}{}", value, row.unit == "/s" || row.unit.empty() ? 0 : 1, row.unit);
    };
    printLine(row.name, figure(result.ours), figure(result.reference), fmt::format("{:.2f}", result.ratio),
              fmt::format("{:.2f} … {:.2f}", result.ratioBetween.low, result.ratioBetween.high),
              judged(row, result.ratio, row.goal), judged(row, result.ratio, row.stretch),
              result.pairs > 1 ? percent(result.referenceSpread) + ", " + percent(result.machineSpread)
                               : "measured once");
    if (!result.note.empty()) {
        fmt::print("    {}\n", result.note);
    }
    if (isUncertain(row, result)) {
        fmt::print("    ! the goal lies between {:.2f} and {:.2f}: chance decides here; a calmer machine, or more "
                   "--repetitions\n",
                   result.ratioBetween.low, result.ratioBetween.high);
    }
    std::fflush(stdout);
}

void printTsv(std::FILE* file, const Row& row, const Result& result)
{
    fmt::print(file, "{}\t{:.1f}\t{:.1f}\t{:.3f}\t{:g}\t{}\t{:g}\t{}\t{:.3f}\t{:.3f}\t{:.3f}\t{:.3f}\t{}\t{}\n",
               row.name, result.ours, result.reference, result.ratio, row.goal, verdict(row, result.ratio, row.goal),
               row.stretch, verdict(row, result.ratio, row.stretch), result.ratioBetween.low, result.ratioBetween.high,
               result.referenceSpread, result.machineSpread, nameOf(row.group),
               row.aim == Aim::atLeast ? "at-least" : "at-most");
    std::fflush(file);
}

void printList(const std::vector<Row>& rows)
{
    for (const auto& row : rows) {
        fmt::print("{:<23} {:>6}  {}{}\n", row.name, bound(row.aim, row.goal), row.what,
                   row.asked == Asked::byName ? " (only when it is named)" : "");
    }
}

} // namespace redislock::bench
