#include "structure/layers.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <sstream>
#include <utility>

namespace redislock::test {

namespace {

enum class Layer { values, system, wire, request, link, core, client, api, watch, prometheus, tool, testing, none };

constexpr std::array layerNames{"values", "system", "wire",       "request", "link",    "core",    "client",
                                "api",    "watch",  "prometheus", "tool",    "testing", "no layer"};

// Folders by layer, the inner ones first. What a request is, the core knows by its headers.
constexpr std::array<std::pair<std::string_view, Layer>, 10> folders{{{"src/values/system/", Layer::system},
                                                                      {"src/values/", Layer::values},
                                                                      {"src/wire/", Layer::wire},
                                                                      {"src/link/", Layer::link},
                                                                      {"src/core/", Layer::core},
                                                                      {"src/client/", Layer::client},
                                                                      {"src/watch/", Layer::watch},
                                                                      {"src/prometheus/", Layer::prometheus},
                                                                      {"tool/", Layer::tool},
                                                                      {"include/redislock/testing/", Layer::testing}}};
constexpr std::string_view requestFolder = "src/link/request/";
constexpr std::string_view publicFolder = "include/redislock/";

// The public headers that every layer may include; the others are the api.
constexpr std::array publicValues{"clock",        "config",       "credentials", "durability", "endpoint",
                                  "error",        "export",       "fwd",         "tls",        "hold_ref",
                                  "identity",     "lease_time",   "lock_report", "observer",   "random",
                                  "requirements", "retry_policy", "sentinels",   "stop_at",    "unlocked"};

constexpr std::array asioForApi{"boost/asio/any_io_executor.hpp",
                                "boost/asio/any_completion_handler.hpp",
                                "boost/asio/associated_cancellation_slot.hpp",
                                "boost/asio/associated_executor.hpp",
                                "boost/asio/associator.hpp",
                                "boost/asio/async_result.hpp",
                                "boost/asio/awaitable.hpp",
                                "boost/asio/bind_cancellation_slot.hpp",
                                "boost/asio/cancellation_signal.hpp",
                                "boost/asio/co_spawn.hpp",
                                "boost/asio/deferred.hpp",
                                "boost/asio/execution/blocking.hpp",
                                "boost/asio/execution/context.hpp",
                                "boost/asio/execution_context.hpp",
                                "boost/asio/prefer.hpp",
                                "boost/asio/query.hpp",
                                "boost/asio/recycling_allocator.hpp",
                                "boost/asio/use_awaitable.hpp"};

// Atomic and stop_token are not among them: they are values, which others may read or signal meanwhile.
constexpr std::array threading{"barrier", "condition_variable", "future",       "latch", "mutex",
                               "random",  "semaphore",          "shared_mutex", "thread"};

template <class Range>
bool contains(const Range& range, std::string_view value)
{
    return std::any_of(range.begin(), range.end(), [&](std::string_view each) { return each == value; });
}

bool isIn(Layer layer, std::initializer_list<Layer> layers)
{
    return std::find(layers.begin(), layers.end(), layer) != layers.end();
}

Layer layerOf(std::string_view path)
{
    using enum Layer;
    if (path.starts_with(requestFolder) && path.ends_with(".hpp")) {
        return request;
    }
    for (const auto& [folder, layer] : folders) {
        if (path.starts_with(folder)) {
            return layer;
        }
    }
    if (!path.starts_with(publicFolder) || path.find('/', publicFolder.size()) != std::string_view::npos) {
        return none;
    }
    const std::string_view name = path.substr(publicFolder.size());
    return contains(publicValues, name.substr(0, name.find('.'))) ? values : api;
}

std::string nameOf(Layer layer)
{
    return layerNames.at(static_cast<std::size_t>(layer));
}

// The included file as a path in the project; empty for foreign headers.
std::string inProject(std::string_view file, std::string_view target)
{
    if (target.starts_with("redislock/")) {
        return "include/" + std::string(target);
    }
    for (const auto& [folder, layer] : folders) {
        const auto name = folder.substr(folder.find('/') + 1);
        if (target.ends_with(".hpp") && !name.empty() && target.starts_with(name)) {
            return "src/" + std::string(target);
        }
    }
    if (target.ends_with(".hpp") && target.find('/') == std::string_view::npos) { // a neighbour
        return std::string(file.substr(0, file.rfind('/') + 1)) + std::string(target);
    }
    return {};
}

bool mayInclude(Layer from, Layer to)
{
    using enum Layer;
    switch (from) {
    case values:
        return to == values;
    case system:
        return isIn(to, {values, system});
    case wire:
        return isIn(to, {values, wire});
    case request:
        return isIn(to, {values, wire, request});
    case link:
        return isIn(to, {values, system, wire, request, link});
    case core:
        return isIn(to, {values, wire, request, core});
    case client:
        return isIn(to, {values, system, wire, request, link, core, client, api});
    case watch:
        return mayInclude(client, to) || to == watch;
    case api:
        return isIn(to, {values, api});
    case prometheus: // as a program with an observer of its own
    case tool:
        return isIn(to, {values, api, from});
    case testing:
        return to == testing;
    case none:
        break;
    }
    return false;
}

std::string ownViolation(std::string_view file, Layer from, std::string_view path)
{
    using enum Layer;
    if (path == "include/redislock/prometheus_observer.hpp" && from != prometheus) {
        return "it is of a library that may not be there";
    }
    if (file.starts_with("include/") && !path.starts_with("include/")) {
        return "a public header may not include the inside";
    }
    const Layer to = layerOf(path);
    return mayInclude(from, to) ? "" : nameOf(from) + " may not include " + nameOf(to);
}

std::string foreignViolation(Layer from, std::string_view file, std::string_view target)
{
    using enum Layer;
    const std::string refusal = nameOf(from) + " may not include <" + std::string(target) + ">";
    const bool isCompiled = file.ends_with(".cpp");
    if (target.starts_with("openssl/")) {
        return file == "src/link/tls/tls.cpp" ? "" : "only src/link/tls/tls.cpp may include OpenSSL";
    }
    if (target.starts_with("hiredis/")) {
        return file == "src/wire/codec.cpp" ? "" : "only src/wire/codec.cpp may include hiredis";
    }
    if (target.starts_with("prometheus/")) {
        return from == prometheus ? "" : "only src/prometheus may include prometheus-cpp";
    }
    if (target.starts_with("fmt/")) {
        const bool compiled = isCompiled && !isIn(from, {core, prometheus});
        return compiled || file == "include/redislock/format.hpp" ? "" : "only compiled sources may include fmt";
    }
    if (from == tool) {
        return "";
    }
    if (target.starts_with("boost/")) {
        const bool sockets = isIn(from, {link, client, watch});
        const bool erased = from == api && contains(asioForApi, target);
        const bool codes = (from == api || (from == values && isCompiled)) && target.starts_with("boost/system/");
        const bool counted = file.starts_with("include/") && target == "boost/smart_ptr/intrusive_ptr.hpp";
        const bool version = file == "include/redislock/version.hpp.in" && target == "boost/version.hpp";
        const bool container = from == core && target.starts_with("boost/unordered/");
        return sockets || erased || codes || counted || version || container ? "" : refusal;
    }
    if (target.ends_with(".h")) { // the operating system's
        const bool compiled = isCompiled && from != core;
        return isIn(from, {system, link, client, watch, testing}) || compiled ? "" : refusal;
    }
    if (isIn(from, {values, wire, request, core}) && contains(threading, target)) {
        return refusal;
    }
    return target.find('/') == std::string_view::npos ? "" : refusal;
}

} // namespace

std::vector<Include> includesOf(std::string_view text)
{
    std::vector<Include> includes;
    std::istringstream lines{std::string(text)};
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
        ++number;
        std::istringstream words(line);
        char hash = 0;
        std::string directive;
        std::string target;
        if (words >> hash && hash == '#' && words >> directive && directive.starts_with("include")) {
            const auto open = line.find_first_of("<\"");
            const auto close = line.find_last_of(">\"");
            if (open != std::string::npos && close > open) {
                includes.push_back({line.substr(open + 1, close - open - 1), number});
            }
        }
    }
    return includes;
}

std::string violation(std::string_view file, std::string_view target)
{
    const Layer from = layerOf(file);
    if (from == Layer::none) {
        return "the file belongs to no layer";
    }
    const std::string own = inProject(file, target);
    return own.empty() ? foreignViolation(from, file, target) : ownViolation(file, from, own);
}

std::string scriptIdentifier(std::string_view name)
{
    std::string identifier;
    bool raise = false;
    for (const char each : name) {
        if (each == '_' || each == '/') {
            raise = true;
            continue;
        }
        identifier += raise ? static_cast<char>(std::toupper(static_cast<unsigned char>(each))) : each;
        raise = false;
    }
    return identifier;
}

} // namespace redislock::test
