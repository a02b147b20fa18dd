#include "report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>

namespace redislock::bench {

namespace {

std::string bound(Aim aim, double value)
{
    return value == 0 ? std::string("-") : fmt::format("{} {:g}", aim == Aim::atLeast ? "≥" : "≤", value);
}

void printLine(std::string_view row, std::string_view ours, std::string_view reference, std::string_view ratio,
               std::string_view spread, std::string_view goal, std::string_view stretch, std::string_view verdict)
{
    fmt::print("{:<24} {:>12} {:>12} {:>7}  {:^13} {:>7} {:>8}  {}\n", row, ours, reference, ratio, spread, goal,
               stretch, verdict);
    std::fflush(stdout);
}

} // namespace

Result summarize(const std::vector<Pair>& pairs)
{
    std::vector<double> ours;
    std::vector<double> reference;
    std::vector<double> ratio;
    for (const auto& pair : pairs) {
        ours.push_back(pair.ours);
        reference.push_back(pair.reference);
        ratio.push_back(pair.ours / pair.reference);
    }
    const auto [lowest, highest] = std::ranges::minmax(ratio);
    return {median(ours), median(reference), median(ratio), lowest, highest};
}

void printHead()
{
    printLine("row", "ours", "reference", "ratio", "min … max", "goal", "stretch", "");
}

void printRow(const Row& row, const Result& result)
{
    const auto figure = [&](double value) {
        return row.unit == "/s" ? fmt::format("{:.0f}{}", value, row.unit) : fmt::format("{:.1f}{}", value, row.unit);
    };
    printLine(row.name, figure(result.ours), figure(result.reference), fmt::format("{:.2f}", result.ratio),
              fmt::format("{:.2f} … {:.2f}", result.lowestRatio, result.highestRatio), bound(row.aim, row.goal),
              bound(row.aim, row.stretch), reaches(row, result.ratio) ? "reached" : "not reached");
}

void printTsv(const Row& row, const Result& result)
{
    fmt::print("{}\t{:.1f}\t{:.1f}\t{:.3f}\t{:g}\t{}\n", row.name, result.ours, result.reference, result.ratio,
               row.goal, reaches(row, result.ratio) ? "reached" : "not-reached");
    std::fflush(stdout);
}

void printList(const std::vector<Row>& rows)
{
    for (const auto& row : rows) {
        fmt::print("{:<24} {:>6}  {}\n", row.name, bound(row.aim, row.goal), row.what);
    }
}

} // namespace redislock::bench
