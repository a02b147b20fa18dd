#include "flash_sale/service.hpp"

#include "flash_sale/orders.hpp"
#include "flash_sale/page.hpp"
#include "flash_sale/sale.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <numeric>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace flash {

namespace {

namespace http = boost::beast::http;
using boost::asio::ip::tcp;
using Request = http::request<http::string_body>;
using Response = http::response<http::string_body>;

/// The figures of the page, collected four times a second, however many browsers ask.
class Status {
public:
    explicit Status(const Settings& settings) : settings_(settings) {}

    [[noreturn]] void collectForEver()
    try {
        Sale sale(settings_);
        Orders orders(settings_.database);
        for (;; std::this_thread::sleep_for(std::chrono::milliseconds(250))) {
            auto json = figures(settings_, sale, orders);
            const std::lock_guard lock(mutex_);
            json_ = std::move(json);
        }
    } catch (const std::exception& error) {
        fmt::print(stderr, "service: {}\n", error.what());
        std::_Exit(2);
    }
    /// Empty until the first figures were collected.
    [[nodiscard]] std::string json()
    {
        const std::lock_guard lock(mutex_);
        return json_;
    }

private:
    Settings settings_;
    std::mutex mutex_;
    std::string json_;
};

bool isOrder(std::string_view id)
{
    return !id.empty() && id.size() <= 64 && id.find_first_not_of("0123456789abcdef-") == std::string_view::npos;
}
bool isUser(std::string_view user)
{
    return !user.empty() && user.size() <= 9 && user.find_first_not_of("0123456789") == std::string_view::npos;
}

Response respond(http::status status, std::string_view type, std::string body)
{
    Response response(status, 11);
    response.set(http::field::content_type, type);
    response.set(http::field::cache_control, "no-store");
    response.body() = std::move(body);
    return response;
}
Response say(http::status status, std::string words)
{
    return respond(status, "text/plain; charset=utf-8", std::move(words));
}

Response order(Sale& sale, std::string_view id, std::string_view user)
{
    if (!isOrder(id)) {
        return say(http::status::bad_request, "the order's number has to be 1 to 64 of 0-9, a-f and -");
    }
    if (!isUser(user)) {
        return say(http::status::bad_request, "the body has to be the user's number, of 1 to 9 digits");
    }
    auto answer = sale.admit(id, user);
    if (answer.text == "closed") {
        return say(http::status::service_unavailable, "the sale is not open");
    }
    if (answer.text == "not yours") {
        return say(http::status::conflict, "another user has an order with this number");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5)); // the way to the buyer: a kill here loses the answer
    auto response = say(http::status::ok, std::move(answer.text));
    response.set("Repeated", answer.isRepeated ? "yes" : "no");
    return response;
}

Response handle(const Request& request, Sale& sale, Status& status)
{
    constexpr std::string_view orders = "/orders/";
    const std::string_view target(request.target().data(), request.target().size());
    if (request.method() == http::verb::put && target.starts_with(orders)) {
        return order(sale, target.substr(orders.size()), request.body());
    }
    if (request.method() == http::verb::get && target == "/status") {
        sale.count("looks");
        auto json = status.json();
        return json.empty() ? say(http::status::service_unavailable, "the service has just started")
                            : respond(http::status::ok, "application/json", std::move(json));
    }
    if (request.method() == http::verb::get && target == "/") {
        return respond(http::status::ok, "text/html; charset=utf-8", page());
    }
    return say(http::status::not_found, "there is PUT /orders/<order>, GET /status and GET /");
}

/// Serves all requests of one connection.
void talk(tcp::socket socket, const Settings& settings, Status& status)
try {
    socket.set_option(tcp::no_delay(true));
    Sale sale(settings);
    boost::beast::flat_buffer buffer;
    for (bool goesOn = true; goesOn;) {
        http::request_parser<http::string_body> parser;
        parser.body_limit(1024);
        boost::system::error_code error;
        http::read(socket, buffer, parser, error);
        if (error == http::error::body_limit) {
            auto refusal = say(http::status::payload_too_large, "a user's number is shorter than that");
            refusal.prepare_payload();
            http::write(socket, refusal);
        }
        if (error) {
            return; // the buyer's connection is gone, or the buyer does not speak HTTP
        }
        auto response = handle(parser.get(), sale, status);
        goesOn = parser.get().keep_alive();
        response.keep_alive(goesOn);
        response.prepare_payload();
        http::write(socket, response);
    }
} catch (const boost::system::system_error&) {
    // The buyer's connection is gone; the buyer asks again.
} catch (const std::exception& error) {
    fmt::print(stderr, "service: {}\n", error.what()); // a failure of Redis; the buyer gets no answer, and asks again
}

} // namespace

std::string figures(const Settings& settings, Sale& sale, Orders& orders)
{
    // The orders first: each of them was admitted before, so that none is missing in the snapshot that comes second.
    const auto seconds = orders.bySecond();
    const auto created = std::accumulate(seconds.begin(), seconds.end(), 0);
    const auto troubles = orders.troubles();
    const auto now = sale.snapshot(settings.workers);
    return fmt::format(R"({{"stock":{},"left":{},"created":{},"underway":{},"holds":{},"waiters":{},"claimed":{},)"
                       R"("refused":{},"seconds":[{}],"troubles":{},"verdict":{}}})",
                       settings.stock, now.left, created, settings.stock - now.left - created, now.holds, now.waiters,
                       now.claimed, now.refused, fmt::join(seconds, ","), troubles, now.verdict);
}

void serve(const Settings& settings, int listener)
{
    Status status(settings);
    std::thread([&] { status.collectForEver(); }).detach(); // this function does not return
    boost::asio::io_context context;
    tcp::acceptor acceptor(context, tcp::v4(), listener);
    for (;;) {
        std::thread([&, socket = acceptor.accept()]() mutable { talk(std::move(socket), settings, status); }).detach();
    }
}

} // namespace flash
