/// @file
/// Whether the stock in Redis, the orders in PostgreSQL and the answers of the buyers agree.
#pragma once

#include "flash_sale/buyers.hpp"
#include "flash_sale/conductor.hpp"
#include "flash_sale/orders.hpp"
#include "flash_sale/sale.hpp"
#include "flash_sale/settings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace flash {

class Proof {
public:
    Proof(const Settings& settings, Sale& sale, Orders& orders) : settings_(settings), sale_(sale), orders_(orders) {}

    /// Prints the comparisons. @return whether all figures agree
    bool holds()
    {
        fmt::print("\n{:<60} {:>9} {:>7}\n", "the proof", "expected", "found");
        const auto taken = settings_.stock - sale_.stock();
        const auto wanted = std::min(settings_.stock, settings_.users);
        compare("orders sent by buyers, each with its answer", ordersOf(settings_),
                "count(DISTINCT id) FROM flash_told");
        compare("answers", ordersOf(settings_), "count(*) FROM flash_told");
        compare("users with an answer", settings_.users, "count(DISTINCT buyer) FROM flash_told");
        compare("answers that the service does not give", 0,
                "count(*) FROM flash_told WHERE answer NOT IN ('accepted', 'already bought', 'sold out')");
        compare("buyers who asked again and got another answer", 0, "count(*) FROM flash_told WHERE NOT same");
        compare("pieces taken from the stock in Redis", wanted, taken);
        compare("answers 'accepted'", taken, "count(*) FROM flash_told WHERE answer = 'accepted'");
        compare("orders in PostgreSQL", taken, "count(*) FROM flash_order");
        compare("users with more than one order", 0,
                "count(*) FROM (SELECT FROM flash_order GROUP BY buyer HAVING count(*) > 1) AS twice");
        compare("users accepted more than once", 0,
                "count(*) FROM (SELECT FROM flash_told WHERE answer = 'accepted' GROUP BY buyer HAVING count(*) > 1) "
                "AS twice");
        compare("accepted orders that are not in PostgreSQL", 0,
                "count(*) FROM flash_told LEFT JOIN flash_order USING (id, buyer) "
                "WHERE answer = 'accepted' AND created IS NULL");
        compare("orders in PostgreSQL that were not accepted", 0,
                "count(*) FROM flash_order LEFT JOIN (SELECT * FROM flash_told WHERE answer = 'accepted') AS told "
                "USING (id, buyer) WHERE answer IS NULL");
        compare("admitted orders that nobody finished", 0, sale_.unfinished() + sale_.pending());
        compare("keys in Redis without a time to live", 0, sale_.expire());
        return holds_;
    }

    /// The verdict for the page, in JSON. @param verdict a sentence
    [[nodiscard]] std::string json(bool isGood, std::string_view verdict) const
    {
        return fmt::format(R"({{"good":{},"text":"{}","proof":[{}]}})", isGood, verdict, fmt::join(rows_, ","));
    }

    /// Prints the failures on the way. @return whether they met processes at work
    bool sawTroubles(const Done& done)
    {
        const auto unanswered = orders_.number("SELECT sum(requests) - count(*) FROM flash_told");
        const auto regained = orders_.number("SELECT count(*) FROM flash_told WHERE regained");
        fmt::print("\non the way\n");
        fmt::print("  workers killed with orders under way: {}; orders taken over from dead or slow workers: {}\n",
                   done.workersKilled, sale_.counted("claimed"));
        fmt::print("  workers stopped for twice their lease: {}; late writes refused by the token in the row: {}\n",
                   done.workersStopped, sale_.counted("refused"));
        fmt::print("  services killed: {}; requests without an answer, sent again: {}; lost answers given again: {}\n",
                   done.servicesKilled, unanswered, regained);
        return (settings_.workerKills == 0 || done.workersKilled > 0) &&
               (settings_.serviceKills == 0 || unanswered > 0);
    }

private:
    void compare(std::string_view what, long long wanted, long long found)
    {
        fmt::print("  {:<60} {:>7} {:>7}{}\n", what, wanted, found, wanted == found ? "" : "  WRONG");
        rows_.push_back(fmt::format(R"(["{}",{},{}])", what, wanted, found));
        holds_ = holds_ && wanted == found;
    }
    void compare(std::string_view what, long long wanted, const std::string& query)
    {
        compare(what, wanted, orders_.number("SELECT " + query));
    }

    const Settings& settings_;
    Sale& sale_;
    Orders& orders_;
    std::vector<std::string> rows_; ///< the comparisons, in JSON
    bool holds_ = true;
};

} // namespace flash
