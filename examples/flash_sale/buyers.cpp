#include "flash_sale/buyers.hpp"

#include "flash_sale/orders.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <future>
#include <iterator>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace flash {

namespace {

namespace http = boost::beast::http;
using boost::asio::ip::tcp;

constexpr int threads = 8; ///< of each process

/// The user of the order with this index, when every twentieth user has two in a row.
int userOf(int index)
{
    return index - (index + 1) / 21;
}

std::string newNumber(const Settings& settings, int index)
{
    std::seed_seq seed{settings.seed, static_cast<std::uint32_t>(index)};
    std::mt19937_64 random(seed);
    const auto high = random();
    return fmt::format("{:016x}{:016x}", high, random());
}

/// Talks to the service, over one connection as long as the service keeps it open.
class Browser {
public:
    struct Reply {
        std::string answer;
        bool isRepeated;
    };

    explicit Browser(std::uint16_t port) : service_(boost::asio::ip::address_v4::loopback(), port) {}

    /// @return nothing when there was no answer: the order may have arrived, or not.
    std::optional<Reply> put(const std::string& order, int user)
    try {
        if (!socket_) {
            socket_.emplace(context_);
            socket_->connect(service_);
            socket_->set_option(tcp::no_delay(true));
            buffer_.clear();
        }
        http::request<http::string_body> request(http::verb::put, "/orders/" + order, 11);
        request.set(http::field::host, "localhost");
        request.body() = std::to_string(user);
        request.prepare_payload();
        http::write(*socket_, request);
        http::response<http::string_body> response;
        http::read(*socket_, buffer_, response);
        if (response.result() != http::status::ok) {
            throw std::runtime_error(fmt::format("the service says {}: {}", response.result_int(), response.body()));
        }
        return Reply{response.body(), response["Repeated"] == "yes"};
    } catch (const boost::system::system_error&) {
        socket_.reset();
        return std::nullopt;
    }

private:
    boost::asio::io_context context_;
    tcp::endpoint service_;
    std::optional<tcp::socket> socket_;
    boost::beast::flat_buffer buffer_;
};

/// Asks until there is an answer.
Told order(Browser& browser, const std::string& number, int user, bool asksAgain)
{
    int requests = 0;
    const auto answered = [&] {
        for (;; std::this_thread::sleep_for(std::chrono::milliseconds(20))) {
            ++requests;
            if (auto reply = browser.put(number, user)) {
                return *reply;
            }
        }
    };
    const auto first = answered();
    const int needed = requests;
    const bool isSame = !asksAgain || answered().answer == first.answer;
    return {number, user, first.answer, needed, first.isRepeated, isSame};
}

} // namespace

int ordersOf(const Settings& settings)
{
    return settings.users + settings.users / 20;
}

void buy(const Settings& settings, int number, std::uint16_t port, Clock::time_point start)
{
    const int orders = ordersOf(settings);
    const auto someBuyers = [&](int thread) {
        std::vector<Told> told;
        Browser browser(port);
        for (int index = number + thread * settings.buyerProcesses; index < orders;
             index += threads * settings.buyerProcesses) {
            const double share = std::pow(static_cast<double>(index + 1) / orders, 0.3); // a tenth in half of the time
            std::this_thread::sleep_until(start +
                                          std::chrono::milliseconds(std::lround(share * 1000 * settings.seconds)));
            told.push_back(order(browser, newNumber(settings, index), userOf(index), index % 10 == 3));
        }
        return told;
    };
    std::vector<std::future<std::vector<Told>>> running;
    for (int thread = 0; thread < threads; ++thread) {
        running.push_back(std::async(std::launch::async, someBuyers, thread));
    }
    std::vector<Told> all;
    for (auto& one : running) {
        auto told = one.get();
        all.insert(all.end(), std::move_iterator(told.begin()), std::move_iterator(told.end()));
    }
    Orders(settings.database).keep(all);
}

} // namespace flash
