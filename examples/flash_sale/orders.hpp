/// @file
/// The orders in PostgreSQL.
#pragma once

#include "flash_sale/sale.hpp"

#include <redislock/redislock.hpp>

#include <pqxx/pqxx>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace flash {

/// The answer to a buyer's order, and how it was given.
struct Told {
    std::string order;
    int user;
    std::string answer;
    int requests;    ///< until there was an answer
    bool isRegained; ///< the first answer was lost: the service had already given it
    bool isSame;     ///< when asked again, the service gave the same answer
};

/// One connection to the database. Every thread has its own.
class Orders {
public:
    enum class Created { now, before, refused };

    explicit Orders(const std::string& database) : connection_(database) {}

    /// No constraint but the orders' own numbers: the proof has to find out if a user gets two.
    void makeTables()
    {
        pqxx::work work(connection_);
        work.exec("CREATE TABLE flash_order (id text PRIMARY KEY, buyer integer NOT NULL, token bigint NOT NULL, "
                  "worker text NOT NULL, created timestamptz NOT NULL DEFAULT now())");
        work.exec("CREATE TABLE flash_fence (buyer integer PRIMARY KEY, token bigint NOT NULL)");
        work.exec("CREATE TABLE flash_told (id text, buyer integer, answer text, requests integer, "
                  "regained boolean, same boolean)");
        work.exec(
            "CREATE TABLE flash_trouble (kind text, who text, since timestamptz DEFAULT now(), until timestamptz)");
        work.commit();
    }
    void dropTables() { execute("DROP TABLE IF EXISTS flash_order, flash_fence, flash_told, flash_trouble"); }

    /// Creates an order, unless it exists, or a worker with a greater token has written for this user.
    Created create(const Order& order, redislock::FencingToken token, const std::string& worker)
    {
        pqxx::work work(connection_); // rolled back unless it is committed
        const auto number = static_cast<std::int64_t>(token);
        const auto fence = work.exec_params("INSERT INTO flash_fence VALUES ($1, $2) ON CONFLICT (buyer) DO UPDATE "
                                            "SET token = $2 WHERE flash_fence.token <= $2",
                                            order.user, number);
        if (fence.affected_rows() != 1) {
            return Created::refused;
        }
        const auto row = work.exec_params("INSERT INTO flash_order (id, buyer, token, worker) VALUES ($1, $2, $3, $4) "
                                          "ON CONFLICT (id) DO NOTHING",
                                          order.id, order.user, number, worker);
        work.commit();
        return row.affected_rows() == 1 ? Created::now : Created::before;
    }

    /// Writes down the answers to a process of buyers.
    void keep(const std::vector<Told>& all)
    {
        pqxx::work work(connection_);
        pqxx::stream_to table(work, "flash_told",
                              std::vector<std::string>{"id", "buyer", "answer", "requests", "regained", "same"});
        for (const auto& told : all) {
            table << std::make_tuple(told.order, told.user, told.answer, told.requests, told.isRegained, told.isSame);
        }
        table.complete();
        work.commit();
    }

    /// Notes the beginning of something that the page shows: the sale is "opened", a worker or a service "killed" or
    /// "stopped".
    void begins(const std::string& kind, const std::string& who = {})
    {
        pqxx::nontransaction(connection_).exec_params("INSERT INTO flash_trouble VALUES ($1, $2)", kind, who);
    }
    /// The last thing of this kind is over.
    void ends(const std::string& kind)
    {
        pqxx::nontransaction(connection_)
            .exec_params("UPDATE flash_trouble SET until = now() WHERE kind = $1 AND until IS NULL", kind);
    }
    /// The troubles since the sale was opened, in JSON.
    [[nodiscard]] std::string troubles()
    {
        pqxx::nontransaction work(connection_);
        return work
            .exec1("SELECT coalesce(json_agg(json_build_object('kind', kind, 'who', who, 'from', "
                   "extract(epoch FROM since - opened), 'to', extract(epoch FROM until - opened)) ORDER BY since), "
                   "'[]') FROM (SELECT since AS opened FROM flash_trouble WHERE kind = 'opened') AS sale, "
                   "flash_trouble WHERE kind <> 'opened'")[0]
            .as<std::string>();
    }
    /// How many orders were created in each second since the sale was opened; the last second is not over.
    [[nodiscard]] std::vector<int> bySecond()
    {
        pqxx::nontransaction work(connection_);
        const auto rows =
            work.exec("SELECT count(id) FROM (SELECT since AS opened FROM flash_trouble WHERE kind = 'opened') AS sale "
                      "CROSS JOIN generate_series(0, floor(extract(epoch FROM now() - opened))) AS second "
                      "LEFT JOIN flash_order ON floor(extract(epoch FROM created - opened)) = second "
                      "GROUP BY second ORDER BY second");
        std::vector<int> counts;
        for (const auto& row : rows) {
            counts.push_back(row[0].as<int>());
        }
        return counts;
    }
    [[nodiscard]] long long number(const std::string& query)
    {
        pqxx::nontransaction work(connection_);
        return work.exec1(query)[0].as<long long>();
    }
    void execute(const std::string& statement)
    {
        pqxx::work work(connection_);
        work.exec(statement);
        work.commit();
    }

private:
    pqxx::connection connection_;
};

} // namespace flash
