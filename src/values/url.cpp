#include "redislock/config.hpp"

#include "redislock/error.hpp"
#include "values/printable.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace redislock {

namespace {

// Messages show nothing of the URL but what stands behind its '?': if a password's '/', '?' or '@' was not encoded, the
// password ends up in what looks like the host, the port, the path or the options. For the same reason each of these is
// refused when it holds an '@'.

[[noreturn]] void refuse(const std::string& why)
{
    throw LockError(Errc::badConfig, "URL: " + why);
}

/// The text before the first separator, and the text after it where there is one.
std::pair<std::string_view, std::optional<std::string_view>> split(std::string_view text, char separator)
{
    const std::size_t at = text.find(separator);
    if (at == std::string_view::npos) {
        return {text, std::nullopt};
    }
    return {text.substr(0, at), text.substr(at + 1)};
}

int hexDigit(char c)
{
    constexpr std::string_view digits = "0123456789abcdef";
    const char lower = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
    const std::size_t value = digits.find(lower);
    return value == std::string_view::npos ? -1 : static_cast<int>(value);
}

/// Undoes percent-encoding; the result may hold any byte.
std::string decoded(std::string_view text)
{
    std::string bytes;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            bytes.push_back(text[i]);
            continue;
        }
        const int high = i + 2 < text.size() ? hexDigit(text[i + 1]) : -1;
        const int low = high >= 0 ? hexDigit(text[i + 2]) : -1;
        if (low < 0) {
            refuse("a '%' must be followed by two hexadecimal digits");
        }
        bytes.push_back(static_cast<char>(high * 16 + low));
        i += 2;
    }
    return bytes;
}

/// Decimal digits and nothing else, at most @p most.
std::optional<std::uint64_t> number(std::string_view text, std::uint64_t most)
{
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc{} && end == text.data() + text.size();
    return whole && value <= most ? std::optional(value) : std::nullopt;
}

/// The text before the only '@', if there is one, and the rest. Refuses what looks like a password that is not encoded;
/// whatever else is wrong with the text follows from that.
std::pair<std::optional<std::string_view>, std::string_view> splitUserInfo(std::string_view text)
{
    const auto [userInfo, rest] = split(text, '@');
    if (!rest) {
        return {std::nullopt, text};
    }
    if (userInfo.find_first_of("/?") != std::string_view::npos || rest->find('@') != std::string_view::npos) {
        refuse("'/', '?', '#' and '@' in a user name or password must be percent-encoded, as %2F, %3F, %23 and %40; "
               "a '@' elsewhere must be written as %40");
    }
    return {userInfo, *rest};
}

/// `user:password`, both encoded.
void readUserInfo(std::string_view text, Config& config)
{
    const auto [user, password] = split(text, ':');
    if (!password) {
        refuse("what stands before '@' must be user:password or :password");
    }
    config.username = decoded(user);
    config.password = decoded(*password);
}

/// The text between the brackets of an IPv6 address. A zone is kept: `fe80::1%25eth0`.
std::string readV6(std::string_view text)
{
    std::string host = decoded(text);
    const std::string withoutZone(split(host, '%').first);
    in6_addr address{};
    if (withoutZone.find('\0') != std::string::npos || ::inet_pton(AF_INET6, withoutZone.c_str(), &address) != 1) {
        refuse("what is in brackets must be an IPv6 address");
    }
    return host;
}

constexpr std::string_view hostCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";

/// `host[:port]`
Endpoint readAddress(std::string_view text, std::uint16_t usualPort)
{
    Endpoint endpoint;
    endpoint.port = usualPort;
    std::optional<std::string_view> port;
    if (text.starts_with('[')) {
        const auto [address, rest] = split(text.substr(1), ']');
        if (!rest || !(rest->empty() || rest->starts_with(':'))) {
            refuse("an IPv6 address must stand in brackets, followed by nothing or a port");
        }
        endpoint.host = readV6(address);
        port = split(*rest, ':').second;
    } else {
        std::string_view host;
        std::tie(host, port) = split(text, ':');
        if (host.empty()) {
            refuse("the host is empty");
        }
        if (host.find_first_not_of(hostCharacters) != std::string_view::npos) {
            refuse("the host has a character that host names do not have");
        }
        endpoint.host = host;
    }
    if (port) {
        const auto value = number(*port, std::numeric_limits<std::uint16_t>::max());
        if (!value || *value == 0) {
            refuse("the port must be a number from 1 to 65535 (an IPv6 address must stand in brackets)");
        }
        endpoint.port = static_cast<std::uint16_t>(*value);
    }
    return endpoint;
}

struct TimeOption {
    std::string_view name;
    std::chrono::milliseconds Config::*field;
};

constexpr TimeOption timeOptions[] = {
    {"connect_timeout", &Config::connectTimeout},
    {"command_timeout", &Config::commandTimeout},
    {"unreachable_after", &Config::unreachableAfter},
    {"watchdog_timeout", &Config::watchdogTimeout},
    {"max_hold", &Config::maxHold},
    {"poll_interval", &Config::pollInterval},
};

template <class Integer>
Integer optionNumber(std::string_view name, std::string_view value)
{
    const auto parsed = number(value, static_cast<std::uint64_t>(std::numeric_limits<Integer>::max()));
    if (!parsed) {
        refuse("the option " + std::string(name) + " must be a number, not \"" + detail::printable(value) + '"');
    }
    return static_cast<Integer>(*parsed);
}

struct FileOption {
    std::string_view name;
    std::string Tls::*field;
};

constexpr FileOption fileOptions[] = {
    {"ca_file", &Tls::caFile},   {"ca_path", &Tls::caPath},           {"cert_file", &Tls::certFile},
    {"key_file", &Tls::keyFile}, {"key_password", &Tls::keyPassword}, {"server_name", &Tls::serverName},
};

template <class Value>
struct NamedValue {
    std::string_view name;
    Value value;
};

template <class Value, std::size_t count>
Value optionValue(std::string_view name, std::string_view text, const NamedValue<Value> (&values)[count])
{
    std::string names;
    for (const auto& each : values) {
        if (text == each.name) {
            return each.value;
        }
        names.append(names.empty() ? "" : &each == std::end(values) - 1 ? " or " : ", ").append(each.name);
    }
    refuse("the option " + std::string(name) + " must be " + names + ", not \"" + detail::printable(text) + '"');
}

/// @return whether it is an option of TLS.
bool setTlsOption(std::string_view name, std::string_view value, Config& config)
{
    const auto* file = std::find_if(std::begin(fileOptions), std::end(fileOptions),
                                    [name](const FileOption& candidate) { return candidate.name == name; });
    const bool isFile = file != std::end(fileOptions);
    if (!isFile && name != "verify" && name != "min_tls") {
        return false;
    }
    if (!config.tls) {
        refuse("the option " + std::string(name) + " is for rediss://, rediss-sentinel:// and rediss-cluster:// only");
    }
    if (name == "verify") {
        using Verify = Tls::Verify;
        config.tls->verify = optionValue<Verify>(
            name, value, {{"full", Verify::full}, {"chain", Verify::chain}, {"none", Verify::none}});
    } else if (name == "min_tls") {
        config.tls->minVersion =
            optionValue<Tls::Version>(name, value, {{"1.2", Tls::Version::v1_2}, {"1.3", Tls::Version::v1_3}});
    } else if (value.empty()) {
        refuse("the option " + std::string(name) + " is empty");
    } else {
        (*config.tls).*file->field = decoded(value);
    }
    return true;
}

/// @return whether it is an option about Sentinels.
bool setSentinelOption(std::string_view name, std::string_view value, Config& config)
{
    const auto field = name == "sentinel_username"   ? &Sentinels::username
                       : name == "sentinel_password" ? &Sentinels::password
                                                     : nullptr;
    if (field == nullptr && name != "sentinel_tls") {
        return false;
    }
    if (!config.sentinels) {
        refuse("the option " + std::string(name) + " is for redis-sentinel:// and rediss-sentinel:// only");
    }
    if (field != nullptr) {
        (*config.sentinels).*field = decoded(value);
    }
    return true; // sentinel_tls is read before all others
}

/// `none`, `replicas:N` or `disk:N`
void setDurability(std::string_view text, Durability& durability)
{
    const auto [level, count] = split(text, ':');
    const bool isNone = level == "none" && !count;
    const auto replicas = number(count.value_or(""), std::numeric_limits<std::uint32_t>::max());
    if (!isNone && (!replicas || (level != "replicas" && level != "disk"))) {
        refuse("the option durability must be none, replicas:N or disk:N, not \"" + detail::printable(text) + '"');
    }
    durability.level = isNone            ? Durability::Level::none
                       : level == "disk" ? Durability::Level::disk
                                         : Durability::Level::replicas;
    durability.count = static_cast<std::uint32_t>(replicas.value_or(0));
}

void setOption(std::string_view name, std::string_view value, Config& config)
{
    if (setTlsOption(name, value, config) || setSentinelOption(name, value, config)) {
        return;
    }
    if (name == "client_name") {
        config.clientName = decoded(value);
    } else if (name == "naming") {
        config.naming =
            optionValue<Naming>(name, value, {{"identified", Naming::identified}, {"as_given", Naming::asGiven}});
    } else if (name == "database") {
        config.database = optionNumber<std::uint32_t>(name, value);
    } else if (name == "notifications") {
        if (config.cluster.empty()) {
            refuse("the option notifications is for redis-cluster:// and rediss-cluster:// only");
        }
        config.notifications = optionValue<Notifications>(name, value,
                                                          {{"auto", Notifications::automatic},
                                                           {"sharded", Notifications::sharded},
                                                           {"classic", Notifications::classic},
                                                           {"both", Notifications::both}});
    } else if (name == "durability") {
        setDurability(value, config.durability);
    } else if (name == "durability_within") {
        config.durability.within = std::chrono::milliseconds(optionNumber<std::chrono::milliseconds::rep>(name, value));
    } else if (name == "turn_us") {
        config.turn = std::chrono::microseconds(optionNumber<std::chrono::microseconds::rep>(name, value));
    } else {
        const auto* option = std::find_if(std::begin(timeOptions), std::end(timeOptions),
                                          [name](const TimeOption& candidate) { return candidate.name == name; });
        if (option == std::end(timeOptions)) {
            refuse("there is no option \"" + detail::printable(name) + '"');
        }
        config.*option->field = std::chrono::milliseconds(optionNumber<std::chrono::milliseconds::rep>(name, value));
    }
}

/// `name=value&…`. @param given options that stand elsewhere in the URL.
void readOptions(std::optional<std::string_view> text, std::set<std::string_view> given, Config& config)
{
    while (text) {
        std::string_view option;
        std::tie(option, text) = split(*text, '&');
        const auto [name, value] = split(option, '=');
        if (!value) {
            refuse("an option must be name=value");
        }
        if (!given.insert(name).second) {
            refuse("the option \"" + detail::printable(name) + "\" is given twice");
        }
        setOption(name, *value, config);
    }
}

/// What stands in the path after @p before.
void readDatabase(std::string_view text, const std::string& before, Config& config)
{
    const auto database = number(text, std::numeric_limits<std::uint32_t>::max());
    if (!database) {
        refuse("what stands after " + before + " must be the number of a database");
    }
    config.database = static_cast<std::uint32_t>(*database);
}

/// `[[user]:password@]host[:port][/database][?options]`
void readTcp(std::string_view text, Config& config)
{
    const auto [userInfo, place] = splitUserInfo(text);
    const auto [location, options] = split(place, '?');
    const auto [address, path] = split(location, '/');
    if (userInfo) {
        readUserInfo(*userInfo, config);
    }
    config.endpoint = readAddress(address, Endpoint().port);
    std::set<std::string_view> given;
    if (path && !path->empty()) {
        readDatabase(*path, "the host", config);
        given.insert("database");
    }
    readOptions(options, std::move(given), config);
}

/// `host[:port],…`
std::vector<Endpoint> readAddresses(std::string_view text, std::uint16_t usualPort)
{
    std::vector<Endpoint> all;
    for (std::optional<std::string_view> left = text; left;) {
        std::string_view host;
        std::tie(host, left) = split(*left, ',');
        all.push_back(readAddress(host, usualPort));
    }
    return all;
}

/// `[[user]:password@]host[:port],…[?options]`
void readCluster(std::string_view text, Config& config)
{
    const auto [userInfo, place] = splitUserInfo(text);
    const auto [location, options] = split(place, '?');
    const auto [hosts, path] = split(location, '/');
    if (userInfo) {
        readUserInfo(*userInfo, config);
    }
    config.cluster = readAddresses(hosts, Endpoint().port);
    std::set<std::string_view> given;
    if (path && !path->empty()) {
        readDatabase(*path, "the hosts", config);
        given.insert("database");
    }
    readOptions(options, std::move(given), config);
}

/// `[[user]:password@]/path[?options]`
void readUnix(std::string_view text, Config& config)
{
    const auto [userInfo, place] = splitUserInfo(text);
    const auto [location, options] = split(place, '?');
    if (location.find('/') == std::string_view::npos) {
        refuse("the path of a unix socket must begin with '/'");
    }
    if (!location.starts_with('/')) {
        refuse("before the path of a unix socket nothing but user:password@ may stand");
    }
    if (userInfo) {
        readUserInfo(*userInfo, config);
    }
    config.endpoint.unixSocket = decoded(location);
    readOptions(options, {}, config);
}

/// Whether TLS is spoken with the Sentinels.
bool readSentinelTls(std::optional<std::string_view> options, bool usual)
{
    while (options) {
        std::string_view option;
        std::tie(option, options) = split(*options, '&');
        const auto [name, value] = split(option, '=');
        if (name == "sentinel_tls" && value) {
            return optionValue<bool>(name, *value, {{"no", false}, {"yes", true}});
        }
    }
    return usual;
}

/// `[[user]:password@]host[:port],…/name[/database][?options]`
void readSentinels(std::string_view text, bool withTls, Config& config)
{
    constexpr std::uint16_t sentinelPort = 26379;
    const auto [userInfo, place] = splitUserInfo(text);
    const auto [location, options] = split(place, '?');
    const auto [hosts, path] = split(location, '/');
    if (userInfo) {
        readUserInfo(*userInfo, config);
    }
    Sentinels& sentinels = config.sentinels.emplace();
    sentinels.endpoints = readAddresses(hosts, sentinelPort);
    const auto [name, database] = split(path.value_or(""), '/');
    if (name.empty()) {
        refuse("after the hosts of the Sentinels must stand the name of the master: redis-sentinel://HOST,.../NAME");
    }
    sentinels.name = decoded(name);
    std::set<std::string_view> given;
    if (database && !database->empty()) {
        readDatabase(*database, "the name of the master", config);
        given.insert("database");
    }
    const bool sentinelsWithTls = readSentinelTls(options, withTls);
    config.tls = withTls || sentinelsWithTls ? std::optional<Tls>(Tls{}) : std::nullopt;
    readOptions(options, std::move(given), config);
    sentinels.tls = sentinelsWithTls ? config.tls : std::nullopt;
    config.tls = withTls ? config.tls : std::nullopt;
}

/// The text before `://`, in lower case; Valkey's names mean the same as those of Redis. Empty: there is none.
std::string schemeOf(std::string_view url)
{
    const auto end = url.find("://");
    std::string scheme(url.substr(0, end == std::string_view::npos ? 0 : end));
    for (char& c : scheme) {
        c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    constexpr std::string_view other = "valkey";
    return scheme.starts_with(other) ? scheme.replace(0, other.size(), "redis") : scheme;
}

/// What may be meant by a text without a scheme. Shows it only if it is no more than the address of this machine, or
/// one in numbers: a user name and a password look like a host and a port.
std::string guessAt(std::string_view url)
{
    const auto [name, port] = split(url, ':');
    const std::string host(name);
    in_addr address{};
    if (host.empty() || host.find_first_not_of(hostCharacters) != std::string::npos) {
        return url.starts_with('/') ? "; did you mean unix://PATH?" : "";
    }
    const bool isShown = host == "localhost" || ::inet_pton(AF_INET, host.c_str(), &address) == 1;
    const bool hasPort = port && number(*port, std::numeric_limits<std::uint16_t>::max());
    const std::string shown = isShown ? ':' + std::string(port.value_or("")) : ":PORT";
    return "; did you mean redis://" + (isShown ? host : "HOST") + (hasPort ? shown : "") + '?';
}

} // namespace

Config Config::fromUrl(std::string_view url)
{
    if (!std::all_of(url.begin(), url.end(), [](char c) { return c > ' ' && c <= '~' && c != '#'; })) {
        refuse("spaces, '#' and bytes that are not printable ASCII must be percent-encoded (' ' as %20, '#' as %23)");
    }
    const std::string scheme = schemeOf(url);
    const std::string_view rest = split(url, ':').second.value_or("").substr(scheme.empty() ? 0 : 2);
    Config config;
    if (scheme == "redis" || scheme == "rediss") {
        if (scheme == "rediss") {
            config.tls.emplace();
        }
        readTcp(rest, config);
    } else if (scheme == "redis-sentinel" || scheme == "rediss-sentinel") {
        readSentinels(rest, scheme == "rediss-sentinel", config);
    } else if (scheme == "redis-cluster" || scheme == "rediss-cluster") {
        if (scheme == "rediss-cluster") {
            config.tls.emplace();
        }
        readCluster(rest, config);
    } else if (scheme == "unix") {
        readUnix(rest, config);
    } else {
        refuse("it must begin with redis://, rediss://, redis-sentinel://, rediss-sentinel://, redis-cluster://, "
               "rediss-cluster:// or unix:// (valkey may stand for redis)" +
               (scheme.empty() ? guessAt(url) : std::string()));
    }
    config.validate();
    return config;
}

} // namespace redislock
