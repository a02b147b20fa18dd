#include "redislock/config.hpp"

#include "redislock/error.hpp"
#include "redislock/lease_time.hpp"
#include "values/printable.hpp"

#include <algorithm>

namespace redislock {

namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr std::size_t maxHostLength = 253;
constexpr std::size_t maxUnixSocketLength = 107; // sockaddr_un, without its last NUL
constexpr std::size_t maxClientNameLength = 64;
constexpr std::uint32_t maxDatabase = 65535;

/// Every byte is visible ASCII: printable, and no space.
bool isVisible(std::string_view text)
{
    return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

/// One rule about one field. The rules are checked in order, and the first broken one is reported.
struct Rule {
    std::string_view field;
    bool (*holds)(const Config&);
    std::string (*shown)(const Config&); ///< the field's value, fit for a message
    std::string_view demand;
};

template <milliseconds Config::*field>
constexpr Rule timeRule(std::string_view name, bool (*holds)(const Config&), std::string_view demand)
{
    return {name, holds, [](const Config& c) { return std::to_string((c.*field).count()) + " ms"; }, demand};
}

constexpr bool isWithin(milliseconds time, milliseconds least, milliseconds most)
{
    return time >= least && time <= most;
}

constexpr Rule rules[] = {
    {"endpoint.unixSocket",
     [](const Config& c) {
         return c.endpoint.unixSocket.size() <= maxUnixSocketLength &&
                c.endpoint.unixSocket.find('\0') == std::string::npos;
     },
     [](const Config& c) { return detail::printable(c.endpoint.unixSocket, 160); },
     "must be a path of at most 107 bytes without NUL"},
    {"endpoint.host",
     [](const Config& c) {
         const std::string& host = c.endpoint.host;
         return !c.endpoint.unixSocket.empty() || (!host.empty() && host.size() <= maxHostLength && isVisible(host) &&
                                                   host.find_first_of("[]/@") == std::string::npos);
     },
     [](const Config& c) { return '"' + detail::printable(c.endpoint.host) + '"'; },
     "must be a host name, or an IPv4 or IPv6 address without brackets"},
    {"endpoint.port", [](const Config& c) { return !c.endpoint.unixSocket.empty() || c.endpoint.port != 0; },
     [](const Config& c) { return std::to_string(c.endpoint.port); }, "must be 1 to 65535"},
    {"username", [](const Config& c) { return c.username.empty() || !c.password.empty(); },
     [](const Config&) { return std::string("***"); }, "needs a password"},
    {"database", [](const Config& c) { return c.database <= maxDatabase; },
     [](const Config& c) { return std::to_string(c.database); }, "must be 0 to 65535"},
    {"clientName",
     [](const Config& c) { return c.clientName.size() <= maxClientNameLength && isVisible(c.clientName); },
     [](const Config& c) { return '"' + detail::printable(c.clientName, 160) + '"'; },
     "must be printable ASCII without spaces, at most 64 bytes"},
    timeRule<&Config::connectTimeout>(
        "connectTimeout", [](const Config& c) { return isWithin(c.connectTimeout, 10ms, 1min); },
        "must be 10 ms to 1 min"),
    timeRule<&Config::commandTimeout>(
        "commandTimeout", [](const Config& c) { return isWithin(c.commandTimeout, 10ms, 1min); },
        "must be 10 ms to 1 min"),
    timeRule<&Config::unreachableAfter>(
        "unreachableAfter", [](const Config& c) { return isWithin(c.unreachableAfter, 10ms, 1h); },
        "must be 10 ms to 1 h"),
    timeRule<&Config::watchdogTimeout>(
        "watchdogTimeout", [](const Config& c) { return isWithin(c.watchdogTimeout, 100ms, maxLease); },
        "must be 100 ms to 30 days"),
    timeRule<&Config::maxHold>(
        "maxHold", [](const Config& c) { return c.maxHold == 0ms || c.maxHold >= c.watchdogTimeout; },
        "must be zero or at least watchdogTimeout"),
    timeRule<&Config::pollInterval>(
        "pollInterval", [](const Config& c) { return isWithin(c.pollInterval, 10ms, 1min); }, "must be 10 ms to 1 min"),
    {"turn", [](const Config& c) { return c.turn >= 0us && c.turn <= 100ms; },
     [](const Config& c) { return std::to_string(c.turn.count()) + " us"; }, "must be 0 to 100 ms"},
};

} // namespace

void Config::validate() const
{
    const auto* broken =
        std::find_if(std::begin(rules), std::end(rules), [this](const Rule& rule) { return !rule.holds(*this); });
    if (broken != std::end(rules)) {
        throw LockError(Errc::badConfig, std::string(broken->field)
                                             .append(" is ")
                                             .append(broken->shown(*this))
                                             .append(", but ")
                                             .append(broken->demand));
    }
}

} // namespace redislock
