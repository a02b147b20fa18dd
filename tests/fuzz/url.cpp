// Any bytes as a URL give a valid Config or a LockError that shows no secret. A Config can be written as a URL and read
// again.
#include "fuzz/fuzz_target.hpp"
#include "redislock/config.hpp"
#include "redislock/error.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace redislock::test {
namespace {

struct Parsed {
    std::optional<Config> config;
    std::error_code error;
    std::string message;
};

Parsed parse(const std::string& url)
{
    try {
        return {Config::fromUrl(url), {}, {}};
    } catch (const LockError& refused) {
        return {std::nullopt, refused.code(), refused.what()};
    }
}

std::string encoded(std::string_view text)
{
    constexpr std::string_view digits = "0123456789ABCDEF";
    std::string result;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        result += {'%', digits[byte >> 4U], digits[byte & 15U]};
    }
    return result;
}

/// The settings as a URL that names each of them.
std::string written(const Config& config)
{
    const bool hasUser = !config.username.empty() || !config.password.empty();
    const auto user = hasUser ? encoded(config.username) + ":" + encoded(config.password) + "@" : "";
    const auto ms = [](std::string_view name, std::chrono::milliseconds time) {
        return "&" + std::string(name) + "=" + std::to_string(time.count());
    };
    const auto address = [](const Endpoint& at) {
        const bool isV6 = at.host.find(':') != std::string::npos;
        return (isV6 ? "[" + encoded(at.host) + "]" : at.host) + ":" + std::to_string(at.port);
    };
    std::string place = "redis://" + user + address(config.endpoint) + "?";
    if (!config.endpoint.unixSocket.empty()) {
        place = "unix://" + user + "/" + encoded(std::string_view(config.endpoint.unixSocket).substr(1)) + "?";
    }
    if (const auto& sentinels = config.sentinels) {
        place = "redis-sentinel://" + user;
        for (const auto& each : sentinels->endpoints) {
            place += (&each == &sentinels->endpoints.front() ? "" : ",") + address(each);
        }
        place += "/" + encoded(sentinels->name) + "?sentinel_username=" + encoded(sentinels->username) +
                 "&sentinel_password=" + encoded(sentinels->password) + "&";
    }
    return place + "database=" + std::to_string(config.database) + "&client_name=" + encoded(config.clientName) +
           "&naming=" + (config.naming == Naming::identified ? "identified" : "as_given") +
           ms("connect_timeout", config.connectTimeout) + ms("command_timeout", config.commandTimeout) +
           ms("unreachable_after", config.unreachableAfter) + ms("watchdog_timeout", config.watchdogTimeout) +
           ms("max_hold", config.maxHold) + ms("poll_interval", config.pollInterval);
}

bool isSame(const Config& a, const Config& b)
{
    const bool isWatched = a.sentinels.has_value();
    if (isWatched != b.sentinels.has_value() ||
        (isWatched &&
         (a.sentinels->name != b.sentinels->name || a.sentinels->endpoints != b.sentinels->endpoints ||
          a.sentinels->username != b.sentinels->username || a.sentinels->password != b.sentinels->password))) {
        return false;
    }
    return a.endpoint.host == b.endpoint.host && a.endpoint.port == b.endpoint.port &&
           a.endpoint.unixSocket == b.endpoint.unixSocket && a.username == b.username && a.password == b.password &&
           a.database == b.database && a.clientName == b.clientName && a.naming == b.naming &&
           a.connectTimeout == b.connectTimeout && a.commandTimeout == b.commandTimeout &&
           a.unreachableAfter == b.unreachableAfter && a.watchdogTimeout == b.watchdogTimeout &&
           a.maxHold == b.maxHold && a.pollInterval == b.pollInterval;
}

/// The URL with other letters where a user name and a password are, or may be meant: before the last '@'. The exchanged
/// letters have no meaning in a URL, so both URLs are read alike.
std::string withOtherSecret(std::string url)
{
    const auto scheme = url.find("://");
    const auto at = url.rfind('@');
    if (scheme == std::string::npos || at == std::string::npos) {
        return url;
    }
    for (auto i = scheme + 3; i < at; ++i) {
        char& c = url[i];
        const bool isFree = (c >= 'g' && c <= 'z') || (c >= 'G' && c <= 'Z');
        if (isFree) {
            c = c == 'z' ? 'g' : c == 'Z' ? 'G' : static_cast<char>(c + 1);
        }
    }
    return url;
}

void checkRefusal(const std::string& url, const Parsed& parsed)
{
    require(parsed.error == Errc::badConfig || parsed.error == Errc::unsupported, "a refusal has its own error");
    require(parsed.message.size() < 512, "a message is short");
    for (const char c : parsed.message) {
        require(c >= ' ' && c <= '~', "a message is printable");
    }
    const auto other = parse(withOtherSecret(url));
    require(!other.config && other.message == parsed.message, "a message does not depend on the secret");
}

void checkConfig(const Config& config)
{
    config.validate(); // throws if the configuration is not valid
    require(config.endpoint.host.size() <= 253 && config.endpoint.unixSocket.size() <= 107, "names have limits");
    require(config.clientName.size() <= 64, "names have limits");
    const auto again = parse(written(config));
    require(again.config && isSame(*again.config, config), "what was read can be written and read again");
}

} // namespace
} // namespace redislock::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    using namespace redislock::test;
    const std::string url(Input(data, size).rest());
    const auto parsed = parse(url);
    parsed.config ? checkConfig(*parsed.config) : checkRefusal(url, parsed);
    return 0;
}
