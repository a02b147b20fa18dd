// The metrics, their description in doc/metrics.md, and the dashboard that shows them.
#include "demos/registered.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <iterator>
#include <ostream>
#include <regex>
#include <set>
#include <stdexcept>

namespace redislock::test {
namespace {

using Names = std::set<std::string>;

/// The facts about a metric besides its values.
struct Metric {
    std::string type;
    Names labels;

    friend bool operator==(const Metric&, const Metric&) = default;
    friend std::ostream& operator<<(std::ostream& out, const Metric& metric)
    {
        out << metric.type;
        for (const auto& label : metric.labels) {
            out << ' ' << label;
        }
        return out;
    }
};
using Metrics = std::map<std::string, Metric>;

/// The metrics of an observer that got every event.
Metrics registeredMetrics()
{
    const Registered registered;
    tellEverything(*registered.observer(), {"stock:42", "a:17", ObjectKind::redisLock});
    Metrics metrics;
    for (const auto& family : registered.families()) {
        auto& metric = metrics[family.name];
        metric.type = family.type == prometheus::MetricType::Histogram ? "histogram" : "counter";
        for (const auto& [name, value] : Registered::labelsOf(family.metric.at(0))) {
            metric.labels.insert(name);
        }
    }
    return metrics;
}

std::string read(const std::string& document)
{
    std::ifstream file(std::string(REDISLOCK_DOC_DIR) + "/" + document);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// All matches of the expression: their first groups.
std::vector<std::string> found(const std::string& text, const char* expression)
{
    std::vector<std::string> all;
    const std::regex regex(expression);
    for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at) {
        all.push_back((*at)[1]);
    }
    return all;
}

Names names(const std::string& text)
{
    const auto words = found(text, "(\\w+)");
    return {words.begin(), words.end()};
}

/// The metric of a series: for `x_bucket` the histogram `x`.
std::string metricOf(const std::string& series, const Metrics& metrics)
{
    const std::regex part("(.*)_(bucket|sum|count)");
    std::smatch match;
    const bool isPart = std::regex_match(series, match, part) && metrics.count(match[1]) == 1 &&
                        metrics.at(match[1]).type == "histogram";
    return isPart ? match[1].str() : series;
}

class Dashboard : public ::testing::Test {
protected:
    /// The targets of all panels.
    [[nodiscard]] std::vector<nlohmann::json> targets() const
    {
        std::vector<nlohmann::json> all;
        for (const auto& panel : dashboard.at("panels")) {
            all.insert(all.end(), panel.at("targets").begin(), panel.at("targets").end());
        }
        return all;
    }

    const Metrics metrics = registeredMetrics();
    const nlohmann::json dashboard = nlohmann::json::parse(read("grafana-dashboard.json"));
};

TEST(PrometheusMetrics, AreNamedAsPrometheusWants)
{
    for (const auto& [name, metric] : registeredMetrics()) {
        const bool isTotal = name.ends_with("_total");
        EXPECT_EQ(isTotal, metric.type == "counter") << name;
        EXPECT_TRUE(isTotal || name.ends_with("_seconds") || name == "redislock_attempts") << name << " has no unit";
    }
}

TEST(PrometheusMetrics, AreThoseOfTheDocument)
{
    Metrics documented;
    const std::regex row(R"(\| `(redislock_\w+)` \| (\w+) \| ([\w, ]+) \| [^|]+ \|)");
    const auto text = read("metrics.md");
    for (std::sregex_iterator at(text.begin(), text.end(), row), end; at != end; ++at) {
        documented[(*at)[1]] = {(*at)[2], names((*at)[3])};
    }
    EXPECT_EQ(documented, registeredMetrics());
    for (const auto& name : found(text, "(redislock_\\w+_total|redislock_\\w+_seconds)")) {
        EXPECT_EQ(documented.count(name), 1U) << name << " is spoken of";
    }
}

TEST_F(Dashboard, ShowsEveryMetricAndNoOther)
{
    Names shown;
    for (const auto& target : targets()) {
        for (const auto& series : found(target.at("expr"), "(redislock_\\w+)")) {
            const auto name = metricOf(series, metrics);
            EXPECT_EQ(metrics.count(name), 1U) << series;
            EXPECT_TRUE(name != series || metrics.at(name).type == "counter") << series << " is no series";
            shown.insert(name);
        }
    }
    for (const auto& [name, metric] : metrics) {
        EXPECT_EQ(shown.count(name), 1U) << name << " is shown by no panel";
    }
    for (const auto& name : found(dashboard.at("templating").dump(), "(redislock_\\w+)")) {
        EXPECT_EQ(metrics.count(name), 1U) << name;
    }
}

TEST_F(Dashboard, AsksForLabelsThatTheMetricsHave)
{
    int asked = 0;
    for (const auto& target : targets()) {
        const std::string query = target.at("expr");
        for (const auto& series : found(query, "(redislock_\\w+)")) {
            auto labels = metrics.at(metricOf(series, metrics)).labels;
            if (series.ends_with("_bucket")) {
                labels.insert("le");
            }
            auto wanted = found(query, "(\\w+)=~?\"");
            for (const auto& by : found(query, "by \\(([^)]*)\\)")) {
                const auto each = names(by);
                wanted.insert(wanted.end(), each.begin(), each.end());
            }
            for (const auto& label : wanted) {
                ++asked;
                EXPECT_EQ(labels.count(label), 1U) << series << " has no label " << label << ": " << query;
            }
        }
        for (const auto& label : found(target.at("legendFormat"), "\\{\\{(\\w+)\\}\\}")) {
            EXPECT_NE(query.find(label), std::string::npos)
                << "the legend's " << label << " is not asked for: " << query;
        }
    }
    EXPECT_GT(asked, 20);
}

TEST_F(Dashboard, TakesItsDataFromTheSourceThatWasChosen)
{
    const auto& variables = dashboard.at("templating").at("list");
    ASSERT_FALSE(variables.empty());
    EXPECT_EQ(variables.at(0).at("name"), "datasource");
    EXPECT_EQ(variables.at(0).at("type"), "datasource");
    EXPECT_EQ(variables.at(0).at("query"), "prometheus");
    for (const auto& variable : variables) {
        if (variable.at("type").get<std::string>() != "datasource") {
            EXPECT_EQ(variable.at("datasource").at("uid"), "${datasource}") << variable.at("name");
        }
    }
    std::set<int> ids;
    for (const auto& panel : dashboard.at("panels")) {
        EXPECT_EQ(panel.at("datasource").at("uid"), "${datasource}") << panel.at("title");
        EXPECT_TRUE(ids.insert(panel.at("id").get<int>()).second) << panel.at("title");
    }
    for (const auto& target : targets()) {
        EXPECT_EQ(target.at("datasource").at("uid"), "${datasource}") << target.at("expr");
    }
}

} // namespace
} // namespace redislock::test
