#include "redislock/config.hpp"

#include "redislock/error.hpp"
#include "redislock/lease_time.hpp"
#include "values/durability_text.hpp"
#include "values/printable.hpp"

#include <arpa/inet.h>

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

constexpr std::string_view pathDemand = "must be a path without NUL";

template <std::string Tls::*field>
bool hasPath(const Tls& tls)
{
    return (tls.*field).find('\0') == std::string::npos;
}

bool hasKeyForCertificate(const Tls& tls)
{
    return tls.certFile.empty() || !tls.keyFile.empty();
}

bool hasCertificateForKey(const Tls& tls)
{
    return tls.keyFile.empty() || !tls.certFile.empty();
}

bool hasKeyForPassword(const Tls& tls)
{
    return tls.keyPassword.empty() || !tls.keyFile.empty();
}

bool hasServerName(const Tls& tls)
{
    const std::string& name = tls.serverName;
    in6_addr address{};
    const bool isAddress = ::inet_pton(AF_INET, name.c_str(), &address) == 1 || name.find(':') != std::string::npos;
    return !isAddress && name.size() <= maxHostLength && isVisible(name) &&
           name.find_first_of("[]/@*") == std::string::npos;
}

/// The settings of TLS, with the servers or the Sentinels, that break a rule; null: none.
const Tls* breaking(const Config& config, bool (*holds)(const Tls&))
{
    const auto breaks = [holds](const std::optional<Tls>& tls) { return tls && !holds(*tls); };
    if (breaks(config.tls)) {
        return &*config.tls;
    }
    return config.sentinels && breaks(config.sentinels->tls) ? &*config.sentinels->tls : nullptr;
}

/// A rule about one field of Config::tls and Sentinels::tls.
template <std::string Tls::*field, bool (*holds)(const Tls&)>
constexpr Rule tlsRule(std::string_view name, std::string_view demand)
{
    return {name, [](const Config& c) { return breaking(c, holds) == nullptr; },
            [](const Config& c) { return '"' + detail::printable(breaking(c, holds)->*field, 160) + '"'; }, demand};
}

constexpr bool isWithin(milliseconds time, milliseconds least, milliseconds most)
{
    return time >= least && time <= most;
}

bool isHost(const std::string& host)
{
    return !host.empty() && host.size() <= maxHostLength && isVisible(host) &&
           host.find_first_of("[]/@") == std::string::npos;
}

bool needsAddress(const Config& config)
{
    return config.endpoint.unixSocket.empty() && !config.sentinels && config.cluster.empty();
}

bool isNodesAddress(const Endpoint& endpoint)
{
    return endpoint.unixSocket.empty() && isHost(endpoint.host) && endpoint.port != 0;
}

constexpr Rule rules[] = {
    {"endpoint.unixSocket",
     [](const Config& c) {
         return c.endpoint.unixSocket.size() <= maxUnixSocketLength &&
                c.endpoint.unixSocket.find('\0') == std::string::npos;
     },
     [](const Config& c) { return detail::printable(c.endpoint.unixSocket, 160); },
     "must be a path of at most 107 bytes without NUL"},
    {"endpoint.host", [](const Config& c) { return !needsAddress(c) || isHost(c.endpoint.host); },
     [](const Config& c) { return '"' + detail::printable(c.endpoint.host) + '"'; },
     "must be a host name, or an IPv4 or IPv6 address without brackets"},
    {"endpoint.port", [](const Config& c) { return !needsAddress(c) || c.endpoint.port != 0; },
     [](const Config& c) { return std::to_string(c.endpoint.port); }, "must be 1 to 65535"},
    {"sentinels", [](const Config& c) { return !c.sentinels || c.endpoint.unixSocket.empty(); },
     [](const Config&) { return std::string("set"); }, "is not for unix sockets"},
    {"sentinels.name",
     [](const Config& c) {
         return !c.sentinels || (!c.sentinels->name.empty() && c.sentinels->name.size() <= maxHostLength &&
                                 isVisible(c.sentinels->name));
     },
     [](const Config& c) { return '"' + detail::printable(c.sentinels->name) + '"'; },
     "must be the name of a master: 1 to 253 visible characters"},
    {"sentinels.endpoints", [](const Config& c) { return !c.sentinels || !c.sentinels->endpoints.empty(); },
     [](const Config&) { return std::string("empty"); }, "must name at least one Sentinel"},
    {"sentinels.endpoints",
     [](const Config& c) { return !c.sentinels || std::ranges::all_of(c.sentinels->endpoints, isNodesAddress); },
     [](const Config& c) { return std::ranges::find_if_not(c.sentinels->endpoints, isNodesAddress)->str(); },
     "must be host names or addresses, with a port from 1 to 65535"},
    {"sentinels.username",
     [](const Config& c) { return !c.sentinels || c.sentinels->username.empty() || !c.sentinels->password.empty(); },
     [](const Config&) { return std::string("***"); }, "needs a password"},
    {"cluster", [](const Config& c) { return c.cluster.empty() || c.endpoint.unixSocket.empty(); },
     [](const Config&) { return std::string("set"); }, "is not for unix sockets"},
    {"cluster", [](const Config& c) { return c.cluster.empty() || !c.sentinels; },
     [](const Config&) { return std::string("set"); }, "needs sentinels to be empty"},
    {"cluster", [](const Config& c) { return std::ranges::all_of(c.cluster, isNodesAddress); },
     [](const Config& c) { return std::ranges::find_if_not(c.cluster, isNodesAddress)->str(); },
     "must be host names or addresses, with a port from 1 to 65535"},
    {"database", [](const Config& c) { return c.cluster.empty() || c.database == 0; },
     [](const Config& c) { return std::to_string(c.database); },
     "must be 0 with a cluster (SELECT is not allowed in cluster mode)"},
    {"notifications", [](const Config& c) { return !c.cluster.empty() || c.notifications == Notifications::automatic; },
     [](const Config&) { return std::string("set"); }, "is for a cluster only"},
    {"tls", [](const Config& c) { return !c.tls || c.endpoint.unixSocket.empty(); },
     [](const Config&) { return std::string("set"); }, "is not for unix sockets"},
    tlsRule<&Tls::caFile, hasPath<&Tls::caFile>>("tls.caFile", pathDemand),
    tlsRule<&Tls::caPath, hasPath<&Tls::caPath>>("tls.caPath", pathDemand),
    tlsRule<&Tls::certFile, hasPath<&Tls::certFile>>("tls.certFile", pathDemand),
    tlsRule<&Tls::keyFile, hasPath<&Tls::keyFile>>("tls.keyFile", pathDemand),
    tlsRule<&Tls::certFile, hasKeyForCertificate>("tls.certFile", "needs tls.keyFile"),
    tlsRule<&Tls::keyFile, hasCertificateForKey>("tls.keyFile", "needs tls.certFile"),
    {"tls.keyPassword", [](const Config& c) { return breaking(c, hasKeyForPassword) == nullptr; },
     [](const Config&) { return std::string("***"); }, "needs tls.keyFile"},
    tlsRule<&Tls::serverName, hasServerName>("tls.serverName", "must be a host name, and no address"),
    {"credentials", [](const Config& c) { return !c.credentials || (c.username.empty() && c.password.empty()); },
     [](const Config&) { return std::string("a function"); }, "needs username and password to be empty"},
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
    timeRule<&Config::credentialsTimeout>(
        "credentialsTimeout", [](const Config& c) { return isWithin(c.credentialsTimeout, 10ms, 1min); },
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
    {"durability", [](const Config& c) { return detail::isInRange(c.durability); },
     [](const Config& c) { return detail::inWords(c.durability); }, detail::durabilityRange},
    {"durability.within",
     [](const Config& c) {
         return c.durability.level == Durability::Level::none || c.durability.within <= c.watchdogTimeout;
     },
     [](const Config& c) { return std::to_string(c.durability.within.count()) + " ms"; },
     "must not be longer than watchdogTimeout"},
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
